//! Why a launch cannot be planned.

use skillbox_model::{ErrorCode, Layer, ProfileName};

/// Why a launch cannot be planned. Nothing has been started yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The profile requires a layer that this host cannot provide.
    #[error("profile {profile:?} requires {layer}, which this host cannot provide: {reason}", profile = profile.as_str())]
    LayerUnavailable {
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
    UnconfinedRefused(ProfileName),
    /// A field of the job is invalid.
    #[error("{field}: {message}")]
    InvalidJob {
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
            Self::LayerUnavailable { .. } => ErrorCode::IsolationUnavailable,
            Self::UnconfinedRefused(_) => ErrorCode::ProfileUnknown,
            Self::InvalidJob { .. } | Self::TooManySteps(_) => ErrorCode::InvalidRequest,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::LayerUnavailable { fix, .. } => Some(fix.clone()),
            Self::UnconfinedRefused(_) => Some("allow unconfined runs on this host, or use another profile".to_owned()),
            Self::InvalidJob { .. } | Self::TooManySteps(_) => None,
        }
    }
}
