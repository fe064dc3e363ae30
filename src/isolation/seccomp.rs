//! The filters on system calls: made from the table, stacked, and installed on this process.
//!
//! Three programs, because a filter of `seccompiler` has one action for what matches (a stacked call gets the strictest
//! answer of all programs): one that refuses other architectures, x32 and calls that nobody here has judged; one that
//! answers ENOSYS; one that answers EPERM. Fails with a sentence for a person. Source: `contract/sandbox.md`,
//! "Isolation"; seccomp(2).

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::system_calls::{Architecture, NEWEST, NOT_THERE, REFUSED, Refused, When, X32};

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

// Classic BPF, as linux/filter.h and linux/seccomp.h have it.
const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const ACTION_ALLOW: u32 = 0x7fff_0000;
const ACTION_ERRNO: u32 = 0x0005_0000;
const ACTION_KILL: u32 = 0x8000_0000;

/// The programs for an architecture, in the order in which they are installed: the last refuses more of them. `own_pid`
/// is the process they are for.
///
/// # Errors
/// A sentence for a person: the table does not make a program.
pub fn programs(architecture: Architecture, own_pid: u32) -> Result<Vec<BpfProgram>, String> {
    Ok(vec![
        known_calls(architecture),
        filter(NOT_THERE, ENOSYS, architecture, own_pid)?,
        filter(REFUSED, EPERM, architecture, own_pid)?,
    ])
}

