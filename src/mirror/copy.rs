//! Writing the copy: directories first, then links and files, then the directories' own bits and times, deepest first.
//!
//! Every file is hashed while it is copied; that is the first of the two readings of the source. Fails with
//! `contained_execution_source_changed` where the source is no longer what the plan saw, with a quota where it grew past
//! a limit, with the system's error where the copy cannot be written.

use super::MirrorRequest;
use super::hooks::Hooks;
use super::plan::Plan;
use crate::failure::{Failure, Result};
use crate::fs::directory::join_bytes;
use crate::fs::stream::{CHUNK, copy_to_end};
use crate::fs::{Directory, Metadata, NodeType, OperationError};
use crate::tree::control::Control;
use crate::tree::hash::{ContentHasher, HexDigest};
use crate::tree::quota::Allowance;
use crate::tree::read::{self, Links};
use crate::tree::walk::{Entry, EntryKind, Root};
use crate::tree::work::{Batch, batches, for_each_batch};

/// The chunk of the reference. Tests that count chunks through the seams expect it.
const HOOKED_CHUNK: usize = 64 * 1024;

struct Copying<'a> {
    request: &'a MirrorRequest,
    plan: &'a Plan,
    source: Root<'a>,
    copy: Root<'a>,
    control: &'a Control<'a>,
    hooks: &'a dyn Hooks,
    source_bytes: Allowance,
    workspace_bytes: Allowance,
}

/// Copies everything that was planned, and gives the content hash of every file at its entry.
///
/// # Errors
/// See the module; the first in path order.
pub fn copy(
    request: &MirrorRequest,
    plan: &Plan,
    source: Root<'_>,
    copy: Root<'_>,
    threads: usize,
    control: &Control<'_>,
    hooks: &dyn Hooks,
) -> Result<Vec<Option<HexDigest>>> {
    let link_bytes: u64 = plan.entries.iter().filter_map(Entry::target).map(|target| target.len() as u64).sum();
    let work = Copying {
        request,
        plan,
        source,
        copy,
        control,
        hooks,
        source_bytes: Allowance::new(Some(plan.quotas.source_bytes), plan.bytes),
        workspace_bytes: Allowance::new(Some(plan.quotas.workspace_bytes), plan.bytes + link_bytes),
    };
    work.create_directories()?;
    work.create_symlinks()?;
    let contents = work.copy_files(threads)?;
    work.finish_directories()?;
    Ok(contents)
}

/// An open directory of a tree that is visited in path order: neighbours share it.
struct LastDirectory {
    parent: Option<u32>,
    directory: Directory,
}

fn directory_of<'a>(
    root: Root<'_>,
    entries: &[Entry],
    last: &'a mut Option<LastDirectory>,
    parent: Option<u32>,
) -> Result<&'a Directory> {
    let held = match last.take() {
        Some(held) if held.parent == parent => held,
        _ => {
            let path: &[u8] = parent.map_or(b"", |parent| &entries[parent as usize].path);
            let directory = root.directory.open_directory(path).map_err(|error| error.beneath(root.path, path))?;
            LastDirectory { parent, directory }
        }
    };
    Ok(&last.insert(held).directory)
}

/// The bits that a copy has until it has been verified: its own, and those without which its owner, who is not always
/// the one of the source, could not read it back.
pub(super) fn readable_permissions(entry: &Entry) -> u32 {
    entry.permissions()
        | match entry.kind {
            EntryKind::Directory => 0o500,
            EntryKind::File | EntryKind::Symlink(_) => 0o400,
        }
}

/// Gives what had to stay readable its own bits, deepest first. What was verified is what is changed: a node that is not
/// as the last reading left it is a change.
///
/// # Errors
/// `contained_execution_source_changed`; the system's error where the copy cannot be changed; what the control says.
pub(super) fn give_final_permissions(plan: &Plan, copy: Root<'_>, control: &Control<'_>) -> Result<()> {
    let is_kept_readable = |entry: &&Entry| {
        !matches!(entry.kind, EntryKind::Symlink(_)) && readable_permissions(entry) != entry.permissions()
    };
    for entry in plan.entries.iter().rev().filter(is_kept_readable) {
        control.checkpoint()?;
        let failed = |error: OperationError| copy.failure(error, &entry.path);
        let look = |found: Metadata| {
            let same = found.permissions() == readable_permissions(entry);
            if same { Ok(()) } else { Err(read::changed(entry)) }
        };
        if entry.kind == EntryKind::Directory {
            let directory = copy.directory.open_directory(&entry.path).map_err(failed)?;
            look(directory.metadata().map_err(failed)?)?;
            directory.set_permissions(entry.permissions()).map_err(failed)?;
        } else {
            let file = copy.directory.open_file(&entry.path).map_err(failed)?;
            look(file.metadata().map_err(failed)?)?;
            file.set_permissions(entry.permissions()).map_err(failed)?;
        }
    }
    Ok(())
}

