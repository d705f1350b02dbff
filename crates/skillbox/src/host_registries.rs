//! Asks pip and npm of the host which registries they use. Their configuration has many places, and only they know all.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use skillbox_environment::{NodeRegistry, PipConfiguration, PythonRegistry, RegistryError};
use skillbox_runtime::RegistrySources;

use crate::settings::Environment;

/// Prints the configuration of pip, and the index that it uses without one. `-I` keeps the working directory and its files
/// out of the search path: this runs outside a sandbox.
const ASK_PIP: &str = "
import json
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
configuration = Configuration(isolated=False)
configuration.load()
config = {key: str(value) for key, value in configuration.items() if isinstance(value, str)}
print(json.dumps({'config': config, 'index': PyPI.simple_url, 'files': PyPI.file_storage_domain}))
";

/// npm takes a second on a busy host.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The output of npm has 10 KiB.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// A bundle of certificates has 300 KiB.
const MAX_CERTIFICATE_BYTES: u64 = 8 << 20;

/// The registries of this host. The tools are asked when something is built.
pub fn host_registries(environment: &Environment) -> RegistrySources {
    let (for_python, for_node) = (environment.clone(), environment.clone());
    RegistrySources {
        python: Arc::new(move || ask_pip(&for_python)),
        node: Arc::new(move || ask_npm(&for_node)),
    }
}

fn ask_pip(environment: &Environment) -> Result<PythonRegistry, RegistryError> {
    let output = output_of("python3", &["-I", "-c", ASK_PIP], environment)
        .map_err(|reason| tool_error("pip", "python3 -m pip config list", &reason))?;
    let configuration: PipConfiguration = serde_json::from_slice(&output)
        .map_err(|error| tool_error("pip", "python3 -m pip config list", &error.to_string()))?;
    PythonRegistry::of_pip(&configuration, read_certificates)
}

fn ask_npm(environment: &Environment) -> Result<NodeRegistry, RegistryError> {
    let output = output_of("npm", &["config", "list", "--json"], environment)
        .map_err(|reason| tool_error("npm", "npm config list", &reason))?;
    let configuration: BTreeMap<String, Value> =
        serde_json::from_slice(&output).map_err(|error| tool_error("npm", "npm config list", &error.to_string()))?;
    NodeRegistry::of_npm(&configuration, read_certificates)
}

fn tool_error(tool: &str, command: &str, reason: &str) -> RegistryError {
    RegistryError::Tool(format!(
        "{tool} of this host does not say which registry it uses (`{command}`): {reason}"
    ))
}

fn read_certificates(path: &str) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?
        .take(MAX_CERTIFICATE_BYTES)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Runs a tool of the host in the root directory, where no project configures it.
#[expect(
    clippy::disallowed_methods,
    reason = "pip and npm of the operator, with fixed arguments; nothing of a skill runs"
)]
fn output_of(program: &str, args: &[&str], environment: &Environment) -> Result<Vec<u8>, String> {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(tool_variables(environment))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                let _partial = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() >= deadline => {
                let _killed = child.kill();
                let _reaped = child.wait();
                return Err(format!("{program} did not answer within {} s", TIMEOUT.as_secs()));
            }
            Ok(None) => std::thread::sleep(POLL_INTERVAL),
            Err(error) => return Err(format!("cannot wait for {program}: {error}")),
        }
    };
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    if status.success() {
        return Ok(stdout);
    }
    let message = String::from_utf8_lossy(&stderr);
    let last = message.lines().rev().find(|line| !line.trim().is_empty());
    Err(last.unwrap_or("it failed without a message").trim().to_owned())
}

/// The variables that the tools read: everything but those of Python, which could load code.
fn tool_variables(environment: &Environment) -> Vec<(OsString, OsString)> {
    environment
        .variables()
        .filter(|(name, _)| {
            let name = OsStr::to_str(name).unwrap_or_default();
            !name.starts_with("PYTHON") && name != "NODE_OPTIONS"
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
