//! What the host decides about packages.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use skillbox_environment::{NodeRegistry, PythonRegistry, RegistryError, TreeLimits};
use skillbox_model::HostPort;

/// When packages are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvironmentMode {
    /// When a run needs them for the first time.
    Auto,
    /// Only by `skillbox env build`. A run that needs missing ones is refused.
    #[default]
    Prebuilt,
    /// Never; runs have no packages but those of the host.
    Off,
}

/// The settings of environments.
#[derive(Clone, Debug)]
pub struct EnvironmentSettings {
    /// When packages are installed.
    pub mode: EnvironmentMode,
    /// Where packages come from.
    pub registries: RegistrySources,
    /// Hosts that builds may reach besides the registries.
    pub file_hosts: BTreeSet<HostPort>,
    /// The bounds of one environment.
    pub limits: TreeLimits,
    /// Packages of Python that the operator adds to every run.
    pub added_packages: Vec<String>,
}

impl Default for EnvironmentSettings {
    fn default() -> Self {
        Self {
            mode: EnvironmentMode::default(),
            registries: RegistrySources::none(),
            file_hosts: BTreeSet::new(),
            limits: TreeLimits {
                entries: 300_000,
                bytes: 8 << 30,
            },
            added_packages: Vec::new(),
        }
    }
}

/// Asks the tools of the host where packages come from. They are asked when something is built, not before.
#[derive(Clone)]
pub struct RegistrySources {
    /// Asks for the registry of Python.
    pub python: Arc<dyn Fn() -> Result<PythonRegistry, RegistryError> + Send + Sync>,
    /// Asks for the registry of Node.
    pub node: Arc<dyn Fn() -> Result<NodeRegistry, RegistryError> + Send + Sync>,
}

impl RegistrySources {
    /// No registries.
    pub fn none() -> Self {
        let missing = || RegistryError::Tool("this program has no registry of packages".to_owned());
        Self {
            python: Arc::new(move || Err(missing())),
            node: Arc::new(move || Err(missing())),
        }
    }
}

impl fmt::Debug for RegistrySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistrySources")
    }
}
