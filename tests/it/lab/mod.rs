//! The laboratory: one small world for each test, the program under test, and an eye on what it leaves behind.

mod ask;
mod canary;
mod control;
mod degrade;
mod host;
mod leftovers;
mod ledger;
mod process;
mod scene;
mod turn;

pub use ask::{Answer, Ask, is_refusal, subset};
pub use canary::{AbstractListener, CanaryProcess, TcpListeners};
pub use degrade::{Degraded, degradations};
pub use host::{cgroup_version, need, need_root, on_ci, ordinary_user};
pub use ledger::Ledger;
pub use process::{Finished, program, run_to_end};
pub use scene::{Scene, tree_digest};
