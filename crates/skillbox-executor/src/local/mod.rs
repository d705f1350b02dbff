//! Running a job as a process of this host, in the kernel's sandbox.

mod supervise;

pub(crate) use supervise::{Pipes, Supervised, Supervision, Verdict, supervise};
