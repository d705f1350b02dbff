//! The process environment, read here and nowhere else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use skillbox_artifacts::BucketOptions;

/// Where services keep their state, by the Filesystem Hierarchy Standard.
const SERVICE_STATE_DIR: &str = "/var/lib/skillbox";

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
        let working_dir = std::env::current_dir().unwrap_or_default();
        Self::new(std::env::vars_os(), working_dir).with_home_of(User::from_uid(Uid::effective()).ok().flatten())
    }

    /// Adds `HOME` from the user database if it is missing, as login programs do.
    fn with_home_of(mut self, user: Option<User>) -> Self {
        if let (None, Some(user)) = (self.home(), user) {
            self.variables.insert("HOME".into(), user.dir.into_os_string());
        }
        self
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

    /// `$XDG_STATE_HOME/skillbox`, or its default. For a user without a home directory it is the directory of services.
    /// It is never below the working directory, where others could prepare approvals and snapshots.
    pub fn default_state_dir(&self) -> PathBuf {
        self.xdg_dir("XDG_STATE_HOME", ".local/state")
            .unwrap_or_else(|| PathBuf::from(SERVICE_STATE_DIR))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(home: Option<&str>) -> Environment {
        let variables = home.map(|home| ("HOME".into(), home.into()));
        Environment::new(variables, PathBuf::from("/project"))
    }

    #[test]
    fn the_state_directory_is_never_below_the_working_directory() {
        let state_dir = |home| environment(home).default_state_dir();
        assert_eq!(state_dir(Some("/home/a")), Path::new("/home/a/.local/state/skillbox"));
        for home in [None, Some(""), Some("relative")] {
            assert_eq!(state_dir(home), Path::new(SERVICE_STATE_DIR), "{home:?}");
        }
    }

    #[test]
    fn a_missing_home_comes_from_the_user_database() {
        let root = User::from_uid(Uid::from_raw(0)).unwrap();
        let home = root.as_ref().map(|user| user.dir.clone());
        assert_eq!(environment(None).with_home_of(root.clone()).home(), home.as_deref());
        assert_eq!(
            environment(Some("/home/a")).with_home_of(root).home(),
            Some(Path::new("/home/a"))
        );
        assert_eq!(environment(None).with_home_of(None).home(), None);
    }
}