impl Copying<'_> {
    fn failed(&self, entry: &Entry) -> impl Fn(OperationError) -> Failure {
        let (root, path) = (self.copy.path.to_path_buf(), entry.path.clone());
        move |error| error.beneath(&root, &path)
    }

    fn create_directories(&self) -> Result<()> {
        let entries = &self.plan.entries;
        let mut last = None;
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Directory) {
            self.control.checkpoint()?;
            let parent = directory_of(self.copy, entries, &mut last, entry.parent)?;
            parent.create_directory(entry.name()).map_err(self.failed(entry))?;
            self.control.advance(1, 0);
        }
        Ok(())
    }

    /// Copies the links, each of which must still be what the plan saw.
    fn create_symlinks(&self) -> Result<()> {
        let entries = &self.plan.entries;
        let (mut last_source, mut last_copy) = (None, None);
        for entry in entries {
            let Some(target) = entry.target() else { continue };
            self.control.checkpoint()?;
            let look = |error: OperationError| self.source.failure(error, &entry.path);
            let from = match directory_of(self.source, entries, &mut last_source, entry.parent) {
                Err(Failure::System(_)) => return Err(read::changed(entry)),
                other => other?,
            };
            let current = from.target_of(entry.name()).map_err(look)?;
            let metadata: Metadata = from.metadata_of(entry.name()).map_err(look)?;
            if metadata.node_type != NodeType::Symlink || metadata.identity != entry.identity || *current != *target {
                return Err(read::changed(entry));
            }
            let times = self.request.preserve_times.then_some(metadata.times);
            directory_of(self.copy, entries, &mut last_copy, entry.parent)?
                .create_symlink(entry.name(), target, times)
                .map_err(self.failed(entry))?;
            self.control.advance(1, 0);
        }
        Ok(())
    }

    fn copy_files(&self, threads: usize) -> Result<Vec<Option<HexDigest>>> {
        let entries = &self.plan.entries;
        let chunk = if self.hooks.any() { HOOKED_CHUNK } else { CHUNK };
        let mut batches = batches(entries)?;
        if self.hooks.any() {
            // In path order, a file at a time.
            batches = in_path_order(&batches);
        }
        let states = for_each_batch(
            &batches,
            threads,
            || (Vec::<(u32, HexDigest)>::new(), vec![0; chunk]),
            |(hashed, buffer), batch, matters| self.copy_batch(batch, matters, hashed, buffer),
        )?;
        let mut contents = vec![None; entries.len()];
        for (index, content) in states.into_iter().flat_map(|(hashed, _)| hashed) {
            contents[index as usize] = Some(content);
        }
        Ok(contents)
    }

    fn copy_batch(
        &self,
        batch: &Batch,
        matters: &dyn Fn(u32) -> bool,
        hashed: &mut Vec<(u32, HexDigest)>,
        buffer: &mut [u8],
    ) -> std::result::Result<(), (u32, Failure)> {
        let Some(&first) = batch.files.first().filter(|first| matters(**first)) else { return Ok(()) };
        let entries = &self.plan.entries;
        if self.hooks.any() {
            // With seams a batch is one file, so this is before anything on the way to it is opened.
            self.control.checkpoint().map_err(|failure| (first, failure))?;
            let path = join_bytes(self.source.path, &entries[first as usize].path);
            self.hooks.before_copy_open(&path).map_err(|failure| (first, failure))?;
        }
        let from = read::open_parent(self.source, entries, batch.parent).map_err(|failure| (first, failure))?;
        let path: &[u8] = batch.parent.map_or(b"", |parent| &entries[parent as usize].path);
        let into = self.copy.directory.open_directory(path).map_err(|error| error.beneath(self.copy.path, path));
        let into = into.map_err(|failure| (first, failure))?;
        for &index in batch.files.iter().take_while(|index| matters(**index)) {
            let content =
                self.copy_file(&from, &into, &entries[index as usize], buffer).map_err(|failure| (index, failure))?;
            hashed.push((index, content));
        }
        Ok(())
    }

    fn copy_file(&self, from: &Directory, into: &Directory, entry: &Entry, buffer: &mut [u8]) -> Result<HexDigest> {
        self.control.checkpoint()?;
        let hooked = self.hooks.any().then(|| join_bytes(self.source.path, &entry.path));
        let links: Links = self.request.links;
        let opened = read::open(self.source, from, entry, links)?;
        let destination = into.create_file(entry.name()).map_err(self.failed(entry))?;
        let mut hasher = ContentHasher::default();
        let mut reached = 0;
        let end = copy_to_end(
            &opened.file,
            &destination,
            buffer,
            |chunk| {
                self.control.checkpoint()?;
                reached += chunk.len() as u64;
                let allowances = [&self.source_bytes, &self.workspace_bytes];
                read::refuse_growth(self.source, &opened, entry, reached, &allowances)?;
                hasher.update(chunk);
                Ok(())
            },
            |length, total| {
                self.control.advance(0, length);
                hooked.as_ref().map_or(Ok(()), |path| self.hooks.after_copy_read(path, length, total))
            },
        )
        .map_err(|failure| read::stream_failure(self.source, self.copy, entry, failure))?;
        read::finish(&opened, entry, links, &end)?;
        destination.set_permissions(readable_permissions(entry)).map_err(self.failed(entry))?;
        if self.request.preserve_times {
            destination.set_times(opened.metadata.times).map_err(self.failed(entry))?;
        }
        self.control.advance(1, 0);
        Ok(hasher.finish())
    }

    /// Directories get their bits and times after they are filled, deepest first: until then they must be writable, and
    /// filling them would change their times.
    fn finish_directories(&self) -> Result<()> {
        for entry in self.plan.entries.iter().rev().filter(|entry| entry.kind == EntryKind::Directory) {
            self.control.checkpoint()?;
            let directory = self.copy.directory.open_directory(&entry.path).map_err(self.failed(entry))?;
            if self.request.preserve_times {
                directory.set_times(entry.times).map_err(self.failed(entry))?;
            }
            directory.set_permissions(readable_permissions(entry)).map_err(self.failed(entry))?;
        }
        Ok(())
    }
}

/// The same files, a batch each, in path order.
fn in_path_order(batches: &[Batch]) -> Vec<Batch> {
    let mut single: Vec<Batch> = batches.iter().flat_map(Batch::singly).collect();
    single.sort_by_key(|batch| batch.files.first().copied());
    single
}
