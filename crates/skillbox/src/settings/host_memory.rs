//! How much memory this process may use, for the default of a setting.

use std::fs;
use std::path::Path;

const MIN_BUFFER_BYTES: usize = 64 << 20;
const MAX_BUFFER_BYTES: usize = 1 << 30;
const MAX_INLINE_BYTES: usize = 16 << 20;

/// A quarter of the memory that this process may use, within bounds.
pub fn default_buffer_bytes() -> usize {
    let limits = [control_group_limit(), physical_memory()];
    let limit = limits.into_iter().flatten().min().unwrap_or(u64::MAX);
    usize::try_from(limit / 4)
        .unwrap_or(usize::MAX)
        .clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES)
}

/// The default bytes of file content in the result of a run. A result exists several times while it is sent, so a small
/// host returns less of it.
pub fn default_inline_bytes() -> usize {
    (default_buffer_bytes() / 16).min(MAX_INLINE_BYTES)
}

/// The memory limit of this process's control group and the groups above it (cgroups(7), version 2 or 1).
fn control_group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // In a container, the mount may show the container's own group as its root.
        let path = Path::new(path.trim_start_matches('/'));
        let limits = path
            .ancestors()
            .filter_map(|group| read_number(&Path::new(mount).join(group).join(file)));
        limits.min()
    });
    limits.min()
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn physical_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}
