//! Environments with the packages that a skill declares.
//!
//! `declaration` finds the declared packages and refuses whatever is not a package of a registry; `registry` is where they
//! come from; `build` installs them in a sandbox; `lock` gives the result a digest; `store` keeps sealed environments,
//! which runs mount read-only. This crate installs nothing on the host, and never runs the code of a package outside a
//! sandbox.

mod build;
mod declaration;
mod declaration_error;
mod lock;
mod package_json;
mod python_project;
mod python_table;
mod registry;
mod requirement;
mod requirements_file;
mod script_metadata;
mod store;
mod tree;

pub use build::{BuildError, BuildHost, build_environment};
pub use declaration::{
    Declaration, DetectError, MAX_DECLARATION_BYTES, PythonPackages, ReadFile, ScriptLanguage, detect,
};
pub use declaration_error::DeclarationError;
pub use lock::{Identity, InterpreterBuild, LockedPackage};
pub use package_json::{NodePackages, parse_package_json};
pub use python_project::parse_python_project;
pub use python_table::PythonDeclaration;
pub use registry::{NodeRegistry, PipConfiguration, PythonRegistry, RegistryError};
pub use requirement::{Requirement, RequirementError, normalized_name};
pub use requirements_file::{DeclaredRequirement, parse_requirements_file};
pub use script_metadata::parse_script_metadata;
pub use store::{BuildLock, EnvironmentStore, EnvironmentStoreError, SealedEnvironment, StoredEnvironment};
pub use tree::{TreeEntry, TreeError, TreeLimits, copy_sealed, read_entries};
