//! Approvals: who allowed which digest to run, with which grants.

mod approval;
mod revocation_list;
mod store;
mod transfer;

pub use approval::{Approval, ApprovalState, Revocation};
pub use store::{ApprovalList, ApprovalStore};
pub use transfer::{export_approvals, read_exported_approvals};
