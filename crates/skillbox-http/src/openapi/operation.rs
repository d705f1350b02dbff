//! One operation: what it takes and what it gives.

use axum::http::Method;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::schemas::{Describe, Schemas};
use crate::error::ErrorAnswer;

pub(super) const JSON: &str = "application/json";

/// A line of the table: where it is served, and how it is described.
pub(crate) struct Operation {
    pub(super) method: Method,
    /// As the router takes it: `{*name}` is a rest with slashes.
    pub(super) path: &'static str,
    tag: &'static str,
    summary: &'static str,
    path_parts: Vec<(&'static str, &'static str)>,
    headers: Vec<(&'static str, &'static str)>,
    query: Option<Describe>,
    body: Option<Payload>,
    answers: Vec<(u16, &'static str, Option<Payload>)>,
}

struct Payload {
    kind: &'static str,
    schema: Describe,
    is_required: bool,
}

impl Operation {
    pub(crate) fn new(method: Method, path: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            tag,
            summary,
            path_parts: Vec::new(),
            headers: Vec::new(),
            query: None,
            body: None,
            answers: Vec::new(),
        }
    }

    pub(crate) fn get(path: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self::new(Method::GET, path, tag, summary)
    }

    /// Says what a variable part of the path is.
    pub(crate) fn part(mut self, name: &'static str, about: &'static str) -> Self {
        self.path_parts.push((name, about));
        self
    }

    /// Takes a header that is not everybody's.
    pub(crate) fn header(mut self, name: &'static str, about: &'static str) -> Self {
        self.headers.push((name, about));
        self
    }

    /// Takes a query of this type.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(Schemas::fields::<T>);
        self
    }

    /// Takes JSON of this type.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Payload::new(JSON, Schemas::read::<T>));
        self
    }

    /// Takes JSON of this type, or nothing.
    pub(crate) fn may_take<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Payload {
            is_required: false,
            ..Payload::new(JSON, Schemas::read::<T>)
        });
        self
    }

    /// Takes bytes of any kind.
    pub(crate) fn takes_bytes(mut self) -> Self {
        self.body = Some(Payload::new("application/octet-stream", |_| json!({})));
        self
    }

    /// Gives JSON of this type.
    pub(crate) fn gives<T: JsonSchema>(mut self, status: u16, about: &'static str) -> Self {
        let payload = Payload::new(JSON, Schemas::written::<T>);
        self.answers.push((status, about, Some(payload)));
        self
    }

    /// Gives something else.
    pub(crate) fn gives_other(
        mut self,
        status: u16,
        about: &'static str,
        kind: &'static str,
        schema: Describe,
    ) -> Self {
        self.answers.push((status, about, Some(Payload::new(kind, schema))));
        self
    }

    /// Gives nothing but its status.
    pub(crate) fn gives_nothing(mut self, status: u16, about: &'static str) -> Self {
        self.answers.push((status, about, None));
        self
    }

    /// The path as the document writes it.
    pub(super) fn described_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// The operation as the document has it.
    pub(super) fn describe(&self, schemas: &mut Schemas) -> Value {
        let mut described = json!({
            "operationId": self.id(),
            "tags": [self.tag],
            "summary": self.summary,
        });
        let parameters = self.parameters(schemas);
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = &self.body {
            described["requestBody"] = json!({"required": body.is_required, "content": body.content(schemas)});
        }
        let mut answers = Map::new();
        for (status, about, payload) in &self.answers {
            let mut answer = json!({"description": about});
            if let Some(payload) = payload {
                answer["content"] = payload.content(schemas);
            }
            answers.insert(status.to_string(), answer);
        }
        let error = schemas.written::<ErrorAnswer<'static>>();
        for (status, about) in [
            ("4XX", "The request is refused; the error says why."),
            ("5XX", "The server is busy, about to end, or failed."),
        ] {
            answers.insert(
                status.to_owned(),
                json!({"description": about, "content": {JSON: {"schema": error}}}),
            );
        }
        described["responses"] = Value::Object(answers);
        described
    }

    /// Such as `get_v1_sessions_id_tools`.
    fn id(&self) -> String {
        let path = self.described_path().replace(['{', '}', '.'], "");
        let words = path.split('/').filter(|word| !word.is_empty());
        let words = std::iter::once(self.method.as_str().to_ascii_lowercase()).chain(words.map(str::to_owned));
        words.collect::<Vec<_>>().join("_")
    }

    fn parameters(&self, schemas: &mut Schemas) -> Vec<Value> {
        let mut parameters = Vec::new();
        for (name, about) in &self.path_parts {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": about,
                "schema": {"type": "string", "minLength": 1},
            }));
        }
        for (name, about) in &self.headers {
            parameters.push(json!({
                "name": name, "in": "header", "required": false, "description": about, "schema": {"type": "string"},
            }));
        }
        let fields = self.query.map(|describe| describe(schemas)).unwrap_or_default();
        let required = fields["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in fields["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            without_null(&mut schema);
            parameters.push(json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)),
                "description": about, "schema": schema,
            }));
        }
        parameters
    }
}

/// What is not in a query is not null: it is not there.
fn without_null(schema: &mut Value) {
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
    fn new(kind: &'static str, schema: Describe) -> Self {
        Self {
            kind,
            schema,
            is_required: true,
        }
    }

    fn content(&self, schemas: &mut Schemas) -> Value {
        json!({self.kind: {"schema": (self.schema)(schemas)}})
    }
}
