//! Builds the router and the OpenAPI document from the same operations.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::page;
use super::schemas::Schemas;
use crate::app::App;

/// Routes and their descriptions, under construction.
pub(crate) struct Api {
    router: Router<Arc<App>>,
    schemas: Schemas,
    paths: Map<String, Value>,
}

/// Routes with their descriptions.
pub(crate) struct DescribedRoutes {
    pub router: Router<Arc<App>>,
    pub paths: Map<String, Value>,
    pub schemas: Map<String, Value>,
}

impl Api {
    pub(crate) fn new() -> Self {
        Self {
            router: Router::new(),
            schemas: Schemas::new(),
            paths: Map::new(),
        }
    }

    /// Adds an operation with its handler.
    pub(crate) fn serve<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(operation.method.clone())
            .unwrap_or_else(|error| unreachable!("the table contains only standard methods: {error}"));
        let described = operation.describe(&mut self.schemas);
        let method = operation.method.as_str().to_ascii_lowercase();
        self.paths.entry(operation.document_path()).or_insert_with(|| json!({}))[method] = described;
        self.router = self.router.route(operation.path, on(filter, handler));
        self
    }

    /// Completes the table.
    pub(crate) fn finish(self) -> DescribedRoutes {
        DescribedRoutes {
            router: self.router,
            paths: self.paths,
            schemas: self.schemas.into_definitions(),
        }
    }
}

/// How clients authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authentication {
    None,
    BearerToken,
}

/// The OpenAPI document of the public and the authenticated routes.
pub(crate) fn document(
    public: &DescribedRoutes,
    authenticated: &DescribedRoutes,
    authentication: Authentication,
) -> Value {
    let mut paths = public.paths.clone();
    for (path, item) in &authenticated.paths {
        let mut item = item.clone();
        if authentication == Authentication::BearerToken {
            for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
                operation["security"] = json!([{"token": []}]);
            }
        }
        paths.insert(path.clone(), item);
    }
    let mut schemas = public.schemas.clone();
    schemas.extend(authenticated.schemas.clone());
    let mut components = json!({"schemas": schemas});
    if authentication == Authentication::BearerToken {
        components["securitySchemes"] = json!({"token": {
            "type": "http", "scheme": "bearer",
            "description": "Token created by `skillbox serve token TENANT`. Tenants are isolated from each other.",
        }});
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "skillbox",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Find Agent Skills, disclose them to agents, and run them in a sandbox.",
        },
        "paths": paths,
        "components": components,
    })
}

/// The document as an HTML page.
pub(crate) fn html_page(document: &Value) -> String {
    page::render(document)
}
