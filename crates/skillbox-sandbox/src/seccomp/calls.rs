//! Names and numbers of the system calls of this architecture.

use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
const TABLE: &str = include_str!("calls_x86_64.txt");
#[cfg(target_arch = "aarch64")]
const TABLE: &str = include_str!("calls_aarch64.txt");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system call filter knows x86_64 and aarch64");

/// The tables of every architecture: a profile may name a call that only another one has.
const ALL_TABLES: [&str; 2] = [include_str!("calls_x86_64.txt"), include_str!("calls_aarch64.txt")];

/// Every name of every architecture, with its number here.
static NUMBERS: LazyLock<HashMap<&'static str, CallNumber>> = LazyLock::new(|| {
    let elsewhere = ALL_TABLES
        .into_iter()
        .flat_map(entries)
        .map(|(_, name)| (name, CallNumber::Elsewhere));
    let here = entries(TABLE).map(|(number, name)| (name, CallNumber::Here(number)));
    elsewhere.chain(here).collect()
});

fn entries(table: &'static str) -> impl Iterator<Item = (u32, &'static str)> {
    table.lines().filter_map(|line| {
        let (number, name) = line.split_once(' ')?;
        Some((number.parse().ok()?, name))
    })
}

/// Every call of this architecture, by number.
#[cfg(test)]
pub(crate) fn known_calls() -> impl Iterator<Item = (u32, &'static str)> {
    entries(TABLE)
}

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallNumber {
    /// A call of this architecture.
    Here(u32),
    /// A call that only another architecture has.
    Elsewhere,
}

/// The number behind a name; none for a name that no architecture knows.
pub(crate) fn number_of(name: &str) -> Option<CallNumber> {
    NUMBERS.get(name).copied()
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
            assert_eq!(number_of(name), Some(CallNumber::Here(number as u32)), "{name}");
        }
        assert_eq!(number_of("no_such_call"), None);
        let numbers: Vec<u32> = known_calls().map(|(number, _)| number).collect();
        assert!(numbers.len() > 300 && numbers.is_sorted());
    }
}
