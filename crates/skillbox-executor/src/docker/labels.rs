//! The labels of skillbox's containers.

/// Present on every container that skillbox creates; its value is the version of skillbox.
pub(super) const VERSION_LABEL: &str = "skillbox";
/// The identity of the process that created the container.
pub(super) const OWNER_LABEL: &str = "skillbox.owner";
