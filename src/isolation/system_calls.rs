//! The system calls that a confined child is refused, as data.
//!
//! A child reads what it was granted, computes, and writes one result to a pipe; all else that a system call could do is
//! refused. What opens files by name stays with Landlock, which can tell one file from another; what changes files
//! without opening them (modes, owners, times, attributes, names) is refused here, because Landlock does not look at it
//! or only since some version. Numbers: the kernel's `syscall_64.tbl` and `asm-generic/unistd.h`.

/// A processor architecture that filters are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// 64-bit Arm. Its filters are checked as programs; they were never run.
    Aarch64,
}

impl Architecture {
    /// The one this program was compiled for.
    #[must_use]
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// Its number in `seccomp_data.arch` (`AUDIT_ARCH_*`).
    #[must_use]
    pub const fn audit_number(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }
}

/// When a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Where the first argument is not the number of this process.
    NotItself,
    /// Where the flags in the first argument do not have this bit.
    Lacks(u64),
    /// Where the third argument is not null: a limit would be set, not asked for.
    SetsLimit,
    /// Where the argument at this place, from 0, is none of these numbers, of 32 bits each.
    Beside(u8, &'static [u64]),
    /// Where the argument at this place, from 0, has all of these bits.
    Bits(u8, u64),
    /// The same of two arguments, each with its place and bits.
    BothBits((u8, u64), (u8, u64)),
}

