//! Why a run cannot have its packages.

use skillbox_environment::{BuildError, DeclarationError, DetectError, EnvironmentStoreError};
use skillbox_model::ErrorCode;

/// The reason why a run cannot have its packages.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The declaration cannot be read, or is refused.
    #[error("the packages of the skill {skill}")]
    Detect {
        /// The skill.
        skill: String,
        /// The cause.
        source: Box<DetectError>,
    },
    /// The packages of the operator are refused.
    #[error("the packages of the operator")]
    Added(#[source] Box<DeclarationError>),
    /// The packages are not installed, and the host installs none when a skill runs.
    #[error("the packages of the skill {skill} are not installed: {packages}")]
    Missing {
        /// The skill.
        skill: String,
        /// The first packages.
        packages: String,
    },
    /// The packages cannot be installed.
    #[error("the packages of the skill {skill} cannot be installed")]
    Build {
        /// The skill.
        skill: String,
        /// The cause.
        source: Box<BuildError>,
    },
    /// The store of environments cannot be used.
    #[error(transparent)]
    Store(#[from] EnvironmentStoreError),
    /// This program has no local sandbox, in which packages are installed.
    #[error("packages are installed in the local sandbox, which is not configured")]
    NoSandbox,
}

impl EnvironmentError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Detect { source, .. } => match **source {
                DetectError::Declaration(_) => ErrorCode::EnvironmentInvalid,
                DetectError::Read { .. } => ErrorCode::SkillUnreadable,
            },
            Self::Added(_) => ErrorCode::EnvironmentInvalid,
            Self::Missing { .. } => ErrorCode::EnvironmentMissing,
            Self::Build { source, .. } => source.code(),
            Self::Store(EnvironmentStoreError::Cancelled) => ErrorCode::Cancelled,
            Self::Store(EnvironmentStoreError::Busy) => ErrorCode::Busy,
            Self::Store(EnvironmentStoreError::Tree(_)) => ErrorCode::EnvironmentFailed,
            Self::Store(_) => ErrorCode::Storage,
            Self::NoSandbox => ErrorCode::ExecutorUnavailable,
        }
    }

    /// What changes it, if it is not the remedy of the code.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Detect { source, .. } => match &**source {
                DetectError::Declaration(error) => error.hint.map(str::to_owned),
                DetectError::Read { .. } => None,
            },
            Self::Added(error) => error.hint.map(str::to_owned),
            Self::Missing { skill, .. } => Some(format!("run `skillbox env build {skill}`")),
            Self::Build { source, .. } => source.hint(),
            _ => None,
        }
    }
}
