//! Shortens the result of a run for a model: little file content, each part once, and every list bounded.

use serde_json::{Value, json};
use skillbox_model::{Enforcement, LayerState, RunReport};

/// The lists of a report that grow with its request or with what the script writes.
const LISTS: [&str; 5] = [
    "output_files",
    "artifact_files",
    "staged_inputs",
    "refused_outputs",
    "unchanged_files",
];
/// Maximum number of entries of a list.
const MAX_ENTRIES: usize = 100;

/// How long the workspace of a run exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkspaceLifetime {
    /// Until the run has ended.
    Run,
    /// As long as the session of the run.
    Session,
}

/// Shortens the result of a run in place, and returns the text for the model.
///
/// File content is limited to `inline_bytes` in all, counted as it is escaped in JSON twice; what does not fit can be read
/// by the reference of the file, and a warning names the files whose references lead nowhere. The primary output has no
/// second copy of its content. The text names what the sandbox did not enforce in one line; the result keeps the state of
/// every layer.
pub(super) fn shorten_run_result(
    result: &mut Value,
    report: &RunReport,
    inline_bytes: usize,
    lifetime: WorkspaceLifetime,
) -> String {
    for list in LISTS {
        shorten_list(result, list);
    }
    let mut left = inline_bytes;
    let mut lost = Vec::new();
    for file in result["output_files"].as_array_mut().into_iter().flatten() {
        let is_shortened = shorten_content(file, &mut left);
        if is_shortened && lifetime == WorkspaceLifetime::Run && !is_saved(report, &file["name"]) {
            lost.push(file["name"].as_str().unwrap_or_default().to_owned());
        }
    }
    if !lost.is_empty() {
        warn(result, lost_content_warning(&lost, inline_bytes));
    }
    if let Some(primary) = result.get_mut("primary_output").and_then(Value::as_object_mut) {
        primary.remove("content");
        primary.remove("encoding");
        primary.insert("truncated".to_owned(), json!(false));
    }
    let mut text = result.clone();
    text["enforcement"] = json!(describe_enforcement(&report.enforcement));
    text.to_string()
}

fn shorten_list(result: &mut Value, name: &str) {
    let Some(entries) = result.get_mut(name).and_then(Value::as_array_mut) else {
        return;
    };
    let excess = entries.len().saturating_sub(MAX_ENTRIES);
    if excess > 0 {
        entries.truncate(MAX_ENTRIES);
        warn(
            result,
            format!("{name}: {excess} more entries are left out of this result"),
        );
    }
}

fn warn(result: &mut Value, warning: String) {
    if let Some(warnings) = result.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.push(json!(warning));
    }
}

/// Whether a file was saved as an artifact, whose reference outlives the workspace.
fn is_saved(report: &RunReport, name: &Value) -> bool {
    let mut files = report.output_files.iter();
    files.any(|file| Some(file.name.as_str()) == name.as_str() && file.reference.starts_with("artifact://"))
}

fn lost_content_warning(names: &[String], inline_bytes: usize) -> String {
    let others = match names.len() - 1 {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!(
        "{}{others}: the content is cut, because a tool result has at most {inline_bytes} bytes of it, and the workspace of \
         a run without session was removed: name a session, set `save_as_artifacts`, or raise `inline_for_models`",
        names[0]
    )
}

/// Cuts the content of a file to the number of bytes that are left for the result. Returns whether it was cut.
fn shorten_content(file: &mut Value, left: &mut usize) -> bool {
    let Some(content) = file.get("content").and_then(Value::as_str) else {
        return false;
    };
    let is_base64 = file.get("encoding").is_some();
    let mut end = content.len();
    let mut used = 0;
    for (start, character) in content.char_indices() {
        let bytes = json_bytes(character);
        if used + bytes > *left {
            end = start;
            break;
        }
        used += bytes;
    }
    if is_base64 && end < content.len() {
        end -= end % 4;
    }
    *left -= used;
    if end == content.len() {
        return false;
    }
    let shortened = content[..end].to_owned();
    file["truncated"] = json!(true);
    if shortened.is_empty() {
        if let Some(file) = file.as_object_mut() {
            file.remove("content");
            file.remove("encoding");
        }
    } else {
        file["content"] = json!(shortened);
    }
    true
}

/// The bytes of a character in a JSON string within a JSON string: the text of a result is JSON, and some clients send it
/// to the model as a JSON string.
fn json_bytes(character: char) -> usize {
    match character {
        '"' | '\\' => 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 3,
        '\0'..='\u{1f}' => 7,
        other => other.len_utf8(),
    }
}

/// The enforcement in one line, such as `T1; memory absent: no control group`.
fn describe_enforcement(enforcement: &Enforcement) -> String {
    let mut line = format!("{:?}", enforcement.tier);
    let mut is_complete = true;
    for (layer, state) in &enforcement.layers {
        let (status, reason) = match state {
            LayerState::Partial { reason } => ("partial", reason),
            LayerState::Absent { reason } => ("absent", reason),
            LayerState::Enforced | LayerState::NotRequested => continue,
        };
        is_complete = false;
        line.push_str(&format!("; {layer} {status}: {reason}"));
    }
    if is_complete {
        line.push_str("; every requested layer is enforced");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str, encoding: Option<&str>) -> Value {
        let mut file = json!({"content": content, "truncated": false});
        if let Some(encoding) = encoding {
            file["encoding"] = json!(encoding);
        }
        file
    }

    #[test]
    fn content_is_cut_by_its_bytes_in_json() {
        let mut left = 10;
        let mut first = file("a\nb", None);
        shorten_content(&mut first, &mut left);
        assert_eq!((first["truncated"].as_bool(), left), (Some(false), 5));
        let mut second = file("ü\"\"ü", None);
        shorten_content(&mut second, &mut left);
        assert_eq!(second, json!({"content": "ü", "truncated": true}));
        let mut third = file("\"x", None);
        shorten_content(&mut third, &mut left);
        assert_eq!(third, json!({"truncated": true}));
        let (mut base64, mut left) = (file("QUJDREVG", Some("base64")), 7);
        shorten_content(&mut base64, &mut left);
        assert_eq!(base64["content"], "QUJD");
    }

    #[test]
    fn long_lists_are_cut_with_a_warning() {
        let mut result = json!({"unchanged_files": vec!["x"; 103], "warnings": []});
        shorten_list(&mut result, "unchanged_files");
        assert_eq!(result["unchanged_files"].as_array().unwrap().len(), 100);
        assert_eq!(
            result["warnings"],
            json!(["unchanged_files: 3 more entries are left out of this result"])
        );
    }
}
