//! The only room that touches files.
//!
//! Work on a tree opens everything below its root through the directory that was checked ([`Directory`], [`beneath`]), so
//! that a directory that is swapped for a link in the middle cannot lead outside. Only `absolute` and `path` look at
//! nodes by their names: where work begins, and where the answer is about a path and not about a node. An operation that fails gives
//! an [`OperationError`]; the rooms above add the path to it, since only they know what it was for.
//!
//! | file | what it does |
//! | --- | --- |
//! | `operation` | the error of one system call |
//! | `identity` | what makes two looks at a node equal |
//! | `beneath` | opening a path below a directory, two ways that are tested against each other |
//! | `directory` | an open directory and everything done through it |
//! | `descriptors` | how many the process may have open |
//! | `resolve` | where a symlink really leads, without leaving the root |
//! | `stream` | reading to the end, copying and comparing in chunks |
//! | `private_root` | fresh directories of our own, held by a lock |
//! | `remove` | removing such a directory, whatever was put into it |
//! | `absolute` | where the work begins: looks at the paths that a caller gave |
//! | `path` | questions about absolute paths |

pub mod absolute;
pub mod beneath;
pub mod descriptors;
pub mod directory;
pub mod identity;
pub mod operation;
pub mod path;
pub mod private_root;
pub mod remove;
pub mod resolve;
pub mod stream;

pub use beneath::Beneath;
pub use directory::{Directory, File, Name, TypeHint};
pub use identity::{Identity, Metadata, NodeType, Times};
pub use operation::{ListingEnd, OperationError};
