//! The system call filter: rules as data, compiled once into a decision tree.

mod bpf;
mod calls;
mod compile;
mod constants;
mod docker;
#[cfg(test)]
mod equivalence;
mod load;
mod policy;
mod rule;

pub use bpf::Instruction;
pub(crate) use calls::number_of;
pub use compile::{CompileError, Filter};
pub(crate) use constants::{errno_named, value_of};
pub use docker::docker_profile;
pub(crate) use load::load;
pub use policy::SyscallPolicy;
pub use rule::{ArgumentTest, Constant, SyscallAction, SyscallRule};
