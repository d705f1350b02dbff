//! A staged job: everything that an executor needs to start the command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use skillbox_egress::Redactor;
use skillbox_model::{RelPath, SecretName, SkillName};
use skillbox_sandbox::SkillDirAccess;

use crate::NetworkAccess;
use crate::job::{JobSpec, RequestError};
use crate::layout::{self, SKILL_LINKS};
use crate::snapshot::Snapshot;
use crate::workspace::{StagedLink, Workspace, open_directory};

/// A job whose skills and inputs are in place.
#[derive(Debug)]
pub struct StagedJob {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The complete environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory: an absolute path inside the sandbox.
    pub cwd: String,
    /// A directory with one mount point for each skill, mounted read-only at `/workspace/skills`.
    pub mount_points: Option<OwnedFd>,
    /// The skills to mount.
    pub skills: Vec<(SkillName, Arc<Snapshot>)>,
    /// Sources to mount read-only into the workspace.
    pub links: Vec<StagedLink>,
    /// Installed packages to mount read-only outside the workspace.
    pub packages: Option<PackageMounts>,
    /// The hosts that the command may reach.
    pub network: NetworkAccess,
    /// Removes the values of the run's secrets from its output.
    pub redactor: Redactor,
    /// Whether the command may change the directory of the skill that runs. The changes are in the workspace, in the
    /// directory of the skill.
    pub skill_dir: SkillDirAccess,
}

/// The installed packages of a run.
#[derive(Debug)]
pub struct PackageMounts {
    /// The directory of the environment, mounted at [`PackageMounts::ROOT`].
    pub root: OwnedFd,
    /// Its packages of Node, mounted where Node looks for the packages of every script: in the root directory.
    pub node_modules: Option<OwnedFd>,
}

impl PackageMounts {
    /// Where the environment is mounted.
    pub const ROOT: &'static str = "/env";
    /// Where the packages of Node are mounted. Modules of both kinds are looked for in `node_modules` of each parent
    /// directory of a script, and this is the last one.
    pub const NODE_MODULES: &'static str = "/node_modules";
    /// The directories with programs, in front of `PATH`.
    const PROGRAMS: &'static str = "/env/bin:/env/node_modules/.bin";

    /// The descriptors with their mount points.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = (&'static str, &OwnedFd)> {
        let node = self
            .node_modules
            .iter()
            .map(|directory| (Self::NODE_MODULES, directory));
        std::iter::once((Self::ROOT, &self.root)).chain(node)
    }
}

impl StagedJob {
    /// A command that does nothing, without skills and inputs.
    pub(crate) fn empty() -> Self {
        Self {
            argv: vec!["true".into()],
            env: BTreeMap::new(),
            cwd: "/".to_owned(),
            mount_points: None,
            skills: Vec::new(),
            links: Vec::new(),
            packages: None,
            network: NetworkAccess::default(),
            redactor: Redactor::default(),
            skill_dir: SkillDirAccess::ReadOnly,
        }
    }

    /// Sets whether the command may change a private view of its skill's directory.
    pub fn with_skill_dir(mut self, skill_dir: SkillDirAccess) -> Self {
        self.skill_dir = skill_dir;
        self
    }

    /// A command of the host's own, without a skill: the build of an environment.
    pub fn without_skill(argv: Vec<OsString>, env: BTreeMap<OsString, OsString>) -> Self {
        Self {
            argv,
            env,
            cwd: layout::ROOT.to_owned(),
            ..Self::empty()
        }
    }

    /// Mounts installed packages, so that interpreters and programs find them without being activated.
    pub fn with_packages(mut self, packages: PackageMounts) -> Self {
        let path = self.env.entry("PATH".into()).or_default();
        let mut programs = OsString::from(PackageMounts::PROGRAMS);
        if !path.is_empty() {
            programs.push(":");
            programs.push(&*path);
        }
        *path = programs;
        // An interpreter that a script names by its full path finds the packages as those of the user.
        self.env
            .entry("PYTHONUSERBASE".into())
            .or_insert_with(|| PackageMounts::ROOT.into());
        self.packages = Some(packages);
        self
    }

    /// Lets the command reach these hosts, and tells programs about the proxy and the certificate authorities.
    pub fn with_network(mut self, network: NetworkAccess) -> Self {
        network.add_proxy_variables(&mut self.env);
        network.add_certificate_variables(&mut self.env);
        self.network = network;
        self
    }