/// Installs the programs on this process, for good.
///
/// # Errors
/// A sentence for a person.
pub fn install(programs: &[BpfProgram]) -> Result<(), String> {
    for program in programs {
        seccompiler::apply_filter(program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Refuses what is not this architecture's own interface, and what is newer than the table.
fn known_calls(architecture: Architecture) -> BpfProgram {
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let x32 = if architecture == Architecture::X86_64 { X32 } else { u32::MAX };
    vec![
        step(LOAD_WORD, OFFSET_ARCHITECTURE, 0, 0),
        step(JUMP_EQUAL, architecture.audit_number(), 1, 0),
        step(RETURN, ACTION_KILL, 0, 0),
        step(LOAD_WORD, OFFSET_NUMBER, 0, 0),
        step(JUMP_GREATER_EQUAL, x32, 2, 0),
        step(JUMP_GREATER, NEWEST, 2, 0),
        step(RETURN, ACTION_ALLOW, 0, 0),
        step(RETURN, ACTION_ERRNO | EPERM, 0, 0),
        step(RETURN, ACTION_ERRNO | ENOSYS, 0, 0),
    ]
}

fn filter(table: &[Refused], errno: u32, architecture: Architecture, own_pid: u32) -> Result<BpfProgram, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (name, x86_64, aarch64, when) in table {
        let number = match architecture {
            Architecture::X86_64 => x86_64,
            Architecture::Aarch64 => aarch64,
        };
        let Some(number) = number else { continue };
        let rule = condition(*when, own_pid).map_err(|error| format!("no rule for {name}: {error}"))?;
        let of_call = rules.entry(*number).or_default();
        of_call.extend(rule);
    }
    let target = match architecture {
        Architecture::X86_64 => TargetArch::x86_64,
        Architecture::Aarch64 => TargetArch::aarch64,
    };
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), target)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// The rule under which a call is refused; none for always.
fn condition(when: When, own_pid: u32) -> Result<Option<SeccompRule>, String> {
    use SeccompCmpArgLen::{Dword, Qword};
    let single = |index, length, operator, value| {
        SeccompCondition::new(index, length, operator, value).map(|condition| vec![condition])
    };
    let conditions = match when {
        When::Always => return Ok(None),
        When::NotItself => single(0, Dword, SeccompCmpOp::Ne, u64::from(own_pid)),
        When::Lacks(bit) => single(0, Qword, SeccompCmpOp::MaskedEq(bit), 0),
        When::SetsLimit => single(2, Qword, SeccompCmpOp::Ne, 0),
        When::Beside(argument, allowed) => {
            allowed.iter().map(|number| SeccompCondition::new(argument, Dword, SeccompCmpOp::Ne, *number)).collect()
        }
        When::Bits(argument, bits) => single(argument, Qword, SeccompCmpOp::MaskedEq(bits), bits),
        When::BothBits(one, other) => [one, other]
            .into_iter()
            .map(|(argument, bits)| SeccompCondition::new(argument, Qword, SeccompCmpOp::MaskedEq(bits), bits))
            .collect(),
    };
    conditions.and_then(SeccompRule::new).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers: an interpreter of the few instructions that filters are made of.
    fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend_from_slice(&number.to_le_bytes());
        data.extend_from_slice(&architecture.to_le_bytes());
        data.extend_from_slice(&0_u64.to_le_bytes());
        for argument in arguments {
            data.extend_from_slice(&argument.to_le_bytes());
        }
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |yes: bool| usize::from(if yes { jt } else { jf });
            match code {
                LOAD_WORD => {
                    let place = k as usize;
                    accumulator = u32::from_le_bytes(data[place..place + 4].try_into().unwrap());
                }
                JUMP_EQUAL => at += jump(accumulator == k),
                JUMP_GREATER => at += jump(accumulator > k),
                JUMP_GREATER_EQUAL => at += jump(accumulator >= k),
                0x05 => at += k as usize,
                0x54 => accumulator &= k,
                RETURN => return k,
                other => panic!("an instruction that filters are not made of: {other:#x}"),
            }
        }
    }

    /// The strictest answer of all programs, as the kernel takes it.
    fn answer(architecture: Architecture, number: u32, arguments: [u64; 6]) -> u32 {
        programs(architecture, 1234)
            .unwrap()
            .iter()
            .map(|program| run(program, architecture.audit_number(), number, arguments))
            .min_by_key(|action| (*action != ACTION_KILL, *action))
            .unwrap()
    }

    const ARCHITECTURES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

    #[test]
    fn every_call_of_the_table_is_refused_and_the_daily_ones_are_not() {
        for architecture in ARCHITECTURES {
            for (name, x86_64, aarch64, when) in REFUSED {
                let number = if architecture == Architecture::X86_64 { x86_64 } else { aarch64 };
                let Some(number) = number else { continue };
                let with = |argument: u8, value| {
                    let mut arguments = [0; 6];
                    arguments[usize::from(argument)] = value;
                    arguments
                };
                let arguments = match when {
                    When::SetsLimit => with(2, 1),
                    // FS_IOC_SETFLAGS; no command of any other call either.
                    When::Beside(argument, _) => with(*argument, 0x4008_6602),
                    When::Bits(argument, bits) => with(*argument, *bits),
                    When::BothBits((one, bits), (other, other_bits)) => {
                        let mut arguments = with(*one, *bits);
                        arguments[usize::from(*other)] = *other_bits;
                        arguments
                    }
                    _ => [0; 6],
                };
                let action = answer(architecture, u32::try_from(*number).unwrap(), arguments);
                assert_eq!(action, ACTION_ERRNO | EPERM, "{name} on {architecture:?}");
            }
            for number in [435, 437] {
                assert_eq!(answer(architecture, number, [0; 6]), ACTION_ERRNO | ENOSYS);
            }
            assert_eq!(answer(architecture, NEWEST + 1, [0; 6]), ACTION_ERRNO | ENOSYS);
        }
        // read, write, openat, mmap, execve, futex, exit_group.
        for number in [0, 1, 257, 9, 59, 202, 231] {
            assert_eq!(answer(Architecture::X86_64, number, [0; 6]), ACTION_ALLOW, "{number}");
        }
        for number in [63, 64, 56, 222, 221, 98, 94] {
            assert_eq!(answer(Architecture::Aarch64, number, [0; 6]), ACTION_ALLOW, "{number}");
        }
    }

    #[test]
    fn threads_and_signals_to_itself_are_left() {
        let thread = 0x003d_0f00;
        assert_eq!(answer(Architecture::X86_64, 56, [thread, 0, 0, 0, 0, 0]), ACTION_ALLOW);
        // A process; threads that share less than all: descriptors, working directory, signal handlers, memory.
        for flags in [17, thread & !0x400, thread & !0x200, thread & !0x800, thread & !0x100] {
            assert_eq!(answer(Architecture::X86_64, 56, [flags, 0, 0, 0, 0, 0]), ACTION_ERRNO | EPERM);
            assert_eq!(answer(Architecture::Aarch64, 220, [flags, 0, 0, 0, 0, 0]), ACTION_ERRNO | EPERM);
        }
        assert_eq!(answer(Architecture::X86_64, 62, [1234, 6, 0, 0, 0, 0]), ACTION_ALLOW);
        for other in [1, 0, u64::from(u32::MAX)] {
            assert_eq!(answer(Architecture::X86_64, 62, [other, 9, 0, 0, 0, 0]), ACTION_ERRNO | EPERM);
        }
        assert_eq!(answer(Architecture::X86_64, 302, [0, 7, 0, 1, 0, 0]), ACTION_ALLOW);
        // fcntl F_SETFL, ioctl FIONBIO, mmap of private memory.
        assert_eq!(answer(Architecture::X86_64, 72, [1, 4, 0, 0, 0, 0]), ACTION_ALLOW);
        // F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ.
        for command in [8, 10, 1024, 1026, 1031] {
            assert_eq!(answer(Architecture::X86_64, 72, [1, command, 0, 0, 0, 0]), ACTION_ERRNO | EPERM);
            assert_eq!(answer(Architecture::Aarch64, 25, [1, command, 0, 0, 0, 0]), ACTION_ERRNO | EPERM);
        }
        // prctl PR_SET_NAME, PR_SET_VMA; PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_PTRACER.
        for (option, expected) in
            [(15, ACTION_ALLOW), (0x5356_4d41, ACTION_ALLOW), (1, EPERM), (4, EPERM), (0x5961_6d61, EPERM)]
        {
            let expected = if expected == EPERM { ACTION_ERRNO | EPERM } else { expected };
            assert_eq!(answer(Architecture::X86_64, 157, [option, 0, 0, 0, 0, 0]), expected, "{option}");
            assert_eq!(answer(Architecture::Aarch64, 167, [option, 0, 0, 0, 0, 0]), expected, "{option}");
        }
        // mmap of a file: private, shared to be read, shared to be written (/dev/zero is memory that no limit counts).
        for (protection, flags, expected) in
            [(3, 0x2, 0), (1, 0x1, 0), (3, 0x1, EPERM), (2, 0x3, EPERM), (1, 0x21, EPERM), (3, 0x4_0022, EPERM)]
        {
            let expected = if expected == 0 { ACTION_ALLOW } else { ACTION_ERRNO | expected };
            let arguments = [0, 4096, protection, flags, 5, 0];
            assert_eq!(answer(Architecture::X86_64, 9, arguments), expected, "{protection} {flags:#x}");
            assert_eq!(answer(Architecture::Aarch64, 222, arguments), expected, "{protection} {flags:#x}");
        }
        assert_eq!(answer(Architecture::X86_64, 16, [1, 0x5421, 0, 0, 0, 0]), ACTION_ALLOW);
        assert_eq!(answer(Architecture::X86_64, 9, [0, 4096, 3, 0x22, 0, 0]), ACTION_ALLOW);
        // openat for reading, for writing, for both; with a mode that is neither; emptying what may only be read.
        for (flags, expected) in [(0o2_000_000, 0), (1, 0), (2, 0), (3, EPERM), (0o20_200_003, EPERM), (0o1000, EPERM)]
        {
            let expected = if expected == 0 { ACTION_ALLOW } else { ACTION_ERRNO | expected };
            assert_eq!(answer(Architecture::X86_64, 257, [0, 0, flags, 0, 0, 0]), expected, "{flags:o}");
            assert_eq!(answer(Architecture::X86_64, 2, [0, flags, 0, 0, 0, 0]), expected, "{flags:o}");
            assert_eq!(answer(Architecture::Aarch64, 56, [0, 0, flags, 0, 0, 0]), expected, "{flags:o}");
        }
        // close_range with CLOSE_RANGE_CLOEXEC, and with CLOSE_RANGE_UNSHARE besides.
        for architecture in ARCHITECTURES {
            assert_eq!(answer(architecture, 436, [3, 9, 4, 0, 0, 0]), ACTION_ALLOW);
            assert_eq!(answer(architecture, 436, [3, 9, 6, 0, 0, 0]), ACTION_ERRNO | EPERM);
        }
    }

    #[test]
    fn other_interfaces_are_closed() {
        let program = &programs(Architecture::X86_64, 1).unwrap()[0];
        // The 32-bit interface, under its own architecture number.
        assert_eq!(run(program, 0x4000_0003, 11, [0; 6]), ACTION_KILL);
        let socket = X32 + 41;
        assert_eq!(run(program, Architecture::X86_64.audit_number(), socket, [0; 6]), ACTION_ERRNO | EPERM);
    }

    #[test]
    fn no_number_stands_for_two_names() {
        for architecture in ARCHITECTURES {
            let mut names: BTreeMap<i64, &str> = BTreeMap::new();
            for (name, x86_64, aarch64, _) in REFUSED.iter().chain(NOT_THERE) {
                let number = if architecture == Architecture::X86_64 { x86_64 } else { aarch64 };
                if let Some(number) = number {
                    assert_eq!(names.insert(*number, name).unwrap_or(name), *name, "{number} on {architecture:?}");
                }
            }
        }
    }
}
