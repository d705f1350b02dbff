//! Rules together with the filter they compile to.

use serde::Serialize;

use super::compile::{CompileError, Filter};
use super::rule::SyscallRule;

/// What a profile says about system calls, compiled once. Rules that exist compile.
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

    /// Rules with the filter that was compiled of them before.
    pub(crate) fn compiled(rules: Vec<SyscallRule>, filter: Filter) -> Self {
        Self { rules, filter }
    }

    /// The rules, as the profile gives them.
    pub fn rules(&self) -> &[SyscallRule] {
        &self.rules
    }

    /// The filter that says the same.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}
