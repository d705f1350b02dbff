//! The system call rules of a profile, with the filter that they compile to.

use serde::Serialize;

use super::compile::Filter;
use super::error::CompileError;
use super::rule::SyscallRule;

/// The system call rules of a profile, with the filter that they compile to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SyscallPolicy {
    rules: Vec<SyscallRule>,
    #[serde(skip)]
    filter: Filter,
}

impl SyscallPolicy {
    /// Compiles the rules.
    pub fn new(rules: Vec<SyscallRule>) -> Result<Self, CompileError> {
        let filter = Filter::compile(&rules)?;
        Ok(Self { rules, filter })
    }

    /// Combines rules with the filter that the build script compiled from them.
    pub(crate) fn from_compiled(rules: Vec<SyscallRule>, filter: Filter) -> Self {
        Self { rules, filter }
    }

    /// The rules, as the profile lists them.
    pub fn rules(&self) -> &[SyscallRule] {
        &self.rules
    }

    /// The compiled filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}
