//! What a profile says about system calls.

use serde::{Deserialize, Serialize};

/// One entry of a profile: some calls, what becomes of them, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRule {
    /// Names as in the kernel's tables. A name that this architecture lacks is no error.
    pub calls: Vec<String>,
    /// What becomes of them.
    #[serde(flatten)]
    pub action: SyscallAction,
    /// Why.
    pub reason: String,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum SyscallAction {
    /// It goes through.
    Allow,
    /// It goes through when an argument passes the test, and fails otherwise.
    AllowIf {
        /// The argument, from 0. Its lower 32 bits are looked at, as the kernel does for every tested argument.
        argument: u8,
        /// The test.
        test: ArgumentTest,
        /// The error otherwise.
        otherwise: Constant,
    },
    /// It fails.
    Refuse {
        /// The error.
        errno: Constant,
    },
}

/// A test on the lower 32 bits of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentTest {
    /// It is one of these.
    AnyOf(Vec<Constant>),
    /// It is none of these.
    NoneOf(Vec<Constant>),
    /// It has none of these bits.
    NoBitsOf(Vec<Constant>),
}

/// A number with the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// The name in the kernel's headers, or the number as it was written.
    pub name: String,
    /// The number.
    pub value: u32,
}

impl ArgumentTest {
    /// Whether a value passes.
    pub fn passes(&self, value: u32) -> bool {
        match self {
            Self::AnyOf(constants) => constants.iter().any(|constant| constant.value == value),
            Self::NoneOf(constants) => constants.iter().all(|constant| constant.value != value),
            Self::NoBitsOf(constants) => constants.iter().all(|constant| constant.value & value == 0),
        }
    }
}
