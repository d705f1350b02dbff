//! Those who share the server. What one has, no other can name.

use std::sync::Arc;

use skillbox_model::TenantName;
use skillbox_runtime::Runtime;

use crate::runs::Registry;
use crate::token::{self, TokenHash};

/// One tenant: a runtime with stores of its own, and the runs that it started.
#[derive(Debug)]
pub(crate) struct Tenant {
    /// None for the host's own user, where no token is asked for.
    pub name: Option<TenantName>,
    pub runtime: Arc<Runtime>,
    pub runs: Registry,
}

impl Tenant {
    fn new(name: Option<TenantName>, runtime: Arc<Runtime>) -> Arc<Self> {
        Arc::new(Self {
            name,
            runtime,
            runs: Registry::default(),
        })
    }

    /// For logs.
    pub(crate) fn label(&self) -> &str {
        self.name.as_ref().map_or("", TenantName::as_str)
    }
}

/// Who is let in.
#[derive(Debug)]
pub(crate) enum Tenants {
    /// Everybody on this machine is the host's own user, with the sessions that the command line has too.
    Local(Arc<Tenant>),
    /// Whoever has a token is its tenant; places in the two lists belong together.
    ByToken(Vec<TokenHash>, Vec<Arc<Tenant>>),
}

impl Tenants {
    pub(crate) fn new(runtime: Arc<Runtime>, tokens: Vec<TokenHash>) -> Self {
        if tokens.is_empty() {
            return Self::Local(Tenant::new(None, runtime));
        }
        let mut tenants: Vec<Arc<Tenant>> = Vec::new();
        for line in &tokens {
            let known = tenants.iter().find(|tenant| tenant.name.as_ref() == Some(&line.tenant));
            let tenant = known.cloned().unwrap_or_else(|| {
                let own = runtime.for_tenant(&line.tenant);
                Tenant::new(Some(line.tenant.clone()), own.into())
            });
            tenants.push(tenant);
        }
        Self::ByToken(tokens, tenants)
    }

    /// The tenant of a token.
    pub(crate) fn of_token(&self, token: &str) -> Option<&Arc<Tenant>> {
        match self {
            Self::Local(_) => None,
            Self::ByToken(tokens, tenants) => tenants.get(token::matching(tokens, token)?),
        }
    }

    /// Every tenant once.
    pub(crate) fn all(&self) -> Vec<&Arc<Tenant>> {
        match self {
            Self::Local(tenant) => vec![tenant],
            Self::ByToken(_, tenants) => {
                let mut once: Vec<&Arc<Tenant>> = Vec::new();
                for tenant in tenants {
                    if !once.iter().any(|known| Arc::ptr_eq(known, tenant)) {
                        once.push(tenant);
                    }
                }
                once
            }
        }
    }
}
