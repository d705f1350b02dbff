//! The system call rules of a profile.

use serde::{Deserialize, Serialize};

/// One entry of a profile: system calls, the action for them, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRule {
    /// Names as in the kernel's system call tables. A call that exists only on another architecture is ignored.
    pub calls: Vec<String>,
    /// What the filter does with the calls.
    #[serde(flatten)]
    pub action: SyscallAction,
    /// Why the script needs the calls, or must not make them.
    pub reason: String,
}

/// What the filter does with a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum SyscallAction {
    /// Allow it.
    Allow,
    /// Allow it if an argument passes the test, and refuse it otherwise.
    AllowIf {
        /// The index of the argument, from 0 to 5. Only its lower 32 bits are tested, because the kernel ignores the
        /// upper bits of the arguments that profiles test.
        argument: u8,
        /// The test.
        test: ArgumentTest,
        /// A condition on another argument, which allows the call where the test fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        or: Option<Condition>,
        /// The errno that the call returns if neither holds.
        otherwise: Constant,
    },
    /// Refuse it.
    Refuse {
        /// The errno that the call returns.
        errno: Constant,
    },
}

/// A test of one argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The index of the argument, from 0 to 5.
    pub argument: u8,
    /// The test.
    pub test: ArgumentTest,
}

/// A test on an argument: on its lower 32 bits, except where a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentTest {
    /// Equal to one of these.
    AnyOf(Vec<Constant>),
    /// Equal to none of these.
    NoneOf(Vec<Constant>),
    /// Without any of these bits.
    NoBitsOf(Vec<Constant>),
    /// A null pointer: all 64 bits are zero.
    IsNull,
}

/// A number with its symbolic name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// The name in the kernel's headers, or the number as written in the profile.
    pub name: String,
    /// The value.
    pub value: u32,
}

impl ArgumentTest {
    /// Whether a value passes the test.
    pub fn passes(&self, argument: u64) -> bool {
        let value = argument as u32;
        match self {
            Self::AnyOf(constants) => constants.iter().any(|constant| constant.value == value),
            Self::NoneOf(constants) => constants.iter().all(|constant| constant.value != value),
            Self::NoBitsOf(constants) => constants.iter().all(|constant| constant.value & value == 0),
            Self::IsNull => argument == 0,
        }
    }
}
