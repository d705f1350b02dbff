//! Removing containers whose makers are gone.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::container;
use super::owner::{self, LABEL, OWNER_LABEL, Owner};

/// No run lasts so long: a container of another host that is older belongs to nobody.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Removes every container of ours that nobody uses; gives how many there were.
pub(super) async fn sweep(docker: Docker) -> Result<usize, Error> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let how = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let mut removed = 0;
    for found in docker.list_containers(Some(how)).await? {
        if is_abandoned(&found)
            && let Some(id) = found.id
        {
            container::remove(docker.clone(), id).await;
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_abandoned(found: &ContainerSummary) -> bool {
    let label = found.labels.as_ref().and_then(|labels| labels.get(OWNER_LABEL));
    match owner::state(label.map(String::as_str).unwrap_or_default()) {
        Owner::Alive => false,
        Owner::Gone => true,
        Owner::Elsewhere => {
            let made = Duration::from_secs(found.created.and_then(|made| u64::try_from(made).ok()).unwrap_or(0));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(made) > ABANDONED
        }
    }
}
