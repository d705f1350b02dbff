//! Why rules do not compile to a filter.

/// The kernel's limit on the length of a filter: `BPF_MAXINSNS`.
pub(super) const MAX_INSTRUCTIONS: usize = 4096;

/// Why rules do not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// No architecture has a system call of this name.
    #[error("no system call is named {0:?}")]
    UnknownCall(String),
    /// Two rules name the same system call.
    #[error("the system call {0:?} is named twice")]
    NamedTwice(String),
    /// A rule tests an argument that does not exist.
    #[error("a system call has arguments 0 to 5, but a rule tests argument {0}")]
    NoSuchArgument(u8),
    /// A rule refuses with a number that is larger than every errno.
    #[error("{0} is too large for an errno")]
    ErrnoTooLarge(String),
    /// A jump is longer than its instruction can encode.
    #[error("a jump over {0} instructions cannot be encoded")]
    JumpTooLong(usize),
    /// The kernel would refuse the filter.
    #[error("the filter has {0} instructions, more than the {MAX_INSTRUCTIONS} that the kernel accepts")]
    TooLong(usize),
}