/// A refused call: its name, its numbers, and when.
pub type Refused = (&'static str, Option<i64>, Option<i64>, When);

/// What of itself a process may ask and set by `prctl`: the name of a thread, the name of a piece of memory (V8 gives
/// those), what cannot be taken back (`PR_SET_NO_NEW_PRIVS`, which installing a filter sets again), and questions. By the
/// rest it could outlive its parent or let others look into it.
const HARMLESS_PRCTL: &[u64] = &[
    2,           // PR_GET_PDEATHSIG
    3,           // PR_GET_DUMPABLE
    15,          // PR_SET_NAME
    16,          // PR_GET_NAME
    21,          // PR_GET_SECCOMP
    23,          // PR_CAPBSET_READ
    38,          // PR_SET_NO_NEW_PRIVS
    39,          // PR_GET_NO_NEW_PRIVS
    51,          // PR_SVE_GET_VL
    56,          // PR_GET_TAGGED_ADDR_CTRL
    64,          // PR_SME_GET_VL
    74,          // PR_GET_SHADOW_STACK_STATUS
    0x5356_4d41, // PR_SET_VMA
];

/// What of a descriptor may be asked and set by `fcntl`: duplicates, flags, locks of ranges (which `SQLite` takes to read),
/// and questions. By the rest it sends signals, watches what is not this process's, or takes memory.
const HARMLESS_FCNTL: &[u64] = &[
    0,    // F_DUPFD
    1,    // F_GETFD
    2,    // F_SETFD
    3,    // F_GETFL
    4,    // F_SETFL
    5,    // F_GETLK
    6,    // F_SETLK
    7,    // F_SETLKW
    36,   // F_OFD_GETLK
    37,   // F_OFD_SETLK
    38,   // F_OFD_SETLKW
    1030, // F_DUPFD_CLOEXEC
    1032, // F_GETPIPE_SZ
    1034, // F_GET_SEALS
];

/// What of a descriptor may be asked and set by `ioctl`: whether it blocks and is closed on exec, how much can be read, and
/// whether it is a terminal. Everything else can change a file that was only granted for reading.
const HARMLESS_IOCTL: &[u64] = &[0x5401, 0x802c_542a, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451];

/// `MAP_SHARED`, of which `MAP_SHARED_VALIDATE` has the bit too. `SQLite` maps the index of a log so, to read it.
const SHARED: u64 = 0x1;

/// `PROT_WRITE`: where it is shared and the file is `/dev/zero`, that is memory that `RLIMIT_DATA` does not count. What is
/// mapped to be read can be made writable later where the file was opened for writing, which is for Landlock to refuse.
const WRITE: u64 = 0x2;

/// `MAP_SHARED | MAP_ANONYMOUS`: likewise.
const SHARED_ANONYMOUS: u64 = 0x21;

/// `MAP_GROWSDOWN`: likewise.
const GROWS_DOWN: u64 = 0x100;

/// `MAP_HUGETLB`: pages that the machine keeps for who asks first, and that nothing counts once they are read-only.
const HUGE_PAGES: u64 = 0x4_0000;

/// `CLONE_THREAD`: a thread, not a new process.
const CLONE_THREAD: u64 = 0x0001_0000;

/// `CLONE_SIGHAND`, which the kernel itself demands of a thread.
const CLONE_SIGHAND: u64 = 0x800;

/// `CLONE_FILES`: with the descriptors of all others, so that their limit is one for the process.
const CLONE_FILES: u64 = 0x400;

/// `CLONE_FS`: with the working directory and mask of all others.
const CLONE_FS: u64 = 0x200;

/// `CLONE_VM`, as `CLONE_SIGHAND`.
const CLONE_VM: u64 = 0x100;

/// `CLOSE_RANGE_UNSHARE`: a thread would get descriptors of its own, and with them a limit of its own.
const CLOSE_RANGE_UNSHARE: u64 = 2;

/// `O_ACCMODE`: neither reading nor writing, for which Landlock asks for no right; yet a device is opened by it, and
/// with `O_TMPFILE` a file made.
const NO_ACCESS: u64 = 3;

/// `O_TRUNC`: Landlock asks for a right to it only from its version 3 on.
const TRUNCATES: u64 = 0o1000;

/// A call of `clone` without one of the flags that every thread of the C libraries has.
const fn clone_without(flag: u64) -> Refused {
    ("clone", Some(56), Some(220), When::Lacks(flag))
}

const fn both(name: &'static str, x86_64: i64, aarch64: i64) -> Refused {
    (name, Some(x86_64), Some(aarch64), When::Always)
}

/// A call that only x86-64 has; newer architectures never got it.
const fn old(name: &'static str, x86_64: i64) -> Refused {
    (name, Some(x86_64), None, When::Always)
}

/// A call with the same number everywhere, as all have since 424.
const fn new(name: &'static str, number: i64) -> Refused {
    both(name, number, number)
}

/// Refused with EPERM.
pub const REFUSED: &[Refused] = &[
    // Network, of every family: there is no socket to be had.
    both("socket", 41, 198),
    both("socketpair", 53, 199),
    both("connect", 42, 203),
    both("bind", 49, 200),
    both("listen", 50, 201),
    both("accept", 43, 202),
    both("accept4", 288, 242),
    both("sendto", 44, 206),
    both("sendmsg", 46, 211),
    both("sendmmsg", 307, 269),
    both("recvmsg", 47, 212),
    both("recvmmsg", 299, 243),
    // Processes: threads only, and no program but by a name that Landlock can judge.
    clone_without(CLONE_THREAD),
    clone_without(CLONE_FILES),
    clone_without(CLONE_FS),
    clone_without(CLONE_SIGHAND),
    clone_without(CLONE_VM),
    ("close_range", Some(436), Some(436), When::Bits(2, CLOSE_RANGE_UNSHARE)),
    old("fork", 57),
    old("vfork", 58),
    both("execveat", 322, 281),
    // Other processes.
    ("kill", Some(62), Some(129), When::NotItself),
    ("tgkill", Some(234), Some(131), When::NotItself),
    both("tkill", 200, 130),
    both("rt_sigqueueinfo", 129, 138),
    both("rt_tgsigqueueinfo", 297, 240),
    both("ptrace", 101, 117),
    both("process_vm_readv", 310, 270),
    both("process_vm_writev", 311, 271),
    both("kcmp", 312, 272),
    ("fcntl", Some(72), Some(25), When::Beside(1, HARMLESS_FCNTL)),
    ("ioctl", Some(16), Some(29), When::Beside(1, HARMLESS_IOCTL)),
    both("setpriority", 141, 140),
    both("ioprio_set", 251, 30),
    both("sched_setparam", 142, 118),
    both("sched_setscheduler", 144, 119),
    both("sched_setaffinity", 203, 122),
    both("sched_setattr", 314, 274),
    both("migrate_pages", 256, 238),
    both("move_pages", 279, 239),
    new("pidfd_send_signal", 424),
    new("pidfd_open", 434),
    new("pidfd_getfd", 438),
    new("process_madvise", 440),
    new("process_mrelease", 448),
    // Files changed without being opened, and ways to open them that no rule sees.
    both("truncate", 76, 45),
    ("open", Some(2), None, When::Bits(1, NO_ACCESS)),
    ("open", Some(2), None, When::Bits(1, TRUNCATES)),
    ("openat", Some(257), Some(56), When::Bits(2, NO_ACCESS)),
    ("openat", Some(257), Some(56), When::Bits(2, TRUNCATES)),
    old("rename", 82),
    both("renameat", 264, 38),
    both("renameat2", 316, 276),
    old("mkdir", 83),
    both("mkdirat", 258, 34),
    old("rmdir", 84),
    old("creat", 85),
    old("link", 86),
    both("linkat", 265, 37),
    old("unlink", 87),
    both("unlinkat", 263, 35),
    old("symlink", 88),
    both("symlinkat", 266, 36),
    old("mknod", 133),
    both("mknodat", 259, 33),
    old("chmod", 90),
    both("fchmod", 91, 52),
    both("fchmodat", 268, 53),
    new("fchmodat2", 452),
    old("chown", 92),
    old("lchown", 94),
    both("fchown", 93, 55),
    both("fchownat", 260, 54),
    old("utime", 132),
    old("utimes", 235),
    old("futimesat", 261),
    both("utimensat", 280, 88),
    both("setxattr", 188, 5),
    both("lsetxattr", 189, 6),
    both("fsetxattr", 190, 7),
    new("setxattrat", 463),
    both("getxattr", 191, 8),
    both("lgetxattr", 192, 9),
    both("fgetxattr", 193, 10),
    new("getxattrat", 464),
    both("listxattr", 194, 11),
    both("llistxattr", 195, 12),
    both("flistxattr", 196, 13),
    new("listxattrat", 465),
    both("removexattr", 197, 14),
    both("lremovexattr", 198, 15),
    both("fremovexattr", 199, 16),
    new("removexattrat", 466),
    new("file_setattr", 469),
    both("name_to_handle_at", 303, 264),
    both("open_by_handle_at", 304, 265),
    both("fanotify_init", 300, 262),
    old("inotify_init", 253),
    both("inotify_init1", 294, 26),
    both("inotify_add_watch", 254, 27),
    // A lock keeps other programs waiting.
    both("flock", 73, 32),
    both("sync", 162, 81),
    both("syncfs", 306, 267),
    both("acct", 163, 89),
    both("quotactl", 179, 60),
    new("quotactl_fd", 443),
    // Mounts and namespaces.
    both("mount", 165, 40),
    both("umount2", 166, 39),
    both("pivot_root", 155, 41),
    both("chroot", 161, 51),
    both("unshare", 272, 97),
    both("setns", 308, 268),
    new("open_tree", 428),
    new("move_mount", 429),
    new("fsopen", 430),
    new("fsconfig", 431),
    new("fsmount", 432),
    new("fspick", 433),
    new("mount_setattr", 442),
    new("statmount", 457),
    new("listmount", 458),
    new("open_tree_attr", 467),
    // Layers of its own: the kernel keeps the rules and programs of each, for every thread, and counts them for nobody.
    new("landlock_create_ruleset", 444),
    new("landlock_add_rule", 445),
    new("landlock_restrict_self", 446),
    both("seccomp", 317, 277),
    // Memory that no limit counts, and shared memory of other processes.
    ("mmap", Some(9), Some(222), When::Bits(3, SHARED_ANONYMOUS)),
    ("mmap", Some(9), Some(222), When::BothBits((3, SHARED), (2, WRITE))),
    ("mmap", Some(9), Some(222), When::Bits(3, GROWS_DOWN)),
    ("mmap", Some(9), Some(222), When::Bits(3, HUGE_PAGES)),
    new("map_shadow_stack", 453),
    both("remap_file_pages", 216, 234),
    // Pages that are kept in a pipe are counted for nobody.
    both("vmsplice", 278, 75),
    both("splice", 275, 76),
    both("tee", 276, 77),
    both("memfd_create", 319, 279),
    new("memfd_secret", 447),
    both("shmget", 29, 194),
    both("shmat", 30, 196),
    both("shmctl", 31, 195),
    both("semget", 64, 190),
    both("semop", 65, 193),
    both("semctl", 66, 191),
    both("semtimedop", 220, 192),
    both("shmdt", 67, 197),
    both("msgget", 68, 186),
    both("msgsnd", 69, 189),
    both("msgrcv", 70, 188),
    both("msgctl", 71, 187),
    both("mq_open", 240, 180),
    both("mq_unlink", 241, 181),
    both("mq_timedsend", 242, 182),
    both("mq_timedreceive", 243, 183),
    both("mq_notify", 244, 184),
    both("mq_getsetattr", 245, 185),
    // Limits and identity.
    ("prlimit64", Some(302), Some(261), When::SetsLimit),
    both("setrlimit", 160, 164),
    ("prctl", Some(157), Some(167), When::Beside(0, HARMLESS_PRCTL)),
    both("setuid", 105, 146),
    both("setgid", 106, 144),
    both("setreuid", 113, 145),
    both("setregid", 114, 143),
    both("setresuid", 117, 147),
    both("setresgid", 119, 149),
    both("setfsuid", 122, 151),
    both("setfsgid", 123, 152),
    both("setgroups", 116, 159),
    both("capset", 126, 91),
    both("personality", 135, 92),
    // The kernel's wide and rarely walked surface.
    both("bpf", 321, 280),
    both("userfaultfd", 323, 282),
    both("perf_event_open", 298, 241),
    both("add_key", 248, 217),
    both("request_key", 249, 218),
    both("keyctl", 250, 219),
    both("io_setup", 206, 0),
    new("io_uring_setup", 425),
    new("io_uring_enter", 426),
    new("io_uring_register", 427),
    old("modify_ldt", 154),
    old("iopl", 172),
    old("ioperm", 173),
    both("lookup_dcookie", 212, 18),
    both("syslog", 103, 116),
    both("vhangup", 153, 58),
    // The machine.
    both("reboot", 169, 142),
    both("swapon", 167, 224),
    both("swapoff", 168, 225),
    both("sethostname", 170, 161),
    both("setdomainname", 171, 162),
    both("settimeofday", 164, 170),
    both("clock_settime", 227, 112),
    both("adjtimex", 159, 171),
    both("clock_adjtime", 305, 266),
    both("init_module", 175, 105),
    both("finit_module", 313, 273),
    both("delete_module", 176, 106),
    both("kexec_load", 246, 104),
    both("kexec_file_load", 320, 294),
];

/// Refused with ENOSYS, so that who calls falls back to a call whose arguments a filter can see: `clone`, `openat`.
pub const NOT_THERE: &[Refused] = &[new("clone3", 435), new("openat2", 437)];

/// The newest call that was looked at. What comes after it is ENOSYS: nobody here has judged it.
pub const NEWEST: u32 = 469;

/// x86-64 numbers from here on are the x32 interface, where every call has a second number.
pub const X32: u32 = 0x4000_0000;
