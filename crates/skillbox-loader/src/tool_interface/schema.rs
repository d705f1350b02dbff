//! JSON Schemas of the tools, generated from their Rust types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// With more skills than this, a tool accepts any name; the enumeration would cost more tokens than it is worth.
pub(crate) const MAX_ENUM_NAMES: usize = 256;

/// The schema of a tool's input: an object without references, which every provider accepts.
pub(crate) fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<T>(settings().for_deserialize());
    make_portable(&mut schema);
    simplify(&mut schema);
    let mut object = match schema {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    // The type's doc comment is for developers; the tool has its own description.
    object.remove("description");
    object.entry("properties").or_insert_with(|| json!({}));
    object
}

/// The schema of a tool's result, and of the error object of a refused call. Clients check both against it.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>(settings().for_serialize());
    make_portable(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        for key in ["$schema", "title", "description"] {
            object.remove(key);
        }
    }
    accept_error(&mut schema);
    schema
}

/// Extends the object schema of a result: instead of its required properties, a value may have `error`.
pub fn accept_error(schema: &mut Value) {
    let required = schema.as_object_mut().and_then(|object| object.remove("required"));
    schema["properties"]["state_delta"] = json!({"description": "How the call changed the state of the session."});
    schema["properties"]["error"] = json!({
        "type": "object",
        "description": "Why the call was refused, instead of a result.",
        "properties": {
            "code": {"type": "string", "description": "The stable code."},
            "message": {"type": "string", "description": "What went wrong."},
            "hint": {"type": "string", "description": "The remedy."},
            "field": {"type": "string", "description": "The invalid field of the call."},
        },
        "required": ["code", "message"],
    });
    let required = required.unwrap_or_else(|| json!([]));
    schema["anyOf"] = json!([require(&required), require(&json!(["error"]))]);
}

/// A schema that requires properties. Strict validators want them declared beside the requirement.
fn require(names: &Value) -> Value {
    let names_of = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    let properties: Map<String, Value> = names_of.map(|name| (name.to_owned(), json!({}))).collect();
    json!({"type": "object", "properties": properties, "required": names})
}

/// Removes what only some validators and code generators know: the formats of numbers, such as `uint64`, and `true` in
/// place of a schema.
pub fn make_portable(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(make_portable),
        Value::Object(object) => {
            let is_number = |kind: &Value| {
                let has = |kind: &Value| kind == "integer" || kind == "number";
                has(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(has))
            };
            if object.get("type").is_some_and(is_number) && object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if object.get("additionalProperties") == Some(&Value::Bool(true)) {
                object.remove("additionalProperties");
            }
            if object.get("items") == Some(&Value::Bool(true)) {
                object.insert("items".to_owned(), json!({}));
            }
            for key in ["properties", "$defs", "patternProperties"] {
                if let Some(Value::Object(named)) = object.get_mut(key) {
                    for schema in named.values_mut().filter(|schema| **schema == Value::Bool(true)) {
                        *schema = json!({});
                    }
                }
            }
            object.values_mut().for_each(make_portable);
        }
        _ => {}
    }
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true)
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Removes what models do not need: titles, formats, null as the alternative of an optional value, and the long form of
/// an enumeration.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(simplify),
        Value::Object(object) => {
            object.remove("$schema");
            object.remove("format");
            // A property may be named `title`; the keyword `title` is always a string.
            if object.get("title").is_some_and(Value::is_string) {
                object.remove("title");
            }
            remove_null(object);
            shorten_enumeration(object);
            object.values_mut().for_each(simplify);
        }
        _ => {}
    }
}

fn remove_null(object: &mut Map<String, Value>) {
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

fn shorten_enumeration(object: &mut Map<String, Value>) {
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

/// Restricts a property to these names.
pub(crate) fn restrict_to_names(schema: &mut Map<String, Value>, property: &str, names: &[&str]) {
    if names.is_empty() || names.len() > MAX_ENUM_NAMES {
        return;
    }
    let property = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(property));
    if let Some(Value::Object(property)) = property {
        property.insert("enum".to_owned(), json!(names));
    }
}
