//! The system call filter: rules as data, compiled into a decision tree of BPF.

mod assembler;
mod bpf;
mod compile;
mod constants;
mod docker;
#[cfg(test)]
mod equivalence;
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
pub(crate) use equivalence::{NativeCall, assert_call_matches_rules, assert_filter_matches_rules, longest_path};
pub use error::CompileError;
pub(crate) use load::load;
pub use policy::SyscallPolicy;
pub use rule::{ArgumentTest, Constant, SyscallAction, SyscallRule};
pub(crate) use syscall_table::find_syscall;
