//! Reading to the end, copying and comparing, a chunk at a time.
//!
//! A file is read to its end, not to its size, and every chunk is handed to the caller before the next one is read:
//! that is where limits, deadlines and aborts are looked at. The look at the file that follows the last read tells that
//! it was the last, and is given to the caller: what must be confirmed after the last byte needs no look of its own. Memory is one or two chunks. Functions fail with what the
//! caller's `on_chunk` gives, or with the operation that failed, told apart by [`StreamFailure`].

use super::directory::{Directory, File};
use super::identity::{Metadata, NodeType};
use super::operation::OperationError;

/// The chunk size where nobody looks between the chunks: large enough that the calls do not count, small enough that
/// two of them stay in a core's second-level cache.
pub const CHUNK: usize = 256 * 1024;

/// Why a stream ended early.
#[derive(Debug)]
pub enum StreamFailure<E> {
    /// Reading the first file failed.
    Source(OperationError),
    /// Reading or writing the second file failed.
    Destination(OperationError),
    /// The caller stopped it.
    Stopped(E),
    /// The two files differ.
    Differ,
}

/// The end of a file that was read.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// How many bytes were read.
    pub bytes: u64,
    /// The look at the file after the last of them.
    pub after: Metadata,
}

/// Reads a file to its end and hands every chunk to `on_chunk`.
///
/// # Errors
/// [`StreamFailure::Source`], [`StreamFailure::Stopped`].
pub fn read_to_end<E>(
    source: &File,
    buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<End, StreamFailure<E>> {
    let mut position = 0;
    loop {
        let count = source.read(buffer).map_err(StreamFailure::Source)?;
        if count > 0 {
            on_chunk(&buffer[..count]).map_err(StreamFailure::Stopped)?;
            position += count as u64;
        }
        if let Some(end) = end_at(source, count, buffer.len(), position).map_err(StreamFailure::Source)? {
            return Ok(end);
        }
    }
}

/// Copies a file to its end; every chunk is handed to `on_chunk` before it is written, and `after_chunk` is called with
/// its length and the position after it.
///
/// # Errors
/// [`StreamFailure`], all but `Differ`.
pub fn copy_to_end<E>(
    source: &File,
    destination: &File,
    buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
    mut after_chunk: impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<End, StreamFailure<E>> {
    let mut position = 0;
    loop {
        let count = source.read(buffer).map_err(StreamFailure::Source)?;
        if count > 0 {
            on_chunk(&buffer[..count]).map_err(StreamFailure::Stopped)?;
            destination.write_all(&buffer[..count]).map_err(StreamFailure::Destination)?;
            position += count as u64;
            after_chunk(count as u64, position).map_err(StreamFailure::Stopped)?;
        }
        if let Some(end) = end_at(source, count, buffer.len(), position).map_err(StreamFailure::Source)? {
            return Ok(end);
        }
    }
}

/// Reads two files side by side and compares them byte for byte; every chunk of the first is handed to `on_chunk`.
/// Gives the end of each where they are equal.
///
/// # Errors
/// [`StreamFailure`].
pub fn compare_to_end<E>(
    source: &File,
    copy: &File,
    buffer: &mut [u8],
    copy_buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(End, End), StreamFailure<E>> {
    let mut position = 0;
    loop {
        let count = source.read(buffer).map_err(StreamFailure::Source)?;
        if count > 0 {
            on_chunk(&buffer[..count]).map_err(StreamFailure::Stopped)?;
        }
        // A read may give less than was asked for, so the second file is read up to the same position. At the end of
        // the first, one byte is asked for: the second must end there too.
        let wanted = count.max(1);
        let mut filled = 0;
        while filled < wanted {
            let more = copy.read(&mut copy_buffer[filled..wanted]).map_err(StreamFailure::Destination)?;
            if more == 0 {
                break;
            }
            filled += more;
        }
        if buffer[..count] != copy_buffer[..filled] {
            return Err(StreamFailure::Differ);
        }
        position += count as u64;
        if let Some(end) = end_at(source, count, buffer.len(), position).map_err(StreamFailure::Source)?
            && let Some(copy_end) = end_at(copy, count, buffer.len(), position).map_err(StreamFailure::Destination)?
        {
            return Ok((end, copy_end));
        }
    }
}

/// Whether a read that gave `count` bytes of `wanted` was the last one: if it gave none, or fewer than were wanted and
/// the file is exactly as long as what was read by now. Anything else is read on: a file that grows is read to its new
/// end, and one whose size says nothing until a read gives nothing.
fn end_at(file: &File, count: usize, wanted: usize, position: u64) -> Result<Option<End>, OperationError> {
    if count == wanted {
        return Ok(None);
    }
    let after = file.metadata()?;
    Ok((count == 0 || after.identity.size == position).then_some(End { bytes: position, after }))
}

/// The content of a regular file of at most `limit` bytes in a directory.
///
/// Nothing where it is no regular file, which then is not even opened, is larger, or cannot be read: for files that are
/// optional all of these mean the same, that there is none to go by. No link is followed, no writer of a pipe waited
/// for.
#[must_use]
pub fn read_small_file(directory: &Directory, name: &[u8], limit: usize) -> Option<Vec<u8>> {
    let is_file = |metadata: Metadata| metadata.node_type == NodeType::File;
    if !directory.metadata_of(name).is_ok_and(is_file) {
        return None;
    }
    let file = directory.open_file(name).ok()?;
    if !file.metadata().is_ok_and(is_file) {
        return None;
    }
    let mut content = Vec::new();
    let mut buffer = [0; 4096];
    while content.len() <= limit {
        match file.read(&mut buffer).ok()? {
            0 => return Some(content),
            count => content.extend_from_slice(&buffer[..count]),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::fs::Beneath;

    struct Files {
        _guard: tempfile::TempDir,
        root: std::path::PathBuf,
        directory: Directory,
    }

    impl Files {
        fn new(files: &[(&str, &str)]) -> Self {
            let guard = tempfile::tempdir().unwrap();
            let root = guard.path().canonicalize().unwrap();
            for (name, content) in files {
                std::fs::write(root.join(name), content).unwrap();
            }
            let directory = Directory::open_canonical(&root, Beneath::detected()).unwrap();
            Self { _guard: guard, root, directory }
        }

        fn open(&self, name: &str) -> File {
            self.directory.open_file(name.as_bytes()).unwrap()
        }

        fn append(&self, name: &str, content: &str) {
            let mut file = std::fs::OpenOptions::new().append(true).open(self.root.join(name)).unwrap();
            file.write_all(content.as_bytes()).unwrap();
        }
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_read_to_its_new_end() {
        let files = Files::new(&[("a", "0123456789"), ("b", "0123456789")]);
        let mut left = 3;
        let mut all = Vec::new();
        let end = read_to_end(&files.open("a"), &mut [0; 16], |chunk| {
            all.extend_from_slice(chunk);
            if left > 0 {
                left -= 1;
                files.append("a", "more");
            }
            Ok::<_, ()>(())
        });
        assert_eq!(all, b"0123456789moremoremore");
        assert_eq!(end.unwrap().bytes, 22);
        let compared = compare_to_end(&files.open("b"), &files.open("b"), &mut [0; 16], &mut [0; 16], |_| {
            files.append("b", &"x".repeat(if files.open("b").metadata().unwrap().identity.size < 30 { 10 } else { 0 }));
            Ok::<_, ()>(())
        });
        assert_eq!(compared.unwrap().0.bytes, 30);
    }

    #[test]
    fn what_follows_in_the_second_file_alone_is_a_difference() {
        for length in [0, 4, 10, 20] {
            let content = "x".repeat(length);
            let files = Files::new(&[("a", &content), ("same", &content), ("longer", &format!("{content}y"))]);
            let compare = |name: &str| {
                compare_to_end(&files.open("a"), &files.open(name), &mut [0; 10], &mut [0; 10], |_| Ok::<_, ()>(()))
            };
            let (end, copy_end) = compare("same").unwrap();
            assert_eq!((end.bytes, copy_end.bytes), (length as u64, length as u64));
            assert!(matches!(compare("longer"), Err(StreamFailure::Differ)), "{length}");
        }
    }

    #[test]
    fn small_files_only_are_read() {
        let files = Files::new(&[("f", "12345"), ("large", &"x".repeat(9000))]);
        std::fs::create_dir(files.root.join("d")).unwrap();
        std::os::unix::fs::symlink("f", files.root.join("l")).unwrap();
        let bits = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, files.root.join("p"), rustix::fs::FileType::Fifo, bits, 0).unwrap();
        let read = |name: &str, limit| read_small_file(&files.directory, name.as_bytes(), limit);
        assert_eq!(read("f", 5).as_deref(), Some(b"12345".as_slice()));
        assert_eq!(read("large", 9000).map(|content| content.len()), Some(9000));
        for (name, limit) in [("f", 4), ("large", 8999), ("l", 5), ("p", 5), ("d", 5), ("none", 5)] {
            assert_eq!(read(name, limit), None, "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_size_says_nothing_is_read_until_nothing_comes() {
        let directory = Directory::open_canonical(std::path::Path::new("/proc"), Beneath::detected()).unwrap();
        let mut bytes = 0;
        let end = read_to_end(&directory.open_file(b"cpuinfo").unwrap(), &mut [0; 4096], |chunk| {
            bytes += chunk.len() as u64;
            Ok::<_, ()>(())
        });
        let end = end.unwrap();
        assert!(bytes > 0);
        assert_eq!((end.bytes, end.after.identity.size), (bytes, 0));
    }
}
