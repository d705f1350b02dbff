//! The process environment, read here and nowhere else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use skillbox_artifacts::BucketOptions;

/// Variables and working directory, as they were when the program started.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    working_dir: PathBuf,
}

impl Environment {
    /// The environment that the process was started with.
    pub fn of_process() -> Self {
        // If the working directory was removed, its path is empty, and relative paths fail where they are used.
        Self::new(std::env::vars_os(), std::env::current_dir().unwrap_or_default())
    }

    /// An environment with the given variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, working_dir: PathBuf) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            working_dir,
        }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// All variables, for programs that the operator's settings call.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The same environment without the variables that start with a prefix.
    pub fn without_prefix(&self, prefix: &str) -> Self {
        let has_prefix = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(prefix));
        let kept = self.variables.iter().filter(|(name, _)| !has_prefix(name));
        Self {
            variables: kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
            working_dir: self.working_dir.clone(),
        }
    }

    /// The same variables in another working directory.
    pub fn in_directory(&self, directory: &Path) -> Self {
        Self {
            variables: self.variables.clone(),
            working_dir: directory.to_owned(),
        }
    }

    /// The names of all variables that start with a prefix.
    pub fn names_with_prefix(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.variables
            .keys()
            .filter_map(|name| name.to_str())
            .filter(move |name| name.starts_with(prefix))
    }

    /// The variables that configure clients of object stores.
    pub fn object_store_variables(&self) -> BTreeMap<String, String> {
        let is_known = |name: &str| {
            let is_proxy = BucketOptions::PROXY_VARIABLES.contains(&name.to_ascii_uppercase().as_str());
            is_proxy
                || BucketOptions::VARIABLE_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        };
        let texts = self
            .variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        texts
            .filter(|(name, value)| is_known(name) && !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// The directory that relative paths of the command line start from.
    pub fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.get("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// `$XDG_CONFIG_HOME/skillbox`, or its default.
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.xdg_dir("XDG_CONFIG_HOME", ".config")
    }

    /// `$XDG_STATE_HOME/skillbox`, or its default; below the working directory if there is no home directory.
    pub fn default_state_dir(&self) -> PathBuf {
        self.xdg_dir("XDG_STATE_HOME", ".local/state")
            .unwrap_or_else(|| self.working_dir.join(".skillbox"))
    }

    /// `DOCKER_HOST`, as every Docker client reads it, or the default socket of the daemon.
    pub fn default_docker_host(&self) -> String {
        let given = self.get("DOCKER_HOST").and_then(OsStr::to_str);
        given.unwrap_or("unix:///var/run/docker.sock").to_owned()
    }

    /// The directory `skillbox` below an XDG base directory. The XDG specification requires ignoring relative values.
    fn xdg_dir(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let given = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        given
            .or_else(|| Some(self.home()?.join(default)))
            .map(|dir| dir.join("skillbox"))
    }
}
