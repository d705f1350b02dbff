//! Audit records as syslog messages (RFC 5424).

use humantime::format_rfc3339_millis;
use serde_json::{Value, json};
use skillbox_trust::MissingRecords;
use std::time::{Duration, UNIX_EPOCH};

/// Facility 13 is "log audit".
const FACILITY: u64 = 13;
const WARNING: u64 = 4;
const INFORMATIONAL: u64 = 6;
/// The greatest `sequenceId` of RFC 5424; it starts again at 1.
const MAX_SEQUENCE_ID: u64 = 2_147_483_647;
/// A host name in a header has at most as many characters.
const MAX_HOST_CHARS: usize = 255;

/// The message of a record. `record` is a line of the log.
pub fn to_message(record: &str) -> String {
    // The forwarding has parsed the line before.
    let fields: Value = serde_json::from_str(record).unwrap_or_default();
    format!("{} {record}", header(&fields))
}

/// A message without the content of a record that does not fit into a datagram. The log has the whole record.
pub fn to_short_message(record: &str) -> String {
    let fields: Value = serde_json::from_str(record).unwrap_or_default();
    let short = json!({
        "class_uid": fields["class_uid"],
        "activity_id": fields["activity_id"],
        "time": fields["time"],
        "metadata": {"sequence": fields["metadata"]["sequence"]},
        "process": {"uid": fields["process"]["uid"]},
        "attestation_list": fields["attestation_list"],
        "status_code": fields["status_code"],
        "message": format!("the record has {} bytes, too many for a datagram; the log of the host has all of it", record.len()),
    });
    format!("{} {short}", header(&fields))
}

/// A record in place of those that are missing from the log.
pub fn missing_record(missing: &MissingRecords, now_ms: u64, host: &str) -> String {
    let message = match missing.count {
        Some(count) => format!(
            "{count} records from sequence {} on were removed from the log before they could be forwarded",
            missing.first
        ),
        None => format!(
            "the log was replaced; records from sequence {} on may never have been forwarded",
            missing.first
        ),
    };
    let record = json!({
        "class_uid": 0, "activity_id": 99, "type_uid": 99, "category_uid": 0, "severity_id": 4, "status_id": 2,
        "status_code": "records_missing", "time": now_ms, "message": message,
        "device": {"hostname": host, "type_id": 0},
        "metadata": {"product": {"name": "skillbox", "vendor_name": "skillbox", "version": env!("CARGO_PKG_VERSION")}},
        "unmapped": {"first_missing": missing.first, "missing_records": missing.count},
    });
    record.to_string()
}

fn header(fields: &Value) -> String {
    let severity = match fields["severity_id"].as_u64() {
        Some(severity) if severity > 1 => WARNING,
        _ if fields["status_code"] == "lost" => WARNING,
        _ => INFORMATIONAL,
    };
    let priority = FACILITY * 8 + severity;
    let time = UNIX_EPOCH + Duration::from_millis(fields["time"].as_u64().unwrap_or_default());
    let host = host_name(fields["device"]["hostname"].as_str().unwrap_or_default());
    let structured = match fields["metadata"]["sequence"].as_u64() {
        Some(sequence) => format!("[meta sequenceId=\"{}\"]", sequence % MAX_SEQUENCE_ID + 1),
        None => "-".to_owned(),
    };
    let time = format_rfc3339_millis(time);
    format!(
        "<{priority}>1 {time} {host} skillbox - {} {structured}",
        message_id(fields)
    )
}

/// The kind of the event, for filters of a syslog server.
fn message_id(fields: &Value) -> &'static str {
    match (fields["class_uid"].as_u64(), fields["activity_id"].as_u64()) {
        (Some(1007), Some(1)) if fields["disposition_id"] == 2 => "run-refused",
        (Some(1007), Some(1)) => "run-started",
        (Some(1007), _) => "run-ended",
        (Some(3004), _) => "managed",
        _ => "records-missing",
    }
}

/// The host name of a header: printable ASCII without blanks, or `-`.
fn host_name(name: &str) -> String {
    let printable = name.chars().filter(char::is_ascii_graphic).take(MAX_HOST_CHARS);
    let name: String = printable.collect();
    if name.is_empty() { "-".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_parts_of_the_standard() {
        let record = json!({
            "activity_id": 1, "class_uid": 1007, "device": {"hostname": "host a\u{0}ü1"}, "metadata": {"sequence": 41},
            "severity_id": 1, "time": 1_700_000_000_123_u64, "process": {"cmd_line": "echo 'ü\"]'"},
        });
        let record = record.to_string();
        assert_eq!(
            to_message(&record),
            format!("<110>1 2023-11-14T22:13:20.123Z hosta1 skillbox - run-started [meta sequenceId=\"42\"] {record}")
        );
    }

    #[test]
    fn refused_and_lost_runs_are_warnings() {
        let refused = json!({"activity_id": 1, "class_uid": 1007, "disposition_id": 2, "severity_id": 3, "time": 0});
        let lost = json!({"activity_id": 2, "class_uid": 1007, "severity_id": 1, "status_code": "lost"});
        assert!(
            to_message(&refused.to_string())
                .starts_with("<108>1 1970-01-01T00:00:00.000Z - skillbox - run-refused - {")
        );
        assert!(
            to_message(&lost.to_string()).contains("<108>1 ") && to_message(&lost.to_string()).contains("run-ended")
        );
    }

    #[test]
    fn missing_records_are_a_message_of_their_own() {
        let missing = MissingRecords {
            first: 7,
            count: Some(3),
        };
        let message = to_message(&missing_record(&missing, 0, "h"));
        assert!(
            message.starts_with("<108>1 1970-01-01T00:00:00.000Z h skillbox - records-missing - {"),
            "{message}"
        );
        assert!(message.contains("3 records from sequence 7 on"), "{message}");
    }

    #[test]
    fn a_short_message_identifies_its_record() {
        let record = json!({
            "class_uid": 1007, "activity_id": 1, "metadata": {"sequence": 5}, "process": {"uid": "r1", "cmd_line": "x".repeat(70_000)},
            "attestation_list": [{"fingerprint": {"value": "ab"}}],
        });
        let message = to_short_message(&record.to_string());
        assert!(message.len() < 1_000 && message.contains("\"uid\":\"r1\"") && message.contains("\"value\":\"ab\""));
    }
}
