//! The decision whether a skill may run, and with which grants. Everything here is pure.

mod decision;
mod policy;
mod refusal;

pub use decision::{Decision, DecisionInput, decide};
pub use policy::{DenyEntry, DenyEntryError, TrustMode, TrustPolicy};
pub use refusal::{Refusal, RefusalReason, approve_command};
