//! The OpenAPI document of all routes.

use serde_json::{Value, json};

use super::portable::make_document_portable;
use super::route_builder::DescribedRoutes;

/// How clients authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authentication {
    None,
    BearerToken,
}

/// The OpenAPI document of the public and the authenticated routes.
pub(crate) fn openapi_document(
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
    make_document_portable(&mut paths, &mut schemas);
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
