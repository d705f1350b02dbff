//! Tenants: clients that share the server and are isolated from each other.

use std::sync::Arc;

use skillbox_model::TenantName;
use skillbox_runtime::Runtime;

use crate::runs::RunRegistry;
use crate::token::{self, TokenHash};

/// A tenant with its own runtime and runs.
#[derive(Debug)]
pub(crate) struct Tenant {
    /// `None` for the host's own user on a server without tokens.
    pub name: Option<TenantName>,
    pub runtime: Arc<Runtime>,
    pub runs: RunRegistry,
}

impl Tenant {
    fn new(name: Option<TenantName>, runtime: Arc<Runtime>) -> Arc<Self> {
        Arc::new(Self {
            name,
            runtime,
            runs: RunRegistry::default(),
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
    /// The tenant of each token; equal indices of the two lists belong together.
    ByToken(Vec<TokenHash>, Vec<Arc<Tenant>>),
}

impl Tenants {
    pub(crate) fn new(runtime: Arc<Runtime>, tokens: Vec<TokenHash>) -> Self {
        if tokens.is_empty() {
            return Self::Local(Tenant::new(None, runtime));
        }
        let mut tenants: Vec<Arc<Tenant>> = Vec::new();
        for token in &tokens {
            let existing = tenants
                .iter()
                .find(|tenant| tenant.name.as_ref() == Some(&token.tenant));
            let tenant = existing.cloned().unwrap_or_else(|| {
                let runtime = runtime.for_tenant(&token.tenant);
                Tenant::new(Some(token.tenant.clone()), runtime.into())
            });
            tenants.push(tenant);
        }
        Self::ByToken(tokens, tenants)
    }

    /// The tenant of a token.
    pub(crate) fn by_token(&self, token: &str) -> Option<&Arc<Tenant>> {
        match self {
            Self::Local(_) => None,
            Self::ByToken(tokens, tenants) => tenants.get(token::find_token(tokens, token)?),
        }
    }

    /// All tenants without duplicates.
    pub(crate) fn all(&self) -> Vec<&Arc<Tenant>> {
        match self {
            Self::Local(tenant) => vec![tenant],
            Self::ByToken(_, tenants) => {
                let mut distinct: Vec<&Arc<Tenant>> = Vec::new();
                for tenant in tenants {
                    if !distinct.iter().any(|known| Arc::ptr_eq(known, tenant)) {
                        distinct.push(tenant);
                    }
                }
                distinct
            }
        }
    }
}
