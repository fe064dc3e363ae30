//! What the kernel is asked to hold a child to, and the plan by which the launcher does it.
//!
//! The plan is data: the parent makes it, the launcher receives it and applies it to itself before it becomes the
//! child. The launcher is a single-threaded program that was started fresh, so it may allocate and fail like ordinary
//! code; between `fork` and `exec` in a copy of the parent it could not.
//!
//! | file | what it does |
//! | --- | --- |
//! | `plan` | the plan and the launcher's report, as they cross |
//! | `channel` | sending a plan with its descriptors, and receiving it |
//! | `confine` | applying a plan to the process itself |
//! | `landlock` | rules on files, ports and scopes |
//! | `system_calls` | the refused system calls, as data |
//! | `seccomp` | the filters made from them |
//! | `probe` | trying what must not be possible |
//! | `program` | what a program needs to start |
//! | `service` | limiting a program that runs already |

pub mod channel;
pub mod confine;
pub mod landlock;
pub mod plan;
pub mod probe;
pub mod program;
pub mod seccomp;
pub mod service;
pub mod system_calls;
