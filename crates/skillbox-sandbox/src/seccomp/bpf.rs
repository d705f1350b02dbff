//! The few instructions of classic BPF that a filter needs.

use serde::{Deserialize, Serialize};

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip when the comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

pub(super) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub(super) const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub(super) const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
pub(super) const JUMP_IF_BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in `struct seccomp_data`.
pub(super) const OFFSET_NUMBER: u32 = 0;
pub(super) const OFFSET_ARCHITECTURE: u32 = 4;

/// The offset of the lower half of an argument.
pub(super) const fn offset_argument(argument: u8) -> u32 {
    16 + 8 * argument as u32
}

#[cfg(target_endian = "big")]
compile_error!("the lower half of an argument is read at its own offset: little-endian only");

#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_00b7;

/// The bit that marks the numbers of the x32 ABI.
#[cfg(target_arch = "x86_64")]
pub(super) const X32_BIT: Option<u32> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
pub(super) const X32_BIT: Option<u32> = None;

/// The filter's verdicts.
pub(super) const ALLOW: u32 = 0x7fff_0000;

/// The verdict that makes a call fail.
pub(super) const fn fail_with(errno: u32) -> u32 {
    0x0005_0000 | (errno & 0xffff)
}
