//! Why a run is refused before anything is done.

use skillbox_model::{ErrorCode, Layer, ProfileName};

/// Why a run is refused before anything is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The profile requires a layer that this host cannot provide.
    #[error("profile {profile:?} requires {layer}, which this host cannot provide: {reason}", profile = profile.as_str())]
    Isolation {
        /// The profile.
        profile: ProfileName,
        /// The layer.
        layer: Layer,
        /// The cause.
        reason: String,
        /// How to make the layer available.
        fix: String,
    },
    /// The profile isolates nothing, and the host does not allow that.
    #[error("profile {profile:?} isolates nothing, and this host does not allow it", profile = .0.as_str())]
    Unconfined(ProfileName),
    /// A field of the job is invalid.
    #[error("{field}: {message}")]
    Job {
        /// The field of the job.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The profile and the job together need more steps than can be numbered.
    #[error("the launch needs {0} steps, and at most {max} are supported", max = u16::MAX)]
    TooManySteps(usize),
}

impl PlanError {
    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Isolation { .. } => ErrorCode::IsolationUnavailable,
            Self::Unconfined(_) => ErrorCode::ProfileUnknown,
            Self::Job { .. } | Self::TooManySteps(_) => ErrorCode::InvalidRequest,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Isolation { fix, .. } => Some(fix.clone()),
            Self::Unconfined(_) => Some("allow unconfined runs on this host, or use another profile".to_owned()),
            Self::Job { .. } | Self::TooManySteps(_) => None,
        }
    }
}
