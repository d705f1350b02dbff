//! Creates the ids of runs.

use skillbox_model::RunId;

/// A new run id: sortable by time, unique across hosts.
pub fn new_run_id() -> RunId {
    let id = uuid::Uuid::now_v7().simple().to_string();
    RunId::parse(id).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"))
}
