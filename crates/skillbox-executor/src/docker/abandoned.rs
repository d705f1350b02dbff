//! Removes containers whose creating processes have ended.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::container;
use super::labels::{OWNER_LABEL, VERSION_LABEL};
use crate::process_identity::{ProcessState, process_state};

/// The age after which a container of an unknown process counts as abandoned. It is longer than any run.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Removes all abandoned containers of skillbox. Returns their number.
pub(super) async fn remove_abandoned_containers(docker: Docker) -> Result<usize, Error> {
    let filters = HashMap::from([("label".to_owned(), vec![VERSION_LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let mut removed = 0;
    for found in docker.list_containers(Some(options)).await? {
        if is_abandoned(&found)
            && let Some(id) = found.id
        {
            container::remove_container(docker.clone(), id).await;
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_abandoned(found: &ContainerSummary) -> bool {
    let label = found.labels.as_ref().and_then(|labels| labels.get(OWNER_LABEL));
    match process_state(label.map(String::as_str).unwrap_or_default()) {
        ProcessState::Alive => false,
        ProcessState::Dead => true,
        ProcessState::Unknown => {
            let created = Duration::from_secs(
                found
                    .created
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .unwrap_or(0),
            );
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(created) > ABANDONED_AFTER
        }
    }
}
