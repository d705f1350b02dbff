//! The hostile cases, by number: what the sandbox, the interface and the collection must survive.
//!
//! Each test is named after its case (`h029_symlink_output_is_refused`). A test of a refusal first shows, where that is
//! possible and harmless, that the same attempt succeeds outside. NOT_COVERED.md lists the cases without a test, with
//! the reasons.

mod audit_forwarding;
mod coverage;
mod cross_run;
mod degradation;
mod disk;
mod environment_and_descriptors;
mod exhaustion;
mod filesystem_reach;
mod in_containers;
mod interface_traversal;
mod kernel_interfaces;
mod kernel_tables;
mod large_skills;
mod mcp_sessions;
mod network;
mod output_collection;
mod privileged_calls;
mod processes;
mod server_memory;
mod server_requests;
mod skill_overlay;
mod text_and_reporting;
