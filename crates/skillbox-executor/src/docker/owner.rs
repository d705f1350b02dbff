//! Whose a container is: the process that made it, told apart from any other that had or will have its number.

use std::fs;

/// Where every container of ours says so.
pub(super) const LABEL: &str = "skillbox";
/// Where it says whose it is.
pub(super) const OWNER_LABEL: &str = "skillbox.owner";

/// What may be done with somebody's container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Its process lives.
    Alive,
    /// Its process is gone.
    Gone,
    /// On another host or in another pid namespace: nothing is known.
    Elsewhere,
}

/// This process: boot, pid namespace, pid and start time.
pub(super) fn this_process() -> String {
    let pid = std::process::id();
    let start = start_time(pid).unwrap_or_default();
    format!("{}/{pid}/{start}", here())
}

/// What is known of the process that a label names.
pub(super) fn state(label: &str) -> Owner {
    let mut parts = label.rsplitn(3, '/');
    let (Some(start), Some(pid), Some(place)) = (parts.next(), parts.next(), parts.next()) else {
        return Owner::Elsewhere;
    };
    if place != here() {
        return Owner::Elsewhere;
    }
    let Ok(pid) = pid.parse() else { return Owner::Elsewhere };
    match start_time(pid) {
        Some(found) if found == start => Owner::Alive,
        _ => Owner::Gone,
    }
}

fn here() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", boot.trim(), namespace.display())
}

/// When a process started, in ticks since the boot; none when there is no such process, or only what is left of one.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let after = &stat[stat.rfind(')')? + 1..];
    let mut fields = after.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let start = fields.nth(18)?.to_owned();
    (!is_dead).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_and_the_dead_are_told_apart() {
        let own = this_process();
        assert_eq!(state(&own), Owner::Alive);
        let (head, start) = own.rsplit_once('/').unwrap();
        let other_start = format!("{head}/{}", start.parse::<u64>().unwrap() + 1);
        assert_eq!(state(&other_start), Owner::Gone);
        assert_eq!(state("another-boot/pid:[1]/1/1"), Owner::Elsewhere);
        assert_eq!(state("nonsense"), Owner::Elsewhere);
    }
}
