//! The memory for request bodies: one budget for the server, of which a tenant may use a part.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::limits::Limits;

/// The budget is counted in units of this size.
const UNIT_BYTES: usize = 1 << 10;
/// A byte of a body is counted this often: as received, as a parsed request, and as the input or argument of the run.
const COPIES: usize = 3;

/// A part of the server's memory.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget {
    server: Arc<Semaphore>,
    tenant: Arc<Semaphore>,
    tenant_units: usize,
    timeout: Duration,
}

/// Memory that is in use until this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    bytes: usize,
    units: usize,
}

impl BodyBudget {
    /// A budget for the whole server, and the share of its only tenant.
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1, u32::MAX as usize);
        Self {
            server: Arc::new(Semaphore::new(units)),
            tenant: Arc::new(Semaphore::new(units)),
            tenant_units: units,
            timeout: Limits::BUDGET_TIMEOUT,
        }
    }

    /// The share of one of several tenants: half of the budget, so that one tenant cannot use all of it.
    pub(crate) fn for_tenant(&self) -> Self {
        let units = self.tenant_units.div_ceil(2);
        Self {
            server: self.server.clone(),
            tenant: Arc::new(Semaphore::new(units)),
            tenant_units: units,
            timeout: self.timeout,
        }
    }

    /// The largest body that fits into the share of a tenant.
    pub(crate) fn max_body_bytes(&self) -> usize {
        (self.tenant_units / COPIES).saturating_mul(UNIT_BYTES)
    }

    /// Adds bytes to a reservation. Waits for memory, and fails with `busy` if none becomes free in time.
    pub(crate) async fn extend(&self, reservation: &mut Reservation, bytes: usize) -> Result<(), ApiError> {
        reservation.bytes += bytes;
        let units = (reservation.bytes * COPIES).div_ceil(UNIT_BYTES);
        let more = u32::try_from(units - reservation.units).unwrap_or(u32::MAX);
        if more == 0 {
            return Ok(());
        }
        let acquire = async {
            let tenant = self.tenant.clone().acquire_many_owned(more).await;
            let server = self.server.clone().acquire_many_owned(more).await;
            tenant.and_then(|tenant| server.map(|server| (tenant, server)))
        };
        let waited = tokio::time::timeout(self.timeout, acquire).await;
        let busy = || ApiError::busy("the memory for request bodies is in use");
        let acquired = waited
            .map_err(|_| busy())?
            .map_err(|error| ApiError::internal(&error))?;
        match &mut reservation.permits {
            None => reservation.permits = Some(acquired),
            Some((tenant, server)) => {
                tenant.merge(acquired.0);
                server.merge(acquired.1);
            }
        }
        reservation.units = units;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_tenant_cannot_use_the_memory_of_another() {
        let mut all = BodyBudget::new(60 << 10);
        all.timeout = Duration::from_millis(1);
        let (greedy, other) = (all.for_tenant(), all.for_tenant());
        assert_eq!(greedy.max_body_bytes(), 10 << 10);
        let mut first = Reservation::default();
        greedy.extend(&mut first, 10 << 10).await.unwrap();
        let refused = greedy.extend(&mut Reservation::default(), 1).await.unwrap_err();
        assert_eq!(refused.status, axum::http::StatusCode::SERVICE_UNAVAILABLE);
        other.extend(&mut Reservation::default(), 10 << 10).await.unwrap();
        drop(first);
        greedy.extend(&mut Reservation::default(), 10 << 10).await.unwrap();
    }
}
