//! Collects routes together with their OpenAPI descriptions.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::schemas::Schemas;
use crate::app::App;

/// Routes and their descriptions, under construction.
pub(crate) struct RouteBuilder {
    router: Router<Arc<App>>,
    schemas: Schemas,
    paths: Map<String, Value>,
}

/// Routes with their descriptions: the `paths` and `components.schemas` of an OpenAPI document.
pub(crate) struct DescribedRoutes {
    pub router: Router<Arc<App>>,
    pub paths: Map<String, Value>,
    pub schemas: Map<String, Value>,
}

impl RouteBuilder {
    pub(crate) fn new() -> Self {
        Self {
            router: Router::new(),
            schemas: Schemas::new(),
            paths: Map::new(),
        }
    }

    /// Adds an operation and the handler that serves it.
    pub(crate) fn add<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(operation.method.clone())
            .unwrap_or_else(|error| unreachable!("the table contains only standard methods: {error}"));
        let description = operation.to_openapi(&mut self.schemas);
        let method = operation.method.as_str().to_ascii_lowercase();
        self.paths.entry(operation.openapi_path()).or_insert_with(|| json!({}))[method] = description;
        self.router = self.router.route(operation.path, on(filter, handler));
        self
    }

    /// Completes the routes.
    pub(crate) fn finish(self) -> DescribedRoutes {
        DescribedRoutes {
            router: self.router,
            paths: self.paths,
            schemas: self.schemas.into_definitions(),
        }
    }
}
