//! Where a symlink really leads, followed a step at a time beneath the root and never out of it.
//!
//! Each step looks through the directory it stands in, so a swap in the middle gives an answer about nodes inside the
//! root or none. A link with an absolute target on the way counts as leaving: even where it would come back, it would
//! not in a copy.

use super::directory::Directory;
use super::identity::NodeType;

/// Why a link leads nowhere that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// It leads outside the root.
    LeavesRoot,
    /// Something on the way is missing, is no directory, may not be entered, or the links go round in a circle.
    Broken,
}

/// The kernel's own bound on links followed in one resolution (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// Follows `target` from `directory` (relative to `root`, clean) to the node it names, and gives that node's path
/// relative to `root`; the empty path is the root itself.
///
/// # Errors
/// [`Unresolved`].
pub fn resolve_beneath(root: &Directory, directory: &[u8], target: &[u8]) -> Result<Vec<u8>, Unresolved> {
    let mut location: Vec<Vec<u8>> = components(directory).map(<[u8]>::to_vec).collect();
    let mut here = open(root, &location)?;
    // The next component stands last.
    let mut rest: Vec<Vec<u8>> = Vec::new();
    push_target(&mut rest, target)?;
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == b"." {
            continue;
        }
        if name == b".." {
            location.pop().ok_or(Unresolved::LeavesRoot)?;
            here = open(root, &location)?;
            continue;
        }
        let metadata = here.metadata_of(&name).map_err(|_| Unresolved::Broken)?;
        match metadata.node_type {
            NodeType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Unresolved::Broken);
                }
                let target = here.target_of(&name).map_err(|_| Unresolved::Broken)?;
                push_target(&mut rest, &target)?;
            }
            NodeType::Directory => {
                if !rest.is_empty() {
                    here = here.pass_directory(&name).map_err(|_| Unresolved::Broken)?;
                }
                location.push(name);
            }
            _ if rest.is_empty() => location.push(name),
            _ => return Err(Unresolved::Broken),
        }
    }
    Ok(location.join(&b'/'))
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|component| !component.is_empty())
}

fn push_target(rest: &mut Vec<Vec<u8>>, target: &[u8]) -> Result<(), Unresolved> {
    if target.starts_with(b"/") {
        return Err(Unresolved::LeavesRoot);
    }
    if target.ends_with(b"/") {
        // A slash at the end asks for a directory, as `.` behind it does.
        rest.push(b".".to_vec());
    }
    rest.extend(components(target).rev().map(<[u8]>::to_vec));
    Ok(())
}

fn open(root: &Directory, location: &[Vec<u8>]) -> Result<Directory, Unresolved> {
    root.pass_directory(&location.join(&b'/')).map_err(|_| Unresolved::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Beneath;
    use std::os::unix::fs::symlink;

    #[test]
    fn follows_links_inside_and_stops_at_the_root() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("root/a/b")).unwrap();
        std::fs::write(base.join("root/a/file"), "").unwrap();
        std::fs::write(base.join("outside"), "").unwrap();
        symlink("a/b", base.join("root/into")).unwrap();
        symlink("two", base.join("root/one")).unwrap();
        symlink("one", base.join("root/two")).unwrap();
        symlink("/etc", base.join("root/absolute")).unwrap();
        for beneath in [Beneath::Kernel, Beneath::PerComponent] {
            let root = Directory::open_canonical(&base.join("root"), beneath).unwrap();
            let resolve = |directory: &str, target: &str| {
                resolve_beneath(&root, directory.as_bytes(), target.as_bytes())
                    .map(|path| String::from_utf8(path).unwrap())
            };
            assert_eq!(resolve("", "a/file"), Ok("a/file".into()));
            assert_eq!(resolve("a", ".."), Ok(String::new()));
            assert_eq!(resolve("a", "../into/../file"), Ok("a/file".into()));
            assert_eq!(resolve("", "into/"), Ok("a/b".into()));
            assert_eq!(resolve("", "into/."), Ok("a/b".into()));
            assert_eq!(resolve("", "a/file/"), Err(Unresolved::Broken));
            assert_eq!(resolve("", "one"), Err(Unresolved::Broken));
            assert_eq!(resolve("", "missing"), Err(Unresolved::Broken));
            assert_eq!(resolve("", "../outside"), Err(Unresolved::LeavesRoot));
            assert_eq!(resolve("", "../root/a"), Err(Unresolved::LeavesRoot));
            assert_eq!(resolve("", "absolute/passwd"), Err(Unresolved::LeavesRoot));
        }
    }
}
