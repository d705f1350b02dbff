//! The table of operations: it serves them and describes them.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::page;
use super::schemas::Schemas;
use crate::app::App;

/// Routes, and what is said of them.
pub(crate) struct Api {
    router: Router<Arc<App>>,
    schemas: Schemas,
    paths: Map<String, Value>,
}

/// An API that was written down.
pub(crate) struct Described {
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

    /// Serves an operation and describes it.
    pub(crate) fn serve<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(operation.method.clone())
            .unwrap_or_else(|error| unreachable!("the table has known methods: {error}"));
        let described = operation.describe(&mut self.schemas);
        let method = operation.method.as_str().to_ascii_lowercase();
        self.paths
            .entry(operation.described_path())
            .or_insert_with(|| json!({}))[method] = described;
        self.router = self.router.route(operation.path, on(filter, handler));
        self
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Described {
        Described {
            router: self.router,
            paths: self.paths,
            schemas: self.schemas.into_definitions(),
        }
    }
}

/// Whether callers have to show a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Tokens,
}

/// The whole document: what everybody may ask, and what only callers that are known may.
pub(crate) fn document(everybody: &Described, known: &Described, door: Door) -> Value {
    let mut paths = everybody.paths.clone();
    for (path, item) in &known.paths {
        let mut item = item.clone();
        if door == Door::Tokens {
            for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
                operation["security"] = json!([{"token": []}]);
            }
        }
        paths.insert(path.clone(), item);
    }
    let mut schemas = everybody.schemas.clone();
    schemas.extend(known.schemas.clone());
    let mut components = json!({"schemas": schemas});
    if door == Door::Tokens {
        components["securitySchemes"] = json!({"token": {
            "type": "http", "scheme": "bearer",
            "description": "A token of `skillbox serve token TENANT`. What one tenant has, no other can name.",
        }});
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "skillbox",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Agent Skills: found, disclosed to agents, and run in a sandbox.",
        },
        "paths": paths,
        "components": components,
    })
}

/// The same for people.
pub(crate) fn readable(document: &Value) -> String {
    page::render(document)
}
