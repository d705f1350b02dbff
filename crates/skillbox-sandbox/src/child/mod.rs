//! The child of the spawner: pid 1 of a sandbox. It confines itself step by step, starts the command, and reaps.
//!
//! Below is the order of confinement. The words in backticks are those of the printed plan; the test
//! `the_documented_order_is_the_order_of_the_plan` compares this list with the plans of the shipped profiles.
//!
//! The spawner builds the root, once for all runs with the same steps (`spawner/template.rs`):
//!
//!  1. `mounts`: private, so that none propagates to the host
//!  2. `root`: an empty one in memory, nosuid, nodev
//!  3. `directory`: the directories of the profile
//!  4. `bind`, `link`: the paths of the host, read-only, nosuid, nodev; the links of the host and of the profile
//!  5. `file`: the files of the profile
//!  6. `/dev`: a minimal one, read-only
//!  7. `/proc`: the outer one, until a fresh one covers it
//!  8. `mount point`: the targets of the mounts that the run adds
//!  9. `root`: read-only
//! 10. `pivot`: into the new root; the old one is unmounted
//!
//! The spawner creates the child (`spawner/clone_child.rs`):
//!
//! 11. `cgroup`: a control group with the limits
//! 12. `network`: a fresh network namespace, with loopback up where the profile asks for it
//! 13. `listen`: sockets for the allowed hosts, where the run may reach any
//! 14. `mounts`: those of the host, for a run without a mount namespace
//! 15. `clone`: pid 1 in its namespaces
//!
//! Pid 1 prepares the sandbox (`prepare.rs`):
//!
//! 16. `session`: a new one without a terminal
//! 17. `id maps`: one user and one group; setgroups denied
//! 18. `become`: the ids of the script
//! 19. `die`: together with the spawner
//! 20. `orphans`: adopted, for a run without a pid namespace
//! 21. `cgroup root`: the group of the run, in cgroup v2
//! 22. `host name`: a fixed one
//! 23. `/dev/shm`: a private one
//! 24. `/dev/pts`: private pseudo-terminals
//! 25. `/proc`: a fresh one, read-only; never the outer one
//! 26. `mask`: files of `/proc` that describe the host
//! 27. `capabilities`: an empty bounding set
//! 28. `dumpable`: no, so that the script cannot inspect pid 1
//!
//! The steps up to here do not depend on the run, so a sandbox can be prepared in advance and parked at this point. Pid
//! 1 of a parked sandbox applies the steps marked with * to itself and reaps (`parked_reaper.rs`); its pid 2 waits for
//! the run and applies all steps that follow (`parked_command.rs`). In a sandbox that was not parked, pid 1 applies
//! them, and the last one clones pid 2 (`run.rs`):
//!
//! 29. `workspace`: mounted, writable, nosuid, nodev
//! 30. `layers`: the directory for the changes to a writable skill, opened before a mount covers it
//! 31. `bind`: the skill and the inputs
//! 32. `writable`: an overlay on the skill, or a copy of it
//! 33. `chdir`: the working directory
//! 34. `rlimits`: limits per process
//! 35. `capabilities`*: every set empty, securebits locked
//! 36. `privileges`*: no exec raises them
//! 37. `landlock`*: files, TCP, signals and abstract sockets
//! 38. `descriptors`: closed, except the standard streams and those of the reaper
//! 39. `seccomp`*: the system call filter, for the reaper and the command alike
//! 40. `cgroup`: joined by pid 2, in cgroup v1
//! 41. `exec`: the command, as pid 2; pid 1 reaps

mod capabilities;
mod confine;
mod exit;
mod fds;
mod identity;
mod landlock;
mod op_error;
mod parked_command;
mod parked_reaper;
mod parking_failure;
mod prepare;
mod reaper;
mod resource_limits;
mod run;

pub(crate) use fds::{ChildFds, RunFds};
pub(crate) use landlock::restrict_self;
pub(crate) use parked_reaper::park;
pub(crate) use parking_failure::abandon_parking;
pub(crate) use run::{fail_launch, run_child};
