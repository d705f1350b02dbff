//! Comparing a part that is expected with the whole that came.

use serde_json::Value;

/// Where `whole` lacks something of `part`: objects by key, arrays item by item, `$…` as conditions.
pub fn subset(part: &Value, whole: &Value, at: &str, complaints: &mut Vec<String>) {
    match (part, whole) {
        (Value::Object(conditions), _) if conditions.keys().any(|key| key.starts_with('$')) => {
            for (condition, expected) in conditions {
                if !holds(condition, expected, whole) {
                    complaints.push(format!("{at} is {whole}, not {condition} {expected}"));
                }
            }
        }
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                subset(
                    value,
                    whole.get(key).unwrap_or(&Value::Null),
                    &format!("{at}.{key}"),
                    complaints,
                );
            }
        }
        (Value::Array(part), Value::Array(whole)) => {
            if part.len() != whole.len() {
                complaints.push(format!(
                    "{at} has {} items, not {}: {}",
                    whole.len(),
                    part.len(),
                    Value::from(whole.clone())
                ));
            }
            for (index, (part, whole)) in part.iter().zip(whole).enumerate() {
                subset(part, whole, &format!("{at}[{index}]"), complaints);
            }
        }
        _ if part == whole => {}
        _ => complaints.push(format!("{at} is {whole}, not {part}")),
    }
}

fn holds(condition: &str, expected: &Value, value: &Value) -> bool {
    let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = || value.as_f64().unwrap_or(f64::NAN);
    let bound = || expected.as_f64().unwrap_or(f64::NAN);
    let length = || value.as_array().map_or_else(|| text().len(), Vec::len);
    match condition {
        "$contains" => text().contains(expected.as_str().unwrap()),
        "$lacks" => !text().contains(expected.as_str().unwrap()),
        "$starts" => text().starts_with(expected.as_str().unwrap()),
        "$ends" => text().ends_with(expected.as_str().unwrap()),
        "$at_most" => number() <= bound(),
        "$at_least" => number() >= bound(),
        "$length" => expected.as_u64() == Some(length() as u64),
        "$absent" => value.is_null() == expected.as_bool().unwrap(),
        "$any_of" => expected.as_array().unwrap().contains(value),
        "$has" => value.as_array().is_some_and(|items| {
            items.iter().any(|item| {
                let mut complaints = Vec::new();
                subset(expected, item, "", &mut complaints);
                complaints.is_empty()
            })
        }),
        other => panic!("{other} is no condition"),
    }
}
