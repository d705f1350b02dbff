//! The test harness: a temporary environment for each test, the program under test, and checks of what it leaves behind.

mod control;
mod degraded_hosts;
mod docker;
mod fixture;
mod host;
mod host_inventory;
mod host_targets;
mod http;
mod invocation;
mod json_match;
mod leak_check;
mod log_receivers;
mod machine_load;
mod machine_lock;
mod object_servers;
mod process;
mod queue_servers;

pub use degraded_hosts::{DegradedHost, degraded_hosts};
pub use docker::{Docker, need_docker, with_docker};
pub use fixture::{Fixture, tree_contents};
pub use host::{cgroup_version, need, need_root, ordinary_user};
pub use host_inventory::HostInventory;
pub use host_targets::{AbstractListener, CanaryProcess, TcpListeners};
pub use http::{HttpResponse, HttpServer};
pub use invocation::{Answer, Invocation, is_refusal};
pub use json_match::collect_mismatches;
pub use log_receivers::{Collector, Rsyslog, SyslogBehaviour, SyslogServer, sequence};
pub use machine_load::{assert_within, is_too_slow, wait_until};
pub use object_servers::{AzuriteServer, S3Server, store_at};
pub use process::{
    all_processes, kill_and_reap, orphans, pids_with_argument, program, reap_orphans, run_to_completion, spawn_tracked,
    wait_with_deadline,
};
pub use queue_servers::{NatsCluster, NatsVersion};
