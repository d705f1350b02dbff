//! The request of a run: the JSON input of `skill_run`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict_object;

/// The command to run, its inputs, and the files to return.
///
/// Strings are as the caller wrote them. The runtime parses every path, glob and reference before it creates anything,
/// and its errors name the invalid field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct RunRequest {
    /// Name of the skill whose files are mounted and whose directory is the default working directory.
    pub skill: String,
    /// Shell command line, run by `bash -c`. Exactly one of `command`, `script` and `argv` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Path of a script inside the skill, run without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Arguments of the script, passed unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A program and its arguments, run without a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Working directory: relative to the skill's root, or below `$WORKSPACE_DIR`, `$SKILLS_DIR`, `$WORK_DIR`, `$OUTPUT_DIR` or `$RUN_DIR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables added to the clean environment of the run.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "strict_object::deserialize_unique_names"
    )]
    pub env: BTreeMap<String, String>,
    /// Standard input of the command; empty by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// Timeout in seconds; 300 by default, limited by the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Sandbox profile, one of those that the host allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Executor of the run, one of those that the host allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorKind>,
    /// Other skills whose files are mounted read-only beside this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_skills: Vec<String>,
    /// Globs, relative to the workspace, of files to return (the short form of `outputs`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_files: Vec<String>,
    /// Files to place in the workspace before the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputSpec>,
    /// Which files to collect after the run, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<OutputSpec>,
    /// Store the files of `output_files` as artifacts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save_as_artifacts: bool,
    /// Return names, types and digests of files, but not their content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omit_inline_content: bool,
    /// Prefix of the names of saved artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_prefix: Option<String>,
}

/// One file or directory to place in the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct InputSpec {
    /// `artifact://name[@version]`, `host:///abs/path`, `workspace://rel`, `skill://name/rel`, or the content itself
    /// as `data:[TYPE][;base64],CONTENT`, which needs `to`.
    pub from: String,
    /// Destination in the workspace; `work/inputs/<basename>` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `copy` (default), or `link` for a read-only view of the source.
    #[serde(default)]
    pub mode: InputMode,
    /// Keep the version of an artifact that this session resolved first for this name and destination.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
}

/// How an input is placed in the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    /// A private copy that the script may change.
    #[default]
    Copy,
    /// A read-only view of the source itself.
    Link,
}

/// Which files to collect after the run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct OutputSpec {
    /// Globs relative to the workspace; `**` crosses directories.
    pub globs: Vec<String>,
    /// Return the content of text files.
    pub inline: bool,
    /// Return the content of binary files too, as base64.
    pub inline_binary: bool,
    /// Store the files as artifacts.
    pub save: bool,
    /// Prefix of the names of saved artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_template: Option<String>,
    /// Maximum number of files.
    #[serde(deserialize_with = "strict_object::deserialize_integer")]
    pub max_files: u64,
    /// Maximum number of inline bytes of one file.
    #[serde(deserialize_with = "strict_object::deserialize_integer")]
    pub max_file_bytes: u64,
    /// Maximum number of bytes of all files together.
    #[serde(deserialize_with = "strict_object::deserialize_integer")]
    pub max_total_bytes: u64,
}

impl Default for OutputSpec {
    fn default() -> Self {
        Self {
            globs: Vec::new(),
            inline: true,
            inline_binary: false,
            save: false,
            name_template: None,
            max_files: 100,
            max_file_bytes: 4 << 20,
            max_total_bytes: 64 << 20,
        }
    }
}

strict_object::objects_only!(RunRequest, InputSpec, OutputSpec);

/// The executor of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorKind {
    /// A sandboxed process on this host.
    #[default]
    Local,
    /// A hardened container.
    Docker,
}

impl fmt::Display for ExecutorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Docker => "docker",
        })
    }
}

/// Bytes for standard input. A string in JSON; the command line may pass any bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Stdin(pub Vec<u8>);

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stdin({} bytes)", self.0.len())
    }
}

impl From<String> for Stdin {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<Stdin> for String {
    fn from(stdin: Stdin) -> Self {
        String::from_utf8_lossy(&stdin.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_named() {
        let error = serde_json::from_str::<RunRequest>(r#"{"skill":"a","comand":"x"}"#).unwrap_err();
        assert!(error.to_string().contains("`comand`"), "{error}");
        let error = serde_json::from_str::<RunRequest>(r#"{"skill":"a","outputs":{"glob":[]}}"#).unwrap_err();
        assert!(error.to_string().contains("`glob`"), "{error}");
    }

    #[test]
    fn only_objects_with_unique_names_are_accepted() {
        for (text, expected) in [
            (r#"["a", "x"]"#, "an object"),
            (r#"{"skill":"a","inputs":[["host:///x"]]}"#, "an object"),
            (r#"{"skill":"a","outputs":[["out/*"]]}"#, "an object"),
            (r#"{"skill":"a","outputs":{"max_files":1.5}}"#, "1.5"),
            (r#"{"skill":"a","outputs":{"max_files":-1}}"#, "-1"),
            (r#"{"skill":"a","outputs":{"max_files":1e300}}"#, "integer"),
            (r#"{"skill":"a","skill":"b"}"#, "duplicate field `skill`"),
            (r#"{"skill":"a","env":{"A":"1","A":"2"}}"#, "duplicate name \"A\""),
        ] {
            let error = serde_json::from_str::<RunRequest>(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn integers_may_be_written_as_floats() {
        let request: RunRequest =
            serde_json::from_str(r#"{"skill":"a","outputs":{"max_files":3.0,"max_file_bytes":1e3}}"#).unwrap();
        let outputs = request.outputs.unwrap();
        assert_eq!((outputs.max_files, outputs.max_file_bytes), (3, 1000));
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let request: RunRequest =
            serde_json::from_str(r#"{"skill":"a","command":"x","outputs":{"globs":["out/**"]}}"#).unwrap();
        let outputs = request.outputs.unwrap();
        assert_eq!((outputs.inline, outputs.save), (true, false));
        assert_eq!(
            (outputs.max_files, outputs.max_file_bytes, outputs.max_total_bytes),
            (100, 4 << 20, 64 << 20)
        );
    }
}
