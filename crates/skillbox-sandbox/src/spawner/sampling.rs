//! CPU time of a tree of processes, read one by one: for hosts that give us no control group.

use std::time::Duration;

/// As many processes as a profile can allow, and a bound on the work of one sample.
const MAX_PROCESSES: usize = 4096;

/// The time of a process, of everything below it that lives, and of everything they waited for.
pub(super) fn cpu_of_tree(root: i32) -> Option<Duration> {
    let mut ticks = ticks_of(root)?;
    let mut waiting = children_of(root);
    let mut seen = 0;
    while let Some(pid) = waiting.pop() {
        seen += 1;
        if seen > MAX_PROCESSES {
            break;
        }
        // One that ended meanwhile is counted by its parent, or by the next sample.
        ticks += ticks_of(pid).unwrap_or(0);
        waiting.extend(children_of(pid));
    }
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / per_second))
}

/// User and system time of a process and of the children it waited for.
fn ticks_of(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_ticks(&stat)
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The name in parentheses can hold anything; the fields 14 to 17 are counted from the third, which follows it.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

/// The children of all threads of a process.
fn children_of(pid: i32) -> Vec<i32> {
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
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 99";
        assert_eq!(parse_ticks(stat), Some(4330));
        assert_eq!(parse_ticks("7 (a) S 1"), Some(0));
        assert!(cpu_of_tree(i32::try_from(std::process::id()).unwrap()).is_some());
    }
}
