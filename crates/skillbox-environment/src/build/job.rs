//! The job of a build: the installing script, its task on standard input, and what it leaves in the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use serde_json::json;
use skillbox_executor::job::{JobSpec, ProfileBounds, RequestCaps};
use skillbox_executor::workspace::{InputSource, Workspace, open_in_workspace};
use skillbox_executor::{CancelToken, EventSink, Executor, FilesToFetch, NetworkAccess, RunParams, StagedJob};
use skillbox_model::{HostPort, Limits, RelPath, RunId, RunRequest, Stdin};
use skillbox_sandbox::Profile;

use super::failure::{BuildError, failure_of};
use super::installed::Installed;
use crate::declaration::{Declaration, PythonPackages};
use crate::lock::Identity;
use crate::package_json::NodePackages;
use crate::registry::{NodeRegistry, PythonRegistry, RegistryError};

const PYTHON_SCRIPT: &str = include_str!("install_python.py");
const NODE_SCRIPT: &str = include_str!("install_node.js");

/// What a result has at most: 5,000 packages with long names.
const MAX_RESULT_BYTES: u64 = 4 << 20;

/// What a build uses of the host.
pub struct BuildHost<'a> {
    /// Runs the job.
    pub executor: &'a Executor,
    /// The profile `build`.
    pub profile: &'a Profile,
    /// The limits of the build.
    pub limits: Limits,
    /// An empty workspace within these limits.
    pub workspace: &'a Workspace,
    /// The registry of Python packages.
    pub python: &'a dyn Fn() -> Result<PythonRegistry, RegistryError>,
    /// The registry of Node packages.
    pub node: &'a dyn Fn() -> Result<NodeRegistry, RegistryError>,
    /// Further hosts that have the files of packages.
    pub file_hosts: &'a BTreeSet<HostPort>,
    /// The id of the run that needs the environment.
    pub run_id: &'a RunId,
    /// Cancels the build.
    pub cancel: &'a CancelToken,
}

/// Installs the declared packages in the sandbox. Returns what was installed, and the directory with it, in the
/// workspace. Its files are untrusted.
pub fn build_environment(host: &BuildHost<'_>, declaration: &Declaration) -> Result<(Identity, OwnedFd), BuildError> {
    let mut identity = Identity {
        options: vec!["wheels only".to_owned(), "no install scripts".to_owned()],
        ..Identity::default()
    };
    if let Some(python) = &declaration.python {
        let installed = host.install_python(python)?;
        identity.python = installed.packages.clone();
        identity.add(installed);
    }
    if let Some(node) = &declaration.node {
        let installed = host.install_node(node)?;
        identity.node = installed.packages.clone();
        identity.add(installed);
    }
    let stage = RelPath::parse("stage/env").map_err(|error| BuildError::Result(error.to_string()))?;
    match open_in_workspace(host.workspace, &stage) {
        Ok(InputSource::Directory(directory)) => Ok((identity.sorted(), directory)),
        Ok(_) => Err(BuildError::Result("its directory is no directory".to_owned())),
        Err(error) => Err(BuildError::Result(format!("its directory: {error}"))),
    }
}

impl Identity {
    fn add(&mut self, installed: Installed) {
        self.interpreters.push(installed.interpreter);
        self.tools.push(installed.tool);
        if self.platform.is_empty() {
            self.platform = installed.platform;
        }
    }
}

impl BuildHost<'_> {
    fn install_python(&self, packages: &PythonPackages) -> Result<Installed, BuildError> {
        let registry = (self.python)()?;
        let task = json!({
            "requirements": packages.lines(),
            "requires_python": packages.requires_python,
            "index": registry.index.as_str(),
            "extra_indexes": registry.extra_indexes.iter().map(url::Url::as_str).collect::<Vec<_>>(),
            "trusted_hosts": registry.trusted_hosts,
            "certificates": registry.certificates,
        });
        let argv = ["python3", "-I", "-c", PYTHON_SCRIPT];
        self.install(&argv, &task, registry.hosts()?, "pip", Some(packages))
    }

    fn install_node(&self, packages: &NodePackages) -> Result<Installed, BuildError> {
        let registry = (self.node)()?;
        let task = json!({
            "manifest": packages.manifest,
            "lock": packages.lock,
            "registry": registry.registry.as_str(),
            "scopes": registry.scopes.iter().map(|(scope, url)| (scope.as_str(), url.as_str())).collect::<BTreeMap<_, _>>(),
            "certificates": registry.certificates,
        });
        let argv = ["node", "-e", NODE_SCRIPT];
        self.install(&argv, &task, registry.hosts()?, "npm", None)
    }

    fn install(
        &self,
        argv: &[&str],
        task: &serde_json::Value,
        hosts: BTreeSet<HostPort>,
        tool: &'static str,
        packages: Option<&PythonPackages>,
    ) -> Result<Installed, BuildError> {
        let network = NetworkAccess::new(
            hosts
                .into_iter()
                .chain(self.file_hosts.iter().cloned())
                .map(Into::into)
                .collect(),
        )?;
        let request = RunRequest {
            skill: "environment-build".to_owned(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            stdin: Some(Stdin(task.to_string().into_bytes())),
            ..RunRequest::default()
        };
        let bounds = ProfileBounds {
            limits: self.limits.clone(),
            max_wall: self.limits.wall,
            caps: RequestCaps::default(),
        };
        let spec = JobSpec::parse(&request, self.run_id.clone(), &bounds)?;
        self.workspace.prepare(self.run_id)?;
        let job = StagedJob::without_skill(argv.iter().map(OsString::from).collect(), build_variables())
            .with_network(network);
        let result = self.executor.run(RunParams {
            spec: &spec,
            profile: self.profile,
            job,
            workspace: self.workspace,
            files_to_fetch: FilesToFetch::All,
            cancel: self.cancel,
            events: &mut EventSink::silent(),
        })?;
        if result.outcome.exit_code != Some(0) {
            return Err(failure_of(&result, tool, packages));
        }
        self.read_result()
    }

    fn read_result(&self) -> Result<Installed, BuildError> {
        let unusable = |error: &dyn std::fmt::Display| BuildError::Result(error.to_string());
        let path = RelPath::parse("work/result.json").map_err(|error| unusable(&error))?;
        let file: File = match open_in_workspace(self.workspace, &path) {
            Ok(InputSource::File(file)) => file,
            Ok(_) => return Err(unusable(&"it is no file")),
            Err(error) => return Err(unusable(&error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_RESULT_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| unusable(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| unusable(&error))
    }
}

/// The variables of a build. Nothing of the host is among them.
fn build_variables() -> BTreeMap<OsString, OsString> {
    let variables = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/workspace/home"),
        ("TMPDIR", "/workspace/tmp"),
        ("LANG", "C.UTF-8"),
        // Bytecode with sets is then the same for each build.
        ("PYTHONHASHSEED", "0"),
    ];
    variables
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}
