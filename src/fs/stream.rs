//! Reading to the end, copying and comparing, a chunk at a time.
//!
//! A file is read to its end, not to its size, and every chunk is handed to the caller before the next one is read:
//! that is where limits, deadlines and aborts are looked at. Memory is one or two chunks. Functions fail with what the
//! caller's `on_chunk` gives, or with the operation that failed, told apart by [`StreamFailure`].

use super::directory::File;
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

/// Reads a file to its end and hands every chunk to `on_chunk`. Gives the number of bytes.
///
/// # Errors
/// [`StreamFailure::Source`], [`StreamFailure::Stopped`].
pub fn read_to_end<E>(
    source: &File,
    buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, StreamFailure<E>> {
    let mut position = 0;
    loop {
        let count = source.read(buffer).map_err(StreamFailure::Source)?;
        if count == 0 {
            return Ok(position);
        }
        on_chunk(&buffer[..count]).map_err(StreamFailure::Stopped)?;
        position += count as u64;
    }
}

/// Copies a file to its end; every chunk is handed to `on_chunk` before it is written, and `after_chunk` is called with
/// its length and the position after it. Gives the number of bytes.
///
/// # Errors
/// [`StreamFailure`], all but `Differ`.
pub fn copy_to_end<E>(
    source: &File,
    destination: &File,
    buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
    mut after_chunk: impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<u64, StreamFailure<E>> {
    let mut position = 0;
    loop {
        let count = source.read(buffer).map_err(StreamFailure::Source)?;
        if count == 0 {
            return Ok(position);
        }
        on_chunk(&buffer[..count]).map_err(StreamFailure::Stopped)?;
        destination.write_all(&buffer[..count]).map_err(StreamFailure::Destination)?;
        position += count as u64;
        after_chunk(count as u64, position).map_err(StreamFailure::Stopped)?;
    }
}

/// Reads two files side by side and compares them byte for byte; every chunk of the first is handed to `on_chunk`.
/// Gives the number of bytes where they are equal.
///
/// # Errors
/// [`StreamFailure`].
pub fn compare_to_end<E>(
    source: &File,
    copy: &File,
    buffer: &mut [u8],
    copy_buffer: &mut [u8],
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, StreamFailure<E>> {
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
        if count == 0 {
            return Ok(position);
        }
        position += count as u64;
    }
}
