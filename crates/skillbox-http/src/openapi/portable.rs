//! Rewrites generated schemas so that code generators understand them.

use serde_json::{Map, Value, json};
use skillbox_runtime::make_portable;

/// The schema whose variants are the states of a run, and the property that distinguishes them.
const RUN: &str = "Run";
const STATUS: &str = "status";

/// Rewrites the paths and the schemas of a document.
pub(super) fn make_document_portable(paths: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    let replace_true = |value: &mut Value| {
        if *value == Value::Bool(true) {
            *value = json!({});
        }
    };
    for value in schemas.values_mut() {
        replace_true(value);
        make_portable(value);
        shorten_enumerations(value);
    }
    for value in paths.values_mut() {
        for_each_schema(value, &mut |schema| {
            replace_true(schema);
            make_portable(schema);
            shorten_enumerations(schema);
        });
    }
    name_run_states(schemas);
}

fn for_each_schema(value: &mut Value, apply: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if key == "schema" {
                    apply(value);
                } else {
                    for_each_schema(value, apply);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_schema(value, apply)),
        _ => {}
    }
}

/// Turns alternatives that are single words, each with its description, into an enumeration.
fn shorten_enumerations(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(shorten_enumerations),
        Value::Object(object) => {
            object.values_mut().for_each(shorten_enumerations);
            let Some(Value::Array(options)) = object.get("oneOf") else {
                return;
            };
            let words: Option<Vec<Value>> = options.iter().map(|option| option.get("const").cloned()).collect();
            if let Some(words) = words.filter(|words| words.iter().all(Value::is_string)) {
                object.remove("oneOf");
                object.insert("type".to_owned(), json!("string"));
                object.insert("enum".to_owned(), Value::Array(words));
            }
        }
        _ => {}
    }
}

/// Gives each state of a run a schema of its own, such as `QueuedRun`, and names the property that distinguishes them.
fn name_run_states(schemas: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schemas
        .get_mut(RUN)
        .and_then(|run| run.get_mut("oneOf"))
        .map(Value::take)
    else {
        return;
    };
    let (mut references, mut mapping) = (Vec::new(), Map::new());
    for mut variant in variants {
        let Some(status) = variant["properties"][STATUS]["const"].as_str().map(str::to_owned) else {
            continue;
        };
        if let Some(base) = variant.as_object_mut().and_then(|variant| variant.remove("$ref")) {
            let name = base
                .as_str()
                .and_then(|base| base.rsplit('/').next())
                .unwrap_or_default();
            if let Some(base) = schemas.get(name).cloned() {
                add_properties(&mut variant, &base);
            }
        }
        let name = format!("{}{}{RUN}", status[..1].to_ascii_uppercase(), &status[1..]);
        let reference = format!("#/components/schemas/{name}");
        references.push(json!({"$ref": reference}));
        mapping.insert(status, json!(reference));
        schemas.insert(name, variant);
    }
    if let Some(run) = schemas.get_mut(RUN) {
        run["oneOf"] = Value::Array(references);
        run["discriminator"] = json!({"propertyName": STATUS, "mapping": mapping});
    }
}

fn add_properties(variant: &mut Value, base: &Value) {
    for (name, schema) in base["properties"].as_object().into_iter().flatten() {
        variant["properties"][name] = schema.clone();
    }
    if let (Some(required), Some(more)) = (variant["required"].as_array_mut(), base["required"].as_array()) {
        required.extend(more.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_states_have_names_and_a_discriminator() {
        let mut schemas = Map::new();
        schemas.insert(
            "PendingRun".to_owned(),
            json!({"properties": {"run_id": {"type": "string"}}, "required": ["run_id"]}),
        );
        schemas.insert(
            RUN.to_owned(),
            json!({"oneOf": [{
                "$ref": "#/components/schemas/PendingRun", "properties": {"status": {"const": "queued"}}, "required": ["status"],
            }]}),
        );
        name_run_states(&mut schemas);
        assert_eq!(schemas["QueuedRun"]["required"], json!(["status", "run_id"]));
        assert_eq!(schemas["QueuedRun"]["properties"]["run_id"]["type"], "string");
        assert_eq!(
            schemas[RUN]["discriminator"]["mapping"]["queued"],
            "#/components/schemas/QueuedRun"
        );
    }

    #[test]
    fn words_become_enumerations() {
        let mut schema = json!({"oneOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]});
        shorten_enumerations(&mut schema);
        assert_eq!(schema, json!({"type": "string", "enum": ["a", "b"]}));
    }
}
