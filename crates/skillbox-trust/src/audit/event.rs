//! Events in the names of the Open Cybersecurity Schema Framework (OCSF), version 1.9.
//!
//! An event has digests of files and never their content, names of secrets and never their values, and no stdin.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use skillbox_model::{Digest, ErrorCode, Grants, Limits, ProfileName, RunId, SecretInjection, SecretName, SkillName};

use crate::manifest::sha256;

/// Longer texts of a caller, such as a command, are cut; their digest identifies them.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// More inputs and outputs are counted.
const MAX_FILES: usize = 100;
const PROCESS_ACTIVITY: u32 = 1007;
const ENTITY_MANAGEMENT: u32 = 3004;

/// Who asked for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user of the operating system.
    pub user: String,
    /// The tenant of a server.
    pub tenant: Option<String>,
    /// The name of the token, never the token.
    pub token_name: Option<String>,
}

/// A file, identified by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDigest {
    /// The name below the workspace.
    pub name: String,
    /// The digest of the content; none for a directory, and for a file that is not copied.
    pub sha256: Option<Digest>,
}

/// A run that is about to start, or was refused.
#[derive(Clone, Debug)]
pub struct RunDescription {
    /// The id of the run.
    pub run_id: RunId,
    /// The id of the request, if the caller gave one.
    pub request_id: Option<String>,
    /// The skill; none for a command without a skill.
    pub skill: Option<SkillName>,
    /// The digest of the frozen skill.
    pub digest: Option<Digest>,
    /// Who approved the digest.
    pub approved_by: Option<String>,
    /// The command line. The runtime removes secret values before.
    pub command: String,
    /// The profile.
    pub profile: ProfileName,
    /// The digest of the profile.
    pub profile_digest: Option<Digest>,
    /// The limits in force.
    pub limits: Option<Limits>,
    /// The digest of the packages that the run has.
    pub environment: Option<Digest>,
    /// The grants in force.
    pub grants: Grants,
    /// How the script gets each secret.
    pub secrets: BTreeMap<SecretName, SecretInjection>,
    /// The inputs.
    pub inputs: Vec<FileDigest>,
    /// What else the request says.
    pub request: RequestFacts,
}

/// What identifies a request beyond its command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The digest of the request, without standard input and the values of variables, which may be secret.
    pub sha256: Option<Digest>,
    /// The words of a command that runs without a shell.
    pub argv: Vec<String>,
    /// The working directory that the request names.
    pub cwd: Option<String>,
    /// The names of the variables that the request sets.
    pub env_names: Vec<String>,
    /// The other skills that are mounted, by the digest of their frozen copy.
    pub with_skills: Vec<FileDigest>,
}

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct RunEnd {
    /// The reason, such as `exit` or `timeout`.
    pub ended_by: String,
    /// The exit code of the command.
    pub exit_code: Option<i32>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// Processor time in milliseconds.
    pub cpu_ms: Option<u64>,
    /// The peak of the memory in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// The isolation tier that was reached.
    pub tier: String,
    /// Layers that were not enforced.
    pub not_enforced: Vec<String>,
    /// The outputs.
    pub outputs: Vec<FileDigest>,
    /// A summary of the connections, without content.
    pub network: Option<Value>,
    /// Why skillbox could not complete the run.
    pub detail: Option<String>,
}

/// What was done with an entity of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementActivity {
    /// It was created, for example an approval or a token.
    Create = 1,
    /// It was used, for example a secret.
    Read = 2,
    /// It was changed, for example the configuration.
    Update = 3,
    /// It was removed or revoked.
    Delete = 4,
}

/// An entity of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedEntity {
    /// The kind, such as `approval`, `secret` or `token`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The digest or another identifier.
    pub uid: Option<String>,
}

