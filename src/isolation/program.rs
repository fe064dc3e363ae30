//! What a program needs to start: its dynamic loader and the libraries that it loads.
//!
//! The loader is named in the program's own header; the loader itself tells the libraries (`ld.so --list`), since only it
//! knows how it searches. A static program needs neither. Fails with a sentence for a person.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::fs::absolute::{read_start, real_path};

/// More than the headers of any program take.
const HEADERS: usize = 64 * 1024;

/// The files that a program needs to start, canonical.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramFiles {
    /// The dynamic loader.
    pub loader: Option<String>,
    /// The libraries, and the loader's cache where there is one.
    pub libraries: Vec<String>,
}

/// Finds what a program needs.
///
/// # Errors
/// A sentence for a person: it cannot be read, is no program of this system, or its loader does not tell.
pub fn program_files(program: &Path) -> Result<ProgramFiles, String> {
    let start = read_start(program, HEADERS).map_err(|failure| failure.to_string())?;
    let loader = match header(&start) {
        Header::NoProgram => return Err(format!("{} is no 64-bit ELF program", program.display())),
        Header::Static => return Ok(ProgramFiles::default()),
        Header::Loader(loader) => loader,
    };
    let loader = real_path(Path::new(loader), "realpath").map_err(|failure| failure.to_string())?;
    let listed = Command::new(&loader)
        .arg("--list")
        .arg(program)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be asked for the libraries: {error}", loader.display()))?;
    if !listed.status.success() {
        let words = String::from_utf8_lossy(&listed.stderr);
        return Err(format!("{} does not tell the libraries of {}: {words}", loader.display(), program.display()));
    }
    let text = String::from_utf8_lossy(&listed.stdout);
    let mut libraries: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let path = line.split_once("=>").map_or(line, |(_, path)| path).trim();
            let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
            let real = path.starts_with('/').then(|| real_path(Path::new(path), "realpath").ok())??;
            Some(real.to_string_lossy().into_owned())
        })
        .collect();
    libraries
        .extend(real_path(Path::new("/etc/ld.so.cache"), "realpath").map(|path| path.to_string_lossy().into_owned()));
    libraries.sort();
    libraries.dedup();
    Ok(ProgramFiles { loader: Some(loader.to_string_lossy().into_owned()), libraries })
}

/// What the header of a program says of its loader.
#[derive(Debug, PartialEq, Eq)]
enum Header<'a> {
    /// It is no 64-bit little-endian ELF program, or a damaged one.
    NoProgram,
    /// It needs no loader.
    Static,
    /// It names this one.
    Loader(&'a str),
}

/// The type of the program header that names the loader, elf(5).
const PT_INTERP: usize = 3;

fn header(start: &[u8]) -> Header<'_> {
    let number = |offset: usize, length: usize| -> Option<usize> {
        let bytes = start.get(offset..offset.checked_add(length)?)?;
        usize::try_from(bytes.iter().rev().fold(0_u64, |value, byte| (value << 8) | u64::from(*byte))).ok()
    };
    // Offsets of the ELF header and of program headers, elf(5).
    let loader = || -> Option<Header<'_>> {
        if start.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        for index in 0..count {
            let header = table.checked_add(index.checked_mul(size)?)?;
            if number(header, 4)? == PT_INTERP {
                let (offset, length) = (number(header.checked_add(8)?, 8)?, number(header.checked_add(32)?, 8)?);
                let name = start.get(offset..offset.checked_add(length)?)?;
                return Some(Header::Loader(std::str::from_utf8(name).ok()?.trim_end_matches('\0')));
            }
        }
        Some(Header::Static)
    };
    loader().unwrap_or(Header::NoProgram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_names_its_loader_and_libraries() {
        let files = program_files(Path::new("/bin/sh").canonicalize().unwrap().as_path()).unwrap();
        assert!(files.loader.is_some_and(|loader| loader.contains("ld")));
        assert!(files.libraries.iter().any(|library| library.contains("libc")));
    }

    #[test]
    fn what_is_no_program_is_told() {
        assert_eq!(header(b"#!/bin/sh"), Header::NoProgram);
        assert_eq!(header(b"\x7fELF\x02\x01 and nothing more"), Header::NoProgram);
        assert!(program_files(Path::new("/etc/passwd")).is_err());
    }
}
