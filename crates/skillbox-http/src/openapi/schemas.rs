//! JSON Schemas of request and response types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Generates schemas: of request types as they are deserialized, and of response types as they are serialized.
pub(crate) struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

/// A function that generates the schema of a type.
pub(crate) type GenerateSchema = fn(&mut Schemas) -> Value;

impl Schemas {
    pub(crate) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            responses: settings().for_serialize().into_generator(),
        }
    }

    /// The schema of a request type.
    pub(crate) fn request<T: JsonSchema>(&mut self) -> Value {
        Schema::into(self.requests.subschema_for::<T>())
    }

    /// The schema of a response type.
    pub(crate) fn response<T: JsonSchema>(&mut self) -> Value {
        Schema::into(self.responses.subschema_for::<T>())
    }

    /// The object schema of a query type, with its properties.
    pub(crate) fn query_fields<T: JsonSchema>(&mut self) -> Value {
        Schema::into(T::json_schema(&mut self.requests))
    }

    /// All referenced definitions.
    pub(crate) fn into_definitions(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        all.extend(self.responses.take_definitions(true));
        all
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::{ErrorBody, RunReport, RunRequest};

    use super::*;

    #[test]
    fn request_and_response_types_do_not_share_a_name() {
        let mut schemas = Schemas::new();
        schemas.request::<RunRequest>();
        schemas.response::<RunReport>();
        schemas.response::<ErrorBody>();
        let (requests, responses) = (schemas.requests.definitions(), schemas.responses.definitions());
        for (name, schema) in requests {
            assert!(responses.get(name).is_none_or(|other| other == schema), "{name}");
        }
        assert!(requests.contains_key("RunRequest") && responses.contains_key("RunReport"));
    }
}
