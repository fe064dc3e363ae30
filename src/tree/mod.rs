//! Trees: their hashes, their entries and the order of these, the index and the difference of two of them.
//!
//! | file | what it does |
//! | --- | --- |
//! | `hash` | the hashes of nodes and trees |
//! | `relative_path` | order and rules of relative paths |
//! | `control` | abort, deadline and progress |
//! | `quota` | limits |
//! | `walk` | walking by metadata in the order of the tree hash |
//! | `work` | every file on several threads |
//! | `read` | reading a file so that a change is seen |
//! | `snapshot` | one node as callers see it |
//! | `index` | the tree index |
//! | `difference` | comparing two indices |

pub mod control;
pub mod difference;
pub mod hash;
pub mod index;
pub mod quota;
pub mod read;
pub mod relative_path;
pub mod snapshot;
pub mod walk;
pub mod work;
