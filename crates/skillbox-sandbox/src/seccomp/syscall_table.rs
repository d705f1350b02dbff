//! Names and numbers of system calls.

use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
const NATIVE_TABLE: &str = include_str!("syscalls_x86_64.txt");
#[cfg(target_arch = "aarch64")]
const NATIVE_TABLE: &str = include_str!("syscalls_aarch64.txt");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system call filter supports x86_64 and aarch64");

/// The tables of every architecture: a profile may name a call that only another architecture has.
const ALL_TABLES: [&str; 2] = [
    include_str!("syscalls_x86_64.txt"),
    include_str!("syscalls_aarch64.txt"),
];

/// Every system call name of every architecture, with its number on this architecture.
static NUMBERS_BY_NAME: LazyLock<HashMap<&'static str, SyscallNumber>> = LazyLock::new(|| {
    let all = ALL_TABLES
        .into_iter()
        .flat_map(parse_table)
        .map(|(_, name)| (name, SyscallNumber::OtherArchitecture));
    let native = native_syscalls().map(|(number, name)| (name, SyscallNumber::Native(number)));
    all.chain(native).collect()
});

fn parse_table(table: &'static str) -> impl Iterator<Item = (u32, &'static str)> {
    table.lines().filter_map(|line| {
        let (number, name) = line.split_once(' ')?;
        Some((number.parse().ok()?, name))
    })
}

/// Every system call of this architecture, by number.
pub(super) fn native_syscalls() -> impl Iterator<Item = (u32, &'static str)> {
    parse_table(NATIVE_TABLE)
}

/// The number of a named system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyscallNumber {
    /// A system call of this architecture.
    Native(u32),
    /// A system call that only another architecture has.
    OtherArchitecture,
}

/// Looks a system call up by name; `None` for a name that no architecture has.
pub(crate) fn find_syscall(name: &str) -> Option<SyscallNumber> {
    NUMBERS_BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_c_library() {
        for (name, number) in [
            ("read", libc::SYS_read),
            ("clone", libc::SYS_clone),
            ("clone3", libc::SYS_clone3),
            ("seccomp", libc::SYS_seccomp),
            ("openat2", libc::SYS_openat2),
            ("mount_setattr", libc::SYS_mount_setattr),
            ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
            ("mseal", libc::SYS_mseal),
        ] {
            let number = u32::try_from(number).unwrap();
            assert_eq!(find_syscall(name), Some(SyscallNumber::Native(number)), "{name}");
        }
        assert_eq!(find_syscall("no_such_call"), None);
        let numbers: Vec<u32> = native_syscalls().map(|(number, _)| number).collect();
        assert!(numbers.len() > 300 && numbers.is_sorted());
    }

    #[test]
    fn every_line_of_the_tables_is_an_entry() {
        for table in ALL_TABLES {
            let lines = table.lines().filter(|line| !line.starts_with('#'));
            assert_eq!(parse_table(table).count(), lines.count());
        }
    }
}
