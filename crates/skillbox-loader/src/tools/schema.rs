//! JSON Schemas of the tools, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// A tool with more skills than this takes any name; the enumeration would cost more than it helps.
pub(crate) const LONGEST_ENUMERATION: usize = 256;

/// The schema of a tool's input: an object without references, as every provider takes it.
pub(crate) fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<T>(settings().for_deserialize());
    tidy(&mut schema);
    let mut object = match schema {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    // The doc comment of the type is for us; the tool has a description of its own.
    object.remove("description");
    object.entry("properties").or_insert_with(|| json!({}));
    object
}

/// The schema of a tool's result.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>(settings().for_serialize());
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    schema
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true)
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Drops what models have no use for: titles, formats, null beside an optional value, and the long form of a
/// choice between words.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.remove("$schema");
            object.remove("format");
            // A property may be called `title`; a keyword of that name is always a text.
            if object.get("title").is_some_and(Value::is_string) {
                object.remove("title");
            }
            without_null(object);
            as_enumeration(object);
            object.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

fn without_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(options)) = object.get_mut("anyOf") else {
        return;
    };
    options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = options.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

fn as_enumeration(object: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = object.get("oneOf") else {
        return;
    };
    let words: Option<Vec<Value>> = options.iter().map(|option| option.get("const").cloned()).collect();
    if let Some(words) = words {
        object.remove("oneOf");
        object.insert("type".to_owned(), json!("string"));
        object.insert("enum".to_owned(), Value::Array(words));
    }
}

/// Lets a property take these names only.
pub(crate) fn enumerate(schema: &mut Map<String, Value>, property: &str, names: &[&str]) {
    if names.is_empty() || names.len() > LONGEST_ENUMERATION {
        return;
    }
    let property = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(property));
    if let Some(Value::Object(property)) = property {
        property.insert("enum".to_owned(), json!(names));
    }
}
