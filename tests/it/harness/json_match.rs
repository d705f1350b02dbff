//! Matching a JSON value against an expected part of it.

use serde_json::Value;

/// Lists where `actual` lacks something of `expected`: objects are compared by key, arrays item by item, and keys that
/// begin with `$` are conditions.
pub fn collect_mismatches(expected: &Value, actual: &Value, path: &str, mismatches: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(conditions), _) if conditions.keys().any(|key| key.starts_with('$')) => {
            for (condition, operand) in conditions {
                if !condition_holds(condition, operand, actual) {
                    mismatches.push(format!("{path} is {actual}, not {condition} {operand}"));
                }
            }
        }
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                let found = actual.get(key).unwrap_or(&Value::Null);
                collect_mismatches(value, found, &format!("{path}.{key}"), mismatches);
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            if expected.len() != actual.len() {
                mismatches.push(format!(
                    "{path} has {} items, not {}: {}",
                    actual.len(),
                    expected.len(),
                    Value::from(actual.clone())
                ));
            }
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                collect_mismatches(expected, actual, &format!("{path}[{index}]"), mismatches);
            }
        }
        _ if expected == actual => {}
        _ => mismatches.push(format!("{path} is {actual}, not {expected}")),
    }
}

fn condition_holds(condition: &str, operand: &Value, value: &Value) -> bool {
    let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = || value.as_f64().unwrap_or(f64::NAN);
    let bound = || operand.as_f64().unwrap_or(f64::NAN);
    let length = || value.as_array().map_or_else(|| text().len(), Vec::len);
    match condition {
        "$contains" => text().contains(operand.as_str().unwrap()),
        "$lacks" => !text().contains(operand.as_str().unwrap()),
        "$starts" => text().starts_with(operand.as_str().unwrap()),
        "$ends" => text().ends_with(operand.as_str().unwrap()),
        "$at_most" => number() <= bound(),
        "$at_least" => number() >= bound(),
        "$length" => operand.as_u64() == Some(length() as u64),
        "$absent" => value.is_null() == operand.as_bool().unwrap(),
        "$any_of" => operand.as_array().unwrap().contains(value),
        "$has" => value.as_array().is_some_and(|items| {
            items.iter().any(|item| {
                let mut mismatches = Vec::new();
                collect_mismatches(operand, item, "", &mut mismatches);
                mismatches.is_empty()
            })
        }),
        other => panic!("unknown condition {other}"),
    }
}
