//! Running a project's own source in a confined child, and taking data back from it.
//!
//! The child's word is never trusted: the result is one frame on a descriptor of its own, bounded and checked here, and
//! whatever the child says or does, it and its folder are gone before the caller hears of it. Source of all rules:
//! `contract/sandbox.md`.
//!
//! | file | what it does |
//! | --- | --- |
//! | `driver` | the text of the module that runs inside the child |
//! | `child` | starting the child, waiting for it, ending it |
//! | `frame` | the result frame |
//! | `output` | what the child writes, line by line, bounded and harmless |
//! | `classify` | from what the child reports to the words of an error |
//! | `guarantees` | what holds a child here, found out by probes |
//! | `result` | the shapes that a result may have |
//! | `shape` | reading what came without building more of it than is used |

pub mod child;
pub mod classify;
pub mod driver;
pub mod frame;
pub mod guarantees;
pub mod output;
pub mod result;
pub mod shape;
