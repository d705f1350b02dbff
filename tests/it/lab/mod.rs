//! The laboratory: one small world for each test, the program under test, and an eye on what it leaves behind.

mod ask;
mod canary;
mod control;
mod degrade;
mod docker;
mod host;
mod http;
mod ledger;
mod leftovers;
mod object_servers;
mod process;
mod scene;
mod subset;
mod turn;

pub use ask::{Answer, is_refusal};
pub use canary::{AbstractListener, CanaryProcess, TcpListeners};
pub use degrade::{Degraded, degradations};
pub use docker::{Docker, need_docker, on_docker};
pub use host::{cgroup_version, need, need_root, ordinary_user};
pub use http::{HttpAnswer, HttpServer};
pub use ledger::Ledger;
pub use object_servers::{Azurite, S3, store_at};
pub use process::{all_processes, finish, orphans, program, reap, reap_orphans, run_to_end, start};
pub use scene::{Scene, tree_digest};
pub use subset::subset;
