//! A mirror is the same whether the kernel resolves paths beneath a directory or each component is opened by itself:
//! the same report, the same copy, the same refusal, on random trees with everything in them that a mirror refuses.

#![allow(clippy::unwrap_used, reason = "a tree that cannot be made is a test that cannot run")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sallyport::failure::Failure;
use sallyport::fs::Beneath;
use sallyport::mirror::hooks::NoHooks;
use sallyport::mirror::lease::Lease;
use sallyport::mirror::{MirrorLimits, MirrorReport, MirrorRequest, PhaseMilliseconds, prepare};
use sallyport::tree::control::{Control, SystemClock};
use sallyport::tree::index::{IndexRequest, build_tree_index};
use sallyport::tree::read::Links;

/// What is made at a path; where the path cannot be made, because another node is in the way, it is left out.
#[derive(Debug, Clone)]
enum Node {
    Directory(u32),
    File(Vec<u8>, u32),
    Link(&'static str),
    SecondName(String),
    Fifo,
    GitDirectory,
    GitFile(&'static str),
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "a-b", "a.b", "config", "objects", "meta", ".GIT", "\u{e9}"]);
    prop::collection::vec(name, 1..5).prop_map(|names| names.join("/"))
}

fn node() -> impl Strategy<Value = Node> {
    let permissions = prop::sample::select(vec![0o755_u32, 0o700, 0o555, 0o1777, 0o4755]);
    let file_permissions = prop::sample::select(vec![0o644_u32, 0o600, 0o444, 0o755, 0o6755]);
    let targets =
        vec![".", "a", "b/c", "../a", "..", "../../..", "/etc", ".git", "meta/config", "none", "a/../b", "c/"];
    prop_oneof![
        6 => permissions.prop_map(Node::Directory),
        12 => (prop::collection::vec(any::<u8>(), 0..3000), file_permissions)
            .prop_map(|(content, permissions)| Node::File(content, permissions)),
        1 => prop::sample::select(targets).prop_map(Node::Link),
        1 => path().prop_map(Node::SecondName),
        1 => Just(Node::GitDirectory),
        1 => prop::sample::select(vec!["meta", ".", "../meta", "none"]).prop_map(Node::GitFile),
    ]
}

/// Random nodes, and with some chance one that no mirror takes.
fn tree() -> impl Strategy<Value = Vec<(String, Node)>> {
    let nodes = prop::collection::vec((path(), node()), 0..24);
    (nodes, prop::option::weighted(0.1, path())).prop_map(|(mut nodes, fifo)| {
        nodes.extend(fifo.map(|path| (path, Node::Fifo)));
        nodes
    })
}

/// A directory that is structurally Git's.
fn make_git_directory(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path.join("objects"))?;
    fs::create_dir_all(path.join("refs"))?;
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(path.join("config"), "[core]\n\tbare = true\n")
}

fn make(root: &Path, relative_path: &str, node: &Node) -> std::io::Result<()> {
    let path = root.join(relative_path);
    if let Some(parent) = path.parent() {
        // Links of the tree lead out of it; nothing is made there.
        let mut so_far = root.to_path_buf();
        for part in parent.strip_prefix(root).unwrap_or(parent) {
            so_far.push(part);
            if fs::symlink_metadata(&so_far).is_ok_and(|metadata| metadata.is_symlink()) {
                return Ok(());
            }
        }
        fs::create_dir_all(parent)?;
    }
    if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Ok(());
    }
    let bits = |bits: &u32| fs::set_permissions(&path, fs::Permissions::from_mode(*bits));
    match node {
        Node::Directory(permissions) => fs::create_dir(&path).and_then(|()| bits(permissions)),
        Node::File(content, permissions) => fs::write(&path, content).and_then(|()| bits(permissions)),
        Node::Link(target) => symlink(target, &path),
        Node::SecondName(of) => fs::hard_link(root.join(of), &path),
        Node::Fifo => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into),
        Node::GitDirectory => make_git_directory(&path),
        Node::GitFile(target) => {
            fs::create_dir_all(&path)?;
            fs::write(path.join(".git"), format!("gitdir: {target}\n"))
        }
    }
}

/// Everything that was seen of one preparation, but for what takes time and where the mirror was.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Result<MirrorReport, Failure>,
    /// The tree hash of the copy by an index of its own.
    copied: Option<String>,
    /// What is left in the temp directory afterwards.
    left: usize,
}

struct Case<'a> {
    source: &'a Path,
    temp: &'a Path,
    protected: Vec<PathBuf>,
    links: Links,
    limits: MirrorLimits,
}

impl Case<'_> {
    fn see(&self, beneath: Beneath) -> Seen {
        let cancelled = AtomicBool::new(false);
        let clock = SystemClock::default();
        let mut control = Control::new(&cancelled, &clock, None);
        let request = MirrorRequest {
            source_root: self.source.to_path_buf(),
            control_plane_roots: self.protected.clone(),
            limits: self.limits,
            links: self.links,
            preserve_times: true,
            flush: false,
            temp_directory: self.temp.to_path_buf(),
            beneath,
        };
        let mut copied = None;
        let outcome = prepare(&request, &mut control, &NoHooks).map(|mirror| {
            let index = IndexRequest {
                resource_root: mirror.root.path().to_path_buf(),
                excluded_roots: Vec::new(),
                quotas: None,
                beneath,
            };
            copied = Some(build_tree_index(&index, &Control::new(&cancelled, &clock, None)).unwrap().tree_hash);
            let lease = Lease::from(mirror);
            let report = MirrorReport { milliseconds: PhaseMilliseconds::default(), ..lease.report().clone() };
            lease.dispose(&NoHooks).unwrap();
            report
        });
        Seen { outcome, copied, left: fs::read_dir(self.temp).unwrap().count() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_make_the_same_mirror_or_the_same_refusal(
        nodes in tree(),
        protected in prop::collection::vec(path(), 0..2),
        copies_links in any::<bool>(),
        max_files in prop_oneof![9 => Just(1_000_u64), 1 => 1_u64..12],
        max_bytes in prop_oneof![9 => Just(1_000_000_u64), 1 => 1_u64..5_000],
    ) {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().map(|path| (base, path)).unwrap();
        let (source, temp) = (base.1.join("source"), base.1.join("temp"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&temp).unwrap();
        for (path, node) in &nodes {
            // Where another node is in the way there is simply one node less.
            let _left_out = make(&source, path, node);
        }
        let case = Case {
            source: &source,
            temp: &temp,
            protected: protected.iter().map(|path| source.join(path)).collect(),
            links: if copies_links { Links::Any } else { Links::Single },
            limits: MirrorLimits {
                max_files,
                max_source_bytes: max_bytes,
                max_workspace_bytes: max_bytes,
                prepare_timeout_milliseconds: 600_000,
            },
        };
        let kernel = case.see(Beneath::Kernel);
        let component = case.see(Beneath::PerComponent);
        prop_assert_eq!(&kernel, &component);
        prop_assert_eq!(kernel.left, 0);
        if let Ok(report) = &kernel.outcome {
            prop_assert_eq!(Some(&report.tree_hash), kernel.copied.as_ref());
        }
    }
}