    /// Sets the variables of secrets, and removes their values from the output. A value in a variable replaces that of the
    /// profile and of the request.
    pub fn with_secrets(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        redactor: Redactor,
    ) -> Self {
        self.env.extend(variables);
        self.redactor = redactor;
        self
    }

    /// Sets the variable of each secret to its placeholder. The operator's name for a secret takes precedence over a variable
    /// of the request: a script that expects the secret must not get another text.
    pub(crate) fn with_placeholders<'a>(
        mut self,
        placeholders: impl Iterator<Item = (&'a SecretName, &'a str)>,
    ) -> Self {
        for (name, placeholder) in placeholders {
            self.env.insert(name.as_str().into(), placeholder.into());
        }
        self
    }

    /// Resolves what depends on the staged files: the interpreter and the working directory.
    ///
    /// The first of `skills` is the one that runs. Variables of the request override `profile_env`.
    pub fn resolve(
        spec: &JobSpec,
        mount_points: OwnedFd,
        skills: Vec<(SkillName, Arc<Snapshot>)>,
        links: Vec<StagedLink>,
        workspace: &Workspace,
        profile_env: Vec<(OsString, OsString)>,
    ) -> Result<Self, RequestError> {
        let head = match (&spec.invocation, skills.first()) {
            (crate::job::Invocation::Script { path, .. }, Some((name, snapshot))) => {
                snapshot.read_head(path).map_err(|error| {
                    RequestError::invalid("script", format!("the skill {name} has no script {path}: {error}"))
                })?
            }
            _ => Vec::new(),
        };
        let argv = spec.invocation.to_argv(&spec.skill, &head)?;
        check_cwd(spec.cwd.as_ref(), &skills, workspace)?;
        let mut env: BTreeMap<OsString, OsString> = crate::job::base_environment(&spec.skill, &spec.run_id)
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        env.extend(profile_env);
        env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
        Ok(Self {
            argv: argv.into_iter().map(OsString::from_vec).collect(),
            env,
            cwd: match &spec.cwd {
                Some(path) => format!("{}/{path}", layout::ROOT),
                None => layout::ROOT.to_owned(),
            },
            mount_points: Some(mount_points),
            skills,
            links,
            packages: None,
            network: NetworkAccess::default(),
            redactor: Redactor::default(),
            skill_dir: SkillDirAccess::ReadOnly,
        })
    }
}

/// Rejects a working directory that does not exist, before anything runs.
fn check_cwd(
    cwd: Option<&RelPath>,
    skills: &[(SkillName, Arc<Snapshot>)],
    workspace: &Workspace,
) -> Result<(), RequestError> {
    let Some(path) = cwd else { return Ok(()) };
    let missing = |error: &dyn std::fmt::Display| {
        RequestError::invalid("cwd", format!("{path:?} is not a directory of the run: {error}"))
    };
    let parts: Vec<&[u8]> = path.components().collect();
    let [b"skills", name, below @ ..] = parts.as_slice() else {
        return open_directory(workspace.root(), path)
            .map(drop)
            .map_err(|error| missing(&error));
    };
    let Some((_, snapshot)) = skills.iter().find(|(skill, _)| skill.as_str().as_bytes() == *name) else {
        return Err(missing(&"no such skill is mounted"));
    };
    let below = below.join(&b'/');
    if below.is_empty() {
        return Ok(());
    }
    let below = RelPath::parse(below).map_err(|error| RequestError::invalid_path("cwd", &error))?;
    // The links to the workspace point out of the snapshot, and always to a directory.
    let first = below.components().next().unwrap_or_default();
    if let Some((link, _)) = SKILL_LINKS.iter().find(|(link, _)| link.as_bytes() == first) {
        let target = if *link == "inputs" { layout::INPUTS } else { link };
        let rest = below.as_bytes()[first.len()..].to_vec();
        let real = RelPath::parse([target.as_bytes(), &rest].concat())
            .map_err(|error| RequestError::invalid_path("cwd", &error))?;
        return open_directory(workspace.root(), &real)
            .map(drop)
            .map_err(|error| missing(&error));
    }
    snapshot
        .open_directory(&below)
        .map(drop)
        .map_err(|error| missing(&error))
}
