//! The constants that a profile can write by name.

use super::rule::Constant;

macro_rules! constants {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), to_u32(libc::$name as i128))),*]
    };
}

/// Evaluated at compile time, so that a constant that does not fit into 32 bits fails the build.
const fn to_u32(value: i128) -> u32 {
    assert!(
        value >= 0 && value <= u32::MAX as i128,
        "a constant does not fit into 32 bits"
    );
    value as u32
}

/// Arguments of system calls.
const ARGUMENT_CONSTANTS: &[(&str, u32)] = constants![
    AF_UNIX,
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    F_SETLEASE,
    RLIMIT_CORE,
    SOL_SOCKET,
    SO_ATTACH_FILTER,
    SO_ATTACH_BPF,
    SO_ATTACH_REUSEPORT_CBPF,
    SO_ATTACH_REUSEPORT_EBPF,
    MAP_HUGETLB,
    MFD_HUGETLB,
    SHM_HUGETLB,
    F_NOTIFY,
    CLONE_NEWUSER,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWNET,
    CLONE_NEWIPC,
    CLONE_NEWUTS,
    CLONE_NEWCGROUP,
    TIOCSTI,
    TIOCLINUX,
    TIOCSETD,
    TIOCSCTTY,
    TIOCCONS,
    PR_SET_PDEATHSIG,
    PR_GET_PDEATHSIG,
    PR_GET_DUMPABLE,
    PR_SET_DUMPABLE,
    PR_GET_KEEPCAPS,
    PR_SET_KEEPCAPS,
    PR_GET_TIMING,
    PR_SET_NAME,
    PR_GET_NAME,
    PR_GET_SECCOMP,
    PR_SET_SECCOMP,
    PR_CAPBSET_READ,
    PR_GET_TSC,
    PR_GET_SECUREBITS,
    PR_SET_TIMERSLACK,
    PR_GET_TIMERSLACK,
    PR_SET_CHILD_SUBREAPER,
    PR_GET_CHILD_SUBREAPER,
    PR_SET_NO_NEW_PRIVS,
    PR_GET_NO_NEW_PRIVS,
    PR_GET_TID_ADDRESS,
    PR_SET_THP_DISABLE,
    PR_GET_THP_DISABLE,
    PR_CAP_AMBIENT,
    PR_GET_SPECULATION_CTRL,
    PR_SET_SPECULATION_CTRL,
    PR_SET_VMA,
    PR_SET_PTRACER,
    PR_SET_FP_MODE,
    PR_GET_FP_MODE,
    S_IFCHR,
    S_IFBLK,
    S_IFREG,
    S_IFIFO,
    S_IFSOCK,
];

/// More arguments of system calls, from the kernel's headers. The `libc` crate lacks them.
const ARGUMENT_CONSTANTS_NOT_IN_LIBC: &[(&str, u32)] = &[
    ("CLONE_NEWTIME", 0x80),
    ("PER_LINUX", 0),
    ("PERSONALITY_QUERY", 0xffff_ffff),
    ("PR_SET_MDWE", 65),
    ("PR_GET_MDWE", 66),
    ("PR_GET_AUXV", 0x4155_5856),
];

/// Error numbers.
const ERRNO_CONSTANTS: &[(&str, u32)] = constants![EPERM, ENOSYS, EACCES, EINVAL, EAFNOSUPPORT, EOPNOTSUPP, ENODEV];

/// Parses the name of a constant, or a decimal or hexadecimal number.
pub(crate) fn parse_constant(text: &str) -> Option<Constant> {
    let named = || {
        ARGUMENT_CONSTANTS
            .iter()
            .chain(ARGUMENT_CONSTANTS_NOT_IN_LIBC)
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
    };
    let number = || match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let value = named().or_else(number)?;
    Some(Constant {
        name: text.to_owned(),
        value,
    })
}

/// Parses the name of an error number.
pub(crate) fn parse_errno(text: &str) -> Option<Constant> {
    let (name, value) = ERRNO_CONSTANTS.iter().find(|(name, _)| *name == text)?;
    Some(Constant {
        name: (*name).to_owned(),
        value: *value,
    })
}
