//! The system call filter: the rules of a profile, compiled into a BPF program that is a decision tree.

mod assembler;
mod bpf;
mod compile;
mod constants;
mod docker;
#[cfg(test)]
mod equivalence_tests;
mod error;
mod load;
mod policy;
mod rule;
mod syscall_table;

pub use bpf::Instruction;
pub use compile::Filter;
pub(crate) use constants::{parse_constant, parse_errno};
pub use docker::docker_seccomp_profile;
#[cfg(test)]
pub(crate) use equivalence_tests::{NativeCall, assert_call_matches_rules, assert_filter_matches_rules, longest_path};
pub use error::CompileError;
pub(crate) use load::load;
pub use policy::SyscallPolicy;
pub use rule::{ArgumentTest, Condition, Constant, SyscallAction, SyscallRule};
pub(crate) use syscall_table::find_syscall;
