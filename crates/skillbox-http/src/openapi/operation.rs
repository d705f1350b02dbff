//! One operation of the API: its parameters, body and responses.

use axum::http::Method;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::operation_id::operation_id;
use super::schemas::{GenerateSchema, Schemas};
use crate::error::ErrorResponse;

pub(super) const JSON: &str = "application/json";

/// A route with its description.
pub(crate) struct Operation {
    pub(super) method: Method,
    /// In the syntax of the router: `{*name}` matches the rest of the path.
    pub(super) path: &'static str,
    tag: &'static str,
    summary: &'static str,
    path_params: Vec<(&'static str, &'static str)>,
    headers: Vec<(&'static str, &'static str, Option<u32>)>,
    query: Option<GenerateSchema>,
    body: Option<Payload>,
    responses: Vec<(u16, &'static str, Option<Payload>)>,
}

struct Payload {
    content_type: &'static str,
    schema: GenerateSchema,
    is_required: bool,
}

impl Operation {
    pub(crate) fn new(method: Method, path: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            tag,
            summary,
            path_params: Vec::new(),
            headers: Vec::new(),
            query: None,
            body: None,
            responses: Vec::new(),
        }
    }

    pub(crate) fn get(path: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self::new(Method::GET, path, tag, summary)
    }

    /// Describes a path parameter.
    pub(crate) fn path_param(mut self, name: &'static str, description: &'static str) -> Self {
        self.path_params.push((name, description));
        self
    }

    /// Describes a request header. Values that make no sense are ignored or refused, as HTTP says for this header.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description, None));
        self
    }

    /// Describes a request header that has 1 to `max_length` characters.
    pub(crate) fn bounded_header(mut self, name: &'static str, description: &'static str, max_length: u32) -> Self {
        self.headers.push((name, description, Some(max_length)));
        self
    }

    /// Accepts query parameters of this type.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(Schemas::query_fields::<T>);
        self
    }

    /// Requires a JSON body of this type.
    pub(crate) fn requires_json<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Payload::new(JSON, Schemas::request::<T>));
        self
    }

    /// Accepts a JSON body of this type, or none.
    pub(crate) fn accepts_json<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Payload {
            is_required: false,
            ..Payload::new(JSON, Schemas::request::<T>)
        });
        self
    }

    /// Requires a body of any bytes.
    pub(crate) fn requires_bytes(mut self) -> Self {
        self.body = Some(Payload::new(
            "application/octet-stream",
            |_| json!({"type": "string", "format": "binary"}),
        ));
        self
    }

    /// Returns JSON of this type.
    pub(crate) fn returns_json<T: JsonSchema>(mut self, status: u16, description: &'static str) -> Self {
        let payload = Payload::new(JSON, Schemas::response::<T>);
        self.responses.push((status, description, Some(payload)));
        self
    }

    /// Returns another content type.
    pub(crate) fn returns_content(
        mut self,
        status: u16,
        description: &'static str,
        content_type: &'static str,
        schema: GenerateSchema,
    ) -> Self {
        self.responses
            .push((status, description, Some(Payload::new(content_type, schema))));
        self
    }

    /// Returns only a status.
    pub(crate) fn returns_nothing(mut self, status: u16, description: &'static str) -> Self {
        self.responses.push((status, description, None));
        self
    }

    /// The path in the syntax of OpenAPI.
    pub(super) fn openapi_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// The OpenAPI operation object.
    pub(super) fn to_openapi(&self, schemas: &mut Schemas) -> Value {
        let mut operation = json!({
            "operationId": operation_id(&self.method, self.path),
            "tags": [self.tag],
            "summary": self.summary,
        });
        let parameters = self.parameters(schemas);
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = &self.body {
            operation["requestBody"] = json!({"required": body.is_required, "content": body.content(schemas)});
        }
        let mut responses = Map::new();
        for (status, description, payload) in &self.responses {
            let mut response = json!({"description": description});
            if let Some(payload) = payload {
                response["content"] = payload.content(schemas);
            }
            responses.insert(status.to_string(), response);
        }
        let error = schemas.response::<ErrorResponse<'static>>();
        for (status, description) in [
            ("4XX", "The request was refused; the error states the reason"),
            ("5XX", "The server is busy, shutting down, or failed"),
        ] {
            responses.insert(
                status.to_owned(),
                json!({"description": description, "content": {JSON: {"schema": error}}}),
            );
        }
        operation["responses"] = Value::Object(responses);
        operation
    }

    fn parameters(&self, schemas: &mut Schemas) -> Vec<Value> {
        let mut parameters = Vec::new();
        for (name, description) in &self.path_params {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": description,
                "schema": {"type": "string", "minLength": 1},
            }));
        }
        for (name, description, max_length) in &self.headers {
            let schema = match max_length {
                Some(max_length) => json!({"type": "string", "minLength": 1, "maxLength": max_length}),
                None => json!({"type": "string"}),
            };
            parameters.push(json!({
                "name": name, "in": "header", "required": false, "description": description, "schema": schema,
            }));
        }
        let fields = self.query.map(|generate| generate(schemas)).unwrap_or_default();
        let required = fields["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in fields["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            remove_null(&mut schema);
            parameters.push(json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)),
                "description": description, "schema": schema,
            }));
        }
        parameters
    }
}

/// Removes `null` from the types: an optional query parameter is omitted, never `null`.
fn remove_null(schema: &mut Value) {
    if let Some(kinds) = schema["type"].as_array_mut() {
        kinds.retain(|kind| kind != "null");
        if let [one] = kinds.as_slice() {
            schema["type"] = one.clone();
        }
    }
    if let Some(kinds) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind["type"] != "null");
    }
    if let Some(object) = schema.as_object_mut() {
        object.retain(|key, value| key != "type" || !value.is_null());
    }
}

impl Payload {
    fn new(content_type: &'static str, schema: GenerateSchema) -> Self {
        Self {
            content_type,
            schema,
            is_required: true,
        }
    }

    fn content(&self, schemas: &mut Schemas) -> Value {
        json!({self.content_type: {"schema": (self.schema)(schemas)}})
    }
}
