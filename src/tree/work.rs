//! Doing something with every file of a tree on several threads, with the same outcome as on one.
//!
//! Files are handed out in batches of one directory, the largest first, so that a directory is opened once for many
//! files and no thread is left with the big one at the end. Where files are refused, the first in path order counts,
//! whatever order the threads met them in: entries before the first refusal are still looked at, those behind it are
//! not (`contract/surface.md`, "Errors, in general").

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::walk::{Entry, EntryKind};
use crate::failure::{Failure, Result};

/// Files of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The entry of the directory that holds them; nothing for the root.
    pub parent: Option<u32>,
    /// Where they stand in the list of entries, ascending.
    pub files: Vec<u32>,
    bytes: u64,
}

impl Batch {
    /// The same files, a batch each.
    pub fn singly(&self) -> impl Iterator<Item = Self> + '_ {
        self.files.iter().map(|file| Self { parent: self.parent, files: vec![*file], bytes: 0 })
    }
}

/// A batch is closed when it holds this many files …
const MOST_FILES: usize = 64;

/// … or this many bytes: about the work of as many small files.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// More threads than this wait for the file system instead of working.
const MOST_THREADS: usize = 8;

/// How many threads one piece of work uses.
#[must_use]
pub fn thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// Cuts the files of a tree into batches.
///
/// # Errors
/// A tree of more than `u32::MAX` entries.
pub fn batches(entries: &[Entry]) -> Result<Vec<Batch>> {
    let too_many = || Failure::Internal("a tree of more than four billion entries".to_owned());
    // Slot 0 belongs to the root, slot i + 1 to the directory at i.
    let mut open: Vec<Option<Batch>> = vec![None; entries.len() + 1];
    let mut closed = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if entry.kind != EntryKind::File {
            continue;
        }
        let slot = entry.parent.map_or(0, |parent| parent as usize + 1);
        let batch = open[slot].get_or_insert_with(|| Batch { parent: entry.parent, files: Vec::new(), bytes: 0 });
        batch.files.push(u32::try_from(index).map_err(|_| too_many())?);
        batch.bytes += entry.file_size();
        if batch.files.len() >= MOST_FILES || batch.bytes >= MOST_BYTES {
            closed.extend(open[slot].take());
        }
    }
    closed.extend(open.into_iter().flatten());
    closed.sort_by_key(|batch| (std::cmp::Reverse(batch.bytes), batch.files.first().copied()));
    Ok(closed)
}

/// The first refusal in path order so far.
#[derive(Debug)]
struct FirstRefusal {
    index: AtomicUsize,
    failure: Mutex<Option<(usize, Failure)>>,
}

impl FirstRefusal {
    /// Whether the entry comes before every refusal so far, so that it still matters.
    fn matters(&self, index: usize) -> bool {
        index < self.index.load(Ordering::Relaxed)
    }

    fn record(&self, index: usize, failure: Failure) {
        // What ends all of the work is not about one entry: nothing needs to be looked at after it.
        let index = match failure {
            Failure::Aborted | Failure::Hook(_) | Failure::Internal(_) => 0,
            _ => index,
        };
        let mut first = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if first.as_ref().is_none_or(|(known, _)| index < *known) {
            *first = Some((index, failure));
            self.index.fetch_min(index, Ordering::Relaxed);
        }
    }
}

/// Runs `work` for every file, on `threads` threads. `start` makes what a thread keeps between batches; `work` gets it,
/// the batch, and a function that says whether a file of it still matters, and records what it finds in it; it names
/// the entry that it could not do.
///
/// # Errors
/// The first refusal in path order.
pub fn for_each_batch<T: Send>(
    batches: &[Batch],
    threads: usize,
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, &Batch, &dyn Fn(u32) -> bool) -> std::result::Result<(), (u32, Failure)> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let first = FirstRefusal { index: AtomicUsize::new(usize::MAX), failure: Mutex::new(None) };
    let run = || {
        let mut state = start();
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err((index, failure)) = work(&mut state, batch, &|index| first.matters(index as usize)) {
                first.record(index as usize, failure);
            }
        }
        state
    };
    let threads = threads.min(batches.len());
    let mut states = Vec::with_capacity(threads.max(1));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().name("sallyport".to_owned()).spawn_scoped(scope, run).ok())
            .collect();
        states.push(run());
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(_) => first.record(0, Failure::Internal("a worker thread panicked".to_owned())),
            }
        }
    });
    match first.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some((_, failure)) => Err(failure),
        None => Ok(states),
    }
}
