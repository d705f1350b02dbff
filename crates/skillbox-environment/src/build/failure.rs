//! Why an environment could not be built.

use skillbox_executor::ExecutorError;
use skillbox_executor::job::RequestError;
use skillbox_executor::workspace::WorkspaceError;
use skillbox_executor::{ExecutionResult, NetworkAccessError};
use skillbox_model::{EndedBy, ErrorCode};

use crate::declaration::PythonPackages;
use crate::registry::RegistryError;

/// Why an environment could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The registries of the host are not usable.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The registries have too many ports.
    #[error(transparent)]
    Network(#[from] NetworkAccessError),
    /// The job is refused.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The sandbox failed.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The workspace of the build cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The packages cannot be installed.
    #[error("{message}")]
    Install {
        /// The package, where it is declared, and the reason.
        message: String,
        /// What changes it.
        hint: Option<String>,
    },
    /// The build reached a limit.
    #[error("the build of the environment was ended: {0}")]
    Limit(&'static str),
    /// The build was cancelled.
    #[error("the build of the environment was cancelled")]
    Cancelled,
    /// The result of the build cannot be read.
    #[error("the build of the environment left no usable result: {0}")]
    Result(String),
}

impl BuildError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Registry(_) | Self::Network(_) | Self::Install { .. } | Self::Result(_) => {
                ErrorCode::EnvironmentFailed
            }
            Self::Request(error) => error.code,
            Self::Executor(error) => error.code(),
            Self::Workspace(_) => ErrorCode::Storage,
            Self::Limit(_) => ErrorCode::LimitExceeded,
            Self::Cancelled => ErrorCode::Cancelled,
        }
    }

    /// What changes it, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Install { hint, .. } => hint.clone(),
            Self::Executor(error) => error.hint(),
            _ => None,
        }
    }
}

/// The failure of a job that did not succeed. `packages` are those of Python, for the places of their declarations.
pub(super) fn failure_of(result: &ExecutionResult, tool: &str, packages: Option<&PythonPackages>) -> BuildError {
    let limit = match result.outcome.ended_by {
        EndedBy::Cancelled => return BuildError::Cancelled,
        EndedBy::Timeout => "it took too long",
        EndedBy::Memory => "it needs too much memory",
        EndedBy::Cpu => "it needs too much processor time",
        EndedBy::Pids => "it started too many processes",
        EndedBy::Disk => "the packages are larger than the limit, or the disk is full",
        EndedBy::Exit | EndedBy::Signal | EndedBy::Output => "",
    };
    if !limit.is_empty() {
        return BuildError::Limit(limit);
    }
    let denied = result.network.iter().flat_map(|network| &network.denials);
    let denied: Vec<String> = denied
        .map(|denial| match denial.port {
            Some(port) => format!("{}:{port}", denial.host),
            None => denial.host.clone(),
        })
        .collect();
    let (message, hint) = explain(&result.stderr.text, tool, packages);
    let hint = match denied.is_empty() {
        true => hint,
        false => Some(format!(
            "the registry refers to {}, which is not allowed; only the hosts of the configured registry are",
            denied.join(", ")
        )),
    };
    BuildError::Install { message, hint }
}

