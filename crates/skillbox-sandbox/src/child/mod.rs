//! The child: confines itself step by step, starts the command, and stays as its reaper.
//!
//! The order of confinement, with the numbers that the tests name:
//!
//!  1. a new session without a terminal
//!  2. id maps, setgroups denied; then the script's ids, and death together with the spawner
//!  3. host name and, where the profile has one, the private loopback
//!  4. private mounts; an empty root; the profile's entries, read-only, nosuid, nodev; a minimal /dev; a private shm
//!  5. a fresh, masked /proc; never the outer one
//!  6. pivot into the new root; the old one is let go
//!  7. the capability bounding set empty; not dumpable
//!     — up to here nothing of the run itself is used: a child can be prepared ahead and park here, and with it pid 2,
//!     which then takes the steps that follow, while pid 1 takes those of 10 to 12 and 14 for itself before it waits —
//!  8. workspace and binds of the run; the root becomes read-only; the working directory
//!  9. resource limits
//! 10. every other capability set empty, securebits locked
//! 11. no new privileges
//! 12. Landlock: files, TCP, signals and abstract sockets
//! 13. every descriptor closed but the standard ones and the reaper's own
//! 14. seccomp, last, for the reaper and the command alike
//! 15. pid 2 joins its control group and starts the command; pid 1 reaps
//!
//! The steps come from the plan in this order; this module only knows how each is done.

mod confine;
mod descriptors;
mod exec;
mod identity;
mod landlock;
mod parked;
mod reaper;
mod steps;
mod understudy;

pub(crate) use landlock::restrict;
pub(crate) use parked::park;
pub(crate) use steps::{Belongings, run};
use steps::{Child, NOT_EXECUTED, SETUP_FAILED, exit};
