//! Tenants: clients that share the server and are isolated from each other.

use std::sync::Arc;
use std::time::Duration;

use skillbox_model::TenantName;
use skillbox_runtime::Runtime;

use tokio::sync::Semaphore;

use crate::body_budget::BodyBudget;
use crate::limits::Limits;
use crate::runs::{IdempotencyKeys, RunRegistry};
use crate::token::{self, TokenHash, TokenScope};

/// A tenant with its own runtime and runs.
#[derive(Debug)]
pub(crate) struct Tenant {
    /// `None` for the host's own user on a server without tokens.
    pub name: Option<TenantName>,
    pub runtime: Arc<Runtime>,
    pub runs: RunRegistry,
    pub idempotency_keys: IdempotencyKeys,
    /// The memory for request bodies of this tenant.
    pub body_budget: BodyBudget,
    /// One permit for each concurrent upload.
    pub upload_permits: Semaphore,
}

impl Tenant {
    fn new(
        name: Option<TenantName>,
        runtime: Arc<Runtime>,
        body_budget: BodyBudget,
        results_ttl: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            runtime,
            runs: RunRegistry::new(results_ttl),
            idempotency_keys: IdempotencyKeys::default(),
            body_budget,
            upload_permits: Semaphore::new(Limits::MAX_TENANT_UPLOADS),
        })
    }

    /// The name for logs; empty for the host's own user.
    pub(crate) fn label(&self) -> &str {
        self.name.as_ref().map_or("", TenantName::as_str)
    }
}

/// All tenants of the server.
#[derive(Debug)]
pub(crate) enum Tenants {
    /// Without tokens, every client is the host's own user and shares the sessions of the command line.
    Local(Arc<Tenant>),
    /// The access of each token; equal indices of the two lists belong together.
    ByToken(Vec<TokenHash>, Vec<Access>),
}

/// What a token gives access to.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Everything of a tenant.
    Tenant(Arc<Tenant>),
    /// The metrics of the server, and nothing else.
    Metrics,
}

impl Tenants {
    /// The tenants of these tokens. Tenants of `earlier` keep their runs.
    pub(crate) fn new(
        runtime: &Arc<Runtime>,
        tokens: Vec<TokenHash>,
        body_budget: &BodyBudget,
        results_ttl: Duration,
        earlier: &[Arc<Tenant>],
    ) -> Self {
        if tokens.is_empty() {
            return Self::Local(Tenant::new(None, runtime.clone(), body_budget.clone(), results_ttl));
        }
        let mut tenants: Vec<Arc<Tenant>> = earlier.to_vec();
        let mut access_of = |token: &TokenHash| {
            if token.scope == TokenScope::Metrics {
                return Access::Metrics;
            }
            let existing = tenants
                .iter()
                .find(|tenant| tenant.name.as_ref() == Some(&token.tenant));
            Access::Tenant(existing.cloned().unwrap_or_else(|| {
                let runtime = runtime.for_tenant(&token.tenant);
                let budget = body_budget.for_tenant();
                let tenant = Tenant::new(Some(token.tenant.clone()), runtime.into(), budget, results_ttl);
                tenants.push(tenant.clone());
                tenant
            }))
        };
        let access = tokens.iter().map(&mut access_of).collect();
        Self::ByToken(tokens, access)
    }

    /// The access of a token.
    pub(crate) fn by_token(&self, token: &str) -> Option<Access> {
        match self {
            Self::Local(_) => None,
            Self::ByToken(tokens, access) => access.get(token::find_token(tokens, token)?).cloned(),
        }
    }

    /// Whether a token for metrics exists.
    pub(crate) fn have_metrics_token(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::ByToken(tokens, _) => tokens.iter().any(|token| token.scope == TokenScope::Metrics),
        }
    }

    /// All tenants without duplicates.
    pub(crate) fn all(&self) -> Vec<Arc<Tenant>> {
        match self {
            Self::Local(tenant) => vec![tenant.clone()],
            Self::ByToken(_, access) => {
                let mut distinct: Vec<Arc<Tenant>> = Vec::new();
                for access in access {
                    if let Access::Tenant(tenant) = access
                        && !distinct.iter().any(|known| Arc::ptr_eq(known, tenant))
                    {
                        distinct.push(tenant.clone());
                    }
                }
                distinct
            }
        }
    }
}
