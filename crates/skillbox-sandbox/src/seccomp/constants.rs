//! The constants that profiles name instead of bare numbers.

use super::rule::Constant;

macro_rules! constants {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), libc::$name as u32)),*]
    };
}

/// Arguments of system calls.
const ARGUMENTS: &[(&str, u32)] = constants![
    AF_UNIX,
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    F_SETLEASE,
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

/// Constants that the C library's bindings lack, from the kernel's headers.
const KERNEL_ONLY: &[(&str, u32)] = &[
    ("CLONE_NEWTIME", 0x80),
    ("PER_LINUX", 0),
    ("PERSONALITY_QUERY", 0xffff_ffff),
    ("PR_SET_MDWE", 65),
    ("PR_GET_MDWE", 66),
    ("PR_GET_AUXV", 0x4155_5856),
];

/// Errors.
const ERRORS: &[(&str, u32)] = constants![EPERM, ENOSYS, EACCES, EINVAL, EAFNOSUPPORT, EOPNOTSUPP, ENODEV];

/// A constant or a number, decimal or hexadecimal.
pub(crate) fn value_of(text: &str) -> Option<Constant> {
    let named = || {
        ARGUMENTS
            .iter()
            .chain(KERNEL_ONLY)
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

/// An error by its name.
pub(crate) fn errno_named(text: &str) -> Option<Constant> {
    let (name, value) = ERRORS.iter().find(|(name, _)| *name == text)?;
    Some(Constant {
        name: (*name).to_owned(),
        value: *value,
    })
}