/// One event of the log.
#[derive(Clone, Debug)]
pub enum AuditEvent<'a> {
    /// A run is about to start.
    RunStarted(&'a RunDescription),
    /// A run ended.
    RunEnded(&'a RunId, &'a RunEnd),
    /// The process of a run died before the run ended.
    RunLost(&'a RunId),
    /// A run was refused.
    RunDenied(&'a RunDescription, ErrorCode, &'a str),
    /// Something of the host was created, used, changed or removed.
    Managed(ManagementActivity, &'a ManagedEntity, &'a str),
}

impl AuditEvent<'_> {
    /// The event without the fields that the log adds.
    pub(super) fn to_fields(&self, caller: &Caller, time_ms: u64, host: &str) -> Map<String, Value> {
        let (class, activity, name) = match self {
            Self::RunStarted(_) => (PROCESS_ACTIVITY, 1, "Launch"),
            Self::RunDenied(..) => (PROCESS_ACTIVITY, 1, "Launch"),
            Self::RunEnded(..) | Self::RunLost(_) => (PROCESS_ACTIVITY, 2, "Terminate"),
            Self::Managed(activity, ..) => (ENTITY_MANAGEMENT, *activity as u32, activity_name(*activity)),
        };
        let (category, category_name, class_name) = match class {
            PROCESS_ACTIVITY => (1, "System Activity", "Process Activity"),
            _ => (3, "Identity & Access Management", "Entity Management"),
        };
        let mut fields = Map::new();
        let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        set("activity_id", activity.into());
        set("activity_name", name.into());
        set("actor", actor(caller));
        set("category_name", category_name.into());
        set("category_uid", category.into());
        set("class_name", class_name.into());
        set("class_uid", class.into());
        set("device", json!({"hostname": host, "type_id": 0}));
        set("severity_id", 1.into());
        set("status_id", 1.into());
        set("time", time_ms.into());
        set("type_uid", (class * 100 + activity).into());
        match self {
            Self::RunStarted(run) => {
                set("process", json!({"cmd_line": limited(&run.command), "uid": run.run_id}));
                set("unmapped", run_fields(run));
            }
            Self::RunDenied(run, code, message) => {
                set("process", json!({"cmd_line": limited(&run.command), "uid": run.run_id}));
                set("unmapped", run_fields(run));
                set("action_id", 2.into());
                set("disposition_id", 2.into());
                set("severity_id", 3.into());
                set("status_id", 2.into());
                set("status_code", code.as_str().into());
                set("status_detail", limited(message).into());
            }
            Self::RunEnded(run_id, end) => {
                set("process", json!({"uid": run_id}));
                set("duration", end.duration_ms.into());
                if let Some(code) = end.exit_code {
                    set("exit_code", code.into());
                }
                set("status_id", if end.exit_code == Some(0) { 1 } else { 2 }.into());
                set("status_code", end.ended_by.as_str().into());
                if let Some(detail) = &end.detail {
                    set("status_detail", limited(detail).into());
                }
                set("unmapped", end_fields(end));
            }
            Self::RunLost(run_id) => {
                set("process", json!({"uid": run_id}));
                set("status_id", 2.into());
                set("status_code", "lost".into());
                set("status_detail", "the process of skillbox ended before the run".into());
            }
            Self::Managed(_, entity, message) => {
                set(
                    "entity",
                    json!({"name": limited(&entity.name), "type": entity.kind, "uid": entity.uid}),
                );
                set("message", limited(message).into());
            }
        }
        fields
    }
}

fn activity_name(activity: ManagementActivity) -> &'static str {
    match activity {
        ManagementActivity::Create => "Create",
        ManagementActivity::Read => "Read",
        ManagementActivity::Update => "Update",
        ManagementActivity::Delete => "Delete",
    }
}

fn actor(caller: &Caller) -> Value {
    let mut user = json!({"name": limited(&caller.user), "type_id": 1});
    if let Some(tenant) = &caller.tenant {
        user["org"] = json!({"name": limited(tenant)});
    }
    let mut actor = json!({"user": user});
    if let Some(token) = &caller.token_name {
        actor["session"] = json!({"credential_uid": limited(token)});
    }
    actor
}

fn run_fields(run: &RunDescription) -> Value {
    json!({
        "approved_by": run.approved_by,
        "argv": limited_texts(&run.request.argv),
        "cwd": run.request.cwd.as_deref().map(limited),
        "env_names": limited_texts(&run.request.env_names),
        "environment_digest": run.environment,
        "grants": run.grants,
        "inputs": limited_files(&run.inputs),
        "input_count": run.inputs.len(),
        "limits": run.limits,
        "profile": run.profile,
        "profile_digest": run.profile_digest,
        "request_sha256": run.request.sha256,
        "request_id": run.request_id.as_deref().map(limited),
        "secrets": run.secrets,
        "skill": run.skill,
        "skill_digest": run.digest,
        "with_skills": limited_files(&run.request.with_skills),
    })
}

fn end_fields(end: &RunEnd) -> Value {
    json!({
        "cpu_ms": end.cpu_ms,
        "network": end.network,
        "not_enforced": end.not_enforced,
        "outputs": limited_files(&end.outputs),
        "output_count": end.outputs.len(),
        "peak_memory_bytes": end.peak_memory_bytes,
        "tier": end.tier,
    })
}

/// The first texts, together not much longer than one text may be. The digest of the request identifies the others.
fn limited_texts(texts: &[String]) -> Vec<String> {
    let mut bytes = 0;
    let is_short = |text: &String| {
        bytes += text.len();
        bytes <= 2 * MAX_TEXT_BYTES
    };
    let texts = texts.iter().take(MAX_FILES).map(|text| limited(text));
    texts.take_while(is_short).collect()
}

fn limited_files(files: &[FileDigest]) -> Vec<Value> {
    let to_value = |file: &FileDigest| json!({"name": limited(&file.name), "sha256": file.sha256});
    files.iter().take(MAX_FILES).map(to_value).collect()
}

/// A long text is cut, and its digest added.
fn limited(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    format!("{head} … [{} bytes, {}]", text.len(), sha256(text.as_bytes()))
}
