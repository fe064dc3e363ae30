//! The last reading: source and copy are walked once more by the same rules, at the same time, and their files are read
//! side by side.
//!
//! This reading stands for itself: it is compared with the plan by what takes part in the tree hash, not by time stamps.
//! The bytes of source and copy are compared, and those of the source hashed: if that hash is the one of the copying,
//! all three readings agree on every file. Fails with `contained_execution_source_changed` where they do not, and with
//! the walk's own refusals.

use super::MirrorRequest;
use super::copy::readable_permissions;
use super::plan::Plan;
use super::rules::{Boundaries, MirrorRules};
use crate::failure::{ContainedCode, Failure, Result};
use crate::fs::stream::{CHUNK, compare_to_end};
use crate::fs::{Directory, Identity, Metadata, Times};
use crate::tree::control::Control;
use crate::tree::hash::{ContentHasher, HexDigest};
use crate::tree::quota::Allowance;
use crate::tree::read::{self, Links};
use crate::tree::walk::{Entry, EntryKind, Judgement, Root, WalkRules, walk};
use crate::tree::work::{Batch, batches, for_each_batch};

/// Confirms that source and copy are what was copied.
///
/// # Errors
/// See the module; the first in path order, the source before the copy.
pub fn verify(
    request: &MirrorRequest,
    plan: &Plan,
    contents: &[Option<HexDigest>],
    source: Root<'_>,
    copy: Root<'_>,
    threads: usize,
    control: &Control<'_>,
) -> Result<()> {
    let (source_entries, copy_entries) = walk_both(request, plan, source, copy, threads, control)?;
    // What is no file is done with; the files follow.
    control.advance(plan.directories + plan.symlinks, 0);
    let reading = Reading {
        links: request.links,
        source,
        copy,
        source_entries: &source_entries,
        copy_entries: &copy_entries,
        contents,
        source_bytes: Allowance::new(Some(plan.quotas.source_bytes), plan.bytes),
        control,
    };
    for_each_batch(
        &batches(&source_entries)?,
        threads,
        || [vec![0; CHUNK], vec![0; CHUNK]],
        |buffers, batch, matters| reading.compare_batch(batch, matters, buffers),
    )?;
    Ok(())
}

/// Walks source and copy, at the same time where there are threads for it.
fn walk_both(
    request: &MirrorRequest,
    plan: &Plan,
    source: Root<'_>,
    copy: Root<'_>,
    threads: usize,
    control: &Control<'_>,
) -> Result<(Vec<Entry>, Vec<Entry>)> {
    let nothing_left_out = Boundaries::default();
    let walk_source = || walk_again(plan, source, &plan.boundaries, request.links, Entry::permissions, control);
    let walk_copy = || walk_again(plan, copy, &nothing_left_out, Links::Single, readable_permissions, control);
    if threads < 2 {
        return Ok((walk_source()?, walk_copy()?));
    }
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("sallyport".to_owned()).spawn_scoped(scope, walk_copy);
        let source = walk_source();
        let copy = match other {
            Ok(other) => other
                .join()
                .unwrap_or_else(|_| Err(Failure::Internal("the thread that walked the copy panicked".to_owned()))),
            Err(_) => walk_copy(),
        };
        Ok((source?, copy?))
    })
}

/// Walks a tree and compares every entry with the plan as it comes; `permissions` says which bits an entry of the plan
/// has in this tree.
fn walk_again(
    plan: &Plan,
    root: Root<'_>,
    boundaries: &Boundaries,
    links: Links,
    permissions: fn(&Entry) -> u32,
    control: &Control<'_>,
) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::with_capacity(plan.entries.len());
    let mut rules = Again { rules: MirrorRules::new(boundaries, links, plan.quotas), plan, permissions, taken: 0 };
    walk(root, &mut rules, control, &mut |entry| {
        if !plan.entries.get(entries.len()).is_some_and(|planned| same_node(planned, permissions(planned), &entry)) {
            return Err(read::changed(&entry));
        }
        entries.push(entry);
        Ok(())
    })?;
    rules.rules.finish()?;
    match plan.entries.get(entries.len()) {
        None => Ok(entries),
        Some(missing) => Err(read::changed(missing)),
    }
}

/// The rules of the first walk, for a second one: what the listing calls a file, as the plan does, needs no look, since
/// it is opened next and looked at then.
struct Again<'a> {
    rules: MirrorRules<'a>,
    plan: &'a Plan,
    /// Which bits an entry of the plan has in this tree.
    permissions: fn(&Entry) -> u32,
    /// How many entries were taken, which is where the next one stands in the plan.
    taken: usize,
}

