//! The CPU time of a process tree, as the sum over its processes: for hosts without control groups.

use std::time::Duration;

/// The maximum number of processes in one sample: the most that a profile can allow.
const MAX_PROCESSES: usize = 4096;

/// The CPU time of a process, of its running descendants, and of the processes that they have waited for; none if the
/// process has ended.
pub(super) fn cpu_time_of_tree(root: i32) -> Option<Duration> {
    let mut ticks = ticks_of(root)?;
    let mut pending = children_of(root);
    let mut count = 0;
    while let Some(pid) = pending.pop() {
        count += 1;
        if count > MAX_PROCESSES {
            break;
        }
        // A process that has ended meanwhile is counted with its parent, once the parent has waited for it.
        ticks += ticks_of(pid).unwrap_or(0);
        pending.extend(children_of(pid));
    }
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / per_second))
}

/// User and system time of a process and of the children that it has waited for, in clock ticks.
fn ticks_of(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_ticks(&stat)
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The name in parentheses can contain anything, so the fields 14 to 17 are counted from the third, which follows
    // it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4).collect();
    let ticks = <[&str; 4]>::try_from(fields).ok()?;
    ticks.iter().map(|field| field.parse::<u64>().ok()).sum()
}

/// The children of all threads of a process; empty if it has ended.
pub(super) fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| -> Vec<i32> { list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect() };
    lists.flat_map(pids).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_after_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 99";
        assert_eq!(parse_ticks(stat), Some(4330));
        assert_eq!(parse_ticks("7 (a) S 1"), None);
        assert!(cpu_time_of_tree(i32::try_from(std::process::id()).unwrap()).is_some());
    }
}
