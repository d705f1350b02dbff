//! The instructions of classic BPF that a filter uses, and the values that it returns.

use serde::{Deserialize, Serialize};

/// One instruction, with the layout of the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Instruction {
    /// The opcode.
    pub code: u16,
    /// The number of instructions to skip if the comparison holds.
    pub jt: u8,
    /// The number of instructions to skip if the comparison does not hold.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

pub(super) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub(super) const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub(super) const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
pub(super) const JUMP_IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The offset of the system call number in `struct seccomp_data`.
pub(super) const NUMBER_OFFSET: u32 = 0;
/// The offset of the architecture in `struct seccomp_data`.
pub(super) const ARCHITECTURE_OFFSET: u32 = 4;

/// The offset of the lower half of an argument in `struct seccomp_data`; `None` for an argument that does not exist.
pub(super) fn argument_offset(argument: u8) -> Option<u32> {
    (argument < 6).then(|| 16 + 8 * u32::from(argument))
}

/// The distance from the lower half of an argument to its upper half.
pub(super) const UPPER_HALF: u32 = 4;

#[cfg(target_endian = "big")]
compile_error!("argument_offset is correct only on little-endian architectures");

#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_00b7;

/// The bit that marks the system call numbers of the x32 ABI.
#[cfg(target_arch = "x86_64")]
pub(super) const X32_BIT: Option<u32> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
pub(super) const X32_BIT: Option<u32> = None;

/// The return value that lets a call through.
pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// The return value that makes a call fail with `EPERM`.
pub(super) const FAIL_EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

/// The return value that makes a call fail with `ENOSYS`.
pub(super) const FAIL_ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// The largest errno. The kernel would silently use this value for a larger one.
const MAX_ERRNO: u32 = 4095;

/// The return value that makes a call fail with an errno; `None` for a number above [`MAX_ERRNO`].
pub(super) fn errno_return_value(errno: u32) -> Option<u32> {
    (errno <= MAX_ERRNO).then_some(libc::SECCOMP_RET_ERRNO | errno)
}