impl WalkRules for Again<'_> {
    fn judge_location(&mut self, relative_path: &[u8]) -> Result<Judgement> {
        self.rules.judge_location(relative_path)
    }

    fn judge_symlink(&mut self, root: &Directory, relative_path: &[u8], target: &[u8]) -> Result<Judgement> {
        self.rules.judge_symlink(root, relative_path, target)
    }

    fn judge_links(&mut self, relative_path: &[u8], metadata: &Metadata) -> Result<()> {
        self.rules.judge_links(relative_path, metadata)
    }

    fn enters(&mut self, relative_path: &[u8]) -> bool {
        self.rules.enters(relative_path)
    }

    fn count(&mut self, entry: &Entry) -> Result<()> {
        self.taken += 1;
        self.rules.count(entry)
    }

    fn room_left(&self) -> usize {
        self.rules.room_left()
    }

    fn known_file(&self, relative_path: &[u8]) -> Option<(Identity, Times)> {
        let planned = self.plan.entries.get(self.taken)?;
        if planned.kind != EntryKind::File || *planned.path != *relative_path {
            return None;
        }
        let mut identity = planned.identity;
        identity.mode = (identity.mode & !0o777) | (self.permissions)(planned);
        Some((identity, planned.times))
    }
}

/// Whether two entries are the same as far as metadata takes part in the tree hash, the one found with these bits.
fn same_node(planned: &Entry, permissions: u32, found: &Entry) -> bool {
    planned.path == found.path
        && planned.kind == found.kind
        && planned.file_size() == found.file_size()
        && (matches!(planned.kind, EntryKind::Symlink(_)) || permissions == found.permissions())
}

struct Reading<'a> {
    links: Links,
    source: Root<'a>,
    copy: Root<'a>,
    source_entries: &'a [Entry],
    copy_entries: &'a [Entry],
    contents: &'a [Option<HexDigest>],
    source_bytes: Allowance,
    control: &'a Control<'a>,
}

impl Reading<'_> {
    fn compare_batch(
        &self,
        batch: &Batch,
        matters: &dyn Fn(u32) -> bool,
        buffers: &mut [Vec<u8>; 2],
    ) -> std::result::Result<(), (u32, Failure)> {
        let Some(&first) = batch.files.first().filter(|first| matters(**first)) else { return Ok(()) };
        let source = read::open_parent(self.source, self.source_entries, batch.parent);
        let source = source.map_err(|failure| (first, failure))?;
        let copy = read::open_parent(self.copy, self.copy_entries, batch.parent);
        let copy = copy.map_err(|failure| (first, failure))?;
        for &index in batch.files.iter().take_while(|index| matters(**index)) {
            self.compare_file(&source, &copy, index as usize, buffers).map_err(|failure| (index, failure))?;
        }
        Ok(())
    }

    fn compare_file(
        &self,
        source: &Directory,
        copy: &Directory,
        index: usize,
        [buffer, copy_buffer]: &mut [Vec<u8>; 2],
    ) -> Result<()> {
        self.control.checkpoint()?;
        let (entry, copy_entry) = (&self.source_entries[index], &self.copy_entries[index]);
        let opened = read::open_listed(self.source, source, entry, self.links, &[&self.source_bytes])?;
        let copied = read::open_listed(self.copy, copy, copy_entry, Links::Single, &[])?;
        let mut hasher = ContentHasher::default();
        let mut reached = 0;
        let (end, copy_end) = compare_to_end(&opened.file, &copied.file, buffer, copy_buffer, |chunk| {
            self.control.checkpoint()?;
            reached += chunk.len() as u64;
            read::refuse_growth(self.source, &opened, entry, reached, &[&self.source_bytes])?;
            hasher.update(chunk);
            self.control.advance(0, chunk.len() as u64);
            Ok(())
        })
        .map_err(|failure| read::stream_failure(self.source, self.copy, entry, failure))?;
        read::finish(&opened, entry, self.links, &end)?;
        read::finish(&copied, copy_entry, Links::Single, &copy_end)?;
        if self.contents[index] != Some(hasher.finish()) {
            return Err(Failure::contained_at(ContainedCode::SourceChanged, &entry.path));
        }
        self.control.advance(1, 0);
        Ok(())
    }
}
