//! The schemas of the types that cross the border.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// What clients send is described as we read it, what they get as we write it.
pub(crate) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

/// Describes a type, once asked.
pub(crate) type Describe = fn(&mut Schemas) -> Value;

impl Schemas {
    pub(crate) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
        }
    }

    /// A type that clients send.
    pub(crate) fn read<T: JsonSchema>(&mut self) -> Value {
        Schema::into(self.read.subschema_for::<T>())
    }

    /// A type that clients get.
    pub(crate) fn written<T: JsonSchema>(&mut self) -> Value {
        Schema::into(self.written.subschema_for::<T>())
    }

    /// The fields of a type that clients send, each with its schema and whether it must be there.
    pub(crate) fn fields<T: JsonSchema>(&mut self) -> Value {
        Schema::into(T::json_schema(&mut self.read))
    }

    /// Everything that the others refer to.
    pub(crate) fn into_definitions(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        all.extend(self.written.take_definitions(true));
        all
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::{ErrorBody, RunReport, RunRequest};

    use super::*;

    #[test]
    fn no_name_means_two_things() {
        let mut schemas = Schemas::new();
        schemas.read::<RunRequest>();
        schemas.written::<RunReport>();
        schemas.written::<ErrorBody>();
        let (read, written) = (schemas.read.definitions(), schemas.written.definitions());
        for (name, schema) in read {
            assert!(written.get(name).is_none_or(|other| other == schema), "{name}");
        }
        assert!(read.contains_key("RunRequest") && written.contains_key("RunReport"));
    }
}