/// The sentence for what a tool wrote.
fn explain(stderr: &str, tool: &str, packages: Option<&PythonPackages>) -> (String, Option<String>) {
    let place = |package: &str| match packages {
        Some(packages) => format!("{}: {package}", packages.place_of(name_of(package))),
        None => package.to_owned(),
    };
    let after = |start: &str| {
        let found = stderr.lines().find_map(|line| line.split_once(start))?;
        Some(found.1.trim().to_owned())
    };
    let summary = last_lines(stderr);
    if stderr.contains("No space left on device") || stderr.contains("ENOSPC") {
        return (
            "the packages are larger than the limit, or the disk is full".to_owned(),
            None,
        );
    }
    if stderr.contains("DO NOT MATCH THE HASHES") || stderr.contains("EINTEGRITY") {
        let package = stderr
            .lines()
            .skip_while(|line| !line.contains("DO NOT MATCH THE HASHES"))
            .find_map(|line| line.trim().split_once(" from "))
            .map(|(package, _)| place(package));
        let subject = package.unwrap_or_else(|| "a package".to_owned());
        return (
            format!("{subject}: the file of the registry does not have the declared hash"),
            None,
        );
    }
    if let Some(message) = after("skillbox: ") {
        return (message, None);
    }
    let is_unreachable = [
        "Failed to establish a new connection",
        "Connection refused",
        "ECONNREFUSED",
        "ECONNRESET",
    ]
    .iter()
    .chain(&[
        "ENOTFOUND",
        "EAI_AGAIN",
        "ETIMEDOUT",
        "Connection reset",
        "SSLError",
        "ProxyError",
        "ReadTimeoutError",
    ])
    .any(|text| stderr.contains(text));
    if is_unreachable && (packages.is_none() || stderr.contains("Retrying")) {
        return (
            format!("{tool} cannot reach the registry that it is configured for: {summary}"),
            Some("try again when it is reachable, or check the configuration of the tool".to_owned()),
        );
    }
    if let Some(package) = after("No matching distribution found for ") {
        let package = package.split(" (").next().unwrap_or(&package).to_owned();
        return (
            format!(
                "{}: the registry has no wheel of this package and version for this host",
                place(&package)
            ),
            Some(
                "check the name and the version; a package with only a source distribution cannot be installed"
                    .to_owned(),
            ),
        );
    }
    let missing = stderr.lines().find(|line| {
        ["Not Found - GET", "No matching version found"]
            .iter()
            .any(|text| line.contains(text))
    });
    if let Some(line) = missing {
        let subject = line.trim_start_matches("npm error").trim_start_matches(" code").trim();
        let subject = subject.trim_start_matches("404").trim_start_matches("notarget").trim();
        return (
            format!("the registry does not have a declared package or version: {subject}"),
            None,
        );
    }
    if stderr.contains("E404") || stderr.contains("ETARGET") {
        return (
            format!("the registry does not have a declared package or version: {summary}"),
            None,
        );
    }
    (format!("{tool} failed: {summary}"), None)
}

/// The name at the start of a requirement.
fn name_of(requirement: &str) -> &str {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
    &requirement[..end.unwrap_or(requirement.len())]
}

/// The end of what a tool wrote, on one line.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let start = lines.len().saturating_sub(4);
    lines[start..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::Declaration;

    #[test]
    fn what_a_tool_wrote_becomes_one_sentence_with_the_place() {
        let texts = ["numpy==99", "six"].map(str::to_owned);
        let declared = Declaration::of_requirements("requirements.txt", &texts)
            .unwrap()
            .python
            .unwrap();
        for (stderr, expected) in [
            (
                "ERROR: Could not find a version that satisfies\nERROR: No matching distribution found for numpy==99\n",
                "requirements.txt:1: numpy==99: the registry has no wheel",
            ),
            (
                "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    six from https://x.example/s.whl:\n",
                "requirements.txt:2: six: the file of the registry does not have the declared hash",
            ),
            ("skillbox: it needs Python >=4", "it needs Python >=4"),
            (
                "WARNING: Retrying (Retry(total=1)): Failed to establish a new connection\nERROR: No matching distribution found for six",
                "pip cannot reach the registry",
            ),
            (
                "OSError: [Errno 28] No space left on device",
                "the packages are larger than the limit",
            ),
            ("something else", "pip failed: something else"),
        ] {
            let (message, _) = explain(stderr, "pip", Some(&declared));
            assert!(message.starts_with(expected), "{message}");
        }
        let npm = "npm error code E404\nnpm error 404  Not Found - GET http://x.example/y - Not found\nnpm error A log";
        let (message, _) = explain(npm, "npm", None);
        assert!(
            message.ends_with("version: Not Found - GET http://x.example/y - Not found"),
            "{message}"
        );
        let (message, _) = explain("npm error code E404\nnpm error 404 elsewhere", "npm", None);
        assert!(message.starts_with("the registry does not have"), "{message}");
    }
}
