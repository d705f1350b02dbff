//! The space of files without a name: unlinked files that processes of a sandbox still hold open or mapped.
//!
//! A walk through a directory does not find them. Files in flight through sockets are not found either.
//!
//! A file that was opened through the overlay on a skill has a device of the overlay, although its space is on the
//! device of the workspace. The workspace is the only place that a sandbox can write to, so nameless files on overlays
//! are in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::cpu_sampling::children_of;

/// The maximum number of processes in one sample: the most that a profile can allow.
const MAX_PROCESSES: usize = 4096;

/// `OVERLAYFS_SUPER_MAGIC` of statfs(2).
const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;

/// The bytes that the nameless files on one device use, among those that a process and its descendants hold.
pub(super) fn nameless_bytes_of_tree(root: i32, device: u64) -> u64 {
    let mut bytes: u64 = 0;
    let mut counted = BTreeSet::new();
    let mut pending = vec![root];
    let mut processes = 0;
    let overlays = overlay_devices(root);
    while let Some(pid) = pending.pop() {
        processes += 1;
        if processes > MAX_PROCESSES {
            break;
        }
        for directory in ["fd", "map_files"] {
            // A process that has ended meanwhile holds nothing; `map_files` needs privileges.
            let Ok(entries) = fs::read_dir(format!("/proc/{pid}/{directory}")) else {
                continue;
            };
            for entry in entries.flatten() {
                // This follows the link to the open file itself, whatever its name is.
                let Ok(file) = fs::metadata(entry.path()) else { continue };
                let is_in_workspace = || file.dev() == device || is_on_overlay(&entry.path());
                if file.nlink() == 0 && is_in_workspace() && counted.insert(file.ino()) {
                    bytes = bytes.saturating_add(file.blocks().saturating_mul(512));
                }
            }
        }
        if let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) {
            for line in maps.lines() {
                if let Some((mapped, inode, length)) = parse_nameless_mapping(line)
                    && (mapped == device || overlays.contains(&mapped))
                    && counted.insert(inode)
                {
                    bytes = bytes.saturating_add(length);
                }
            }
        }
        pending.extend(children_of(pid));
    }
    bytes
}

/// Whether an open file is on an overlay. Its device does not tell: the kernel makes one up for each layer.
fn is_on_overlay(file: &Path) -> bool {
    rustix::fs::statfs(file).is_ok_and(|file_system| file_system.f_type == OVERLAYFS_SUPER_MAGIC)
}

/// The devices of the overlays that a process sees; none if it has ended.
fn overlay_devices(pid: i32) -> BTreeSet<u64> {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    mounts.lines().filter_map(parse_overlay_mount).collect()
}

/// The device of an overlay, from a line of `/proc/PID/mountinfo`.
fn parse_overlay_mount(line: &str) -> Option<u64> {
    let (fields, kind) = line.split_once(" - ")?;
    let device = fields.split(' ').nth(2).filter(|_| kind.starts_with("overlay "))?;
    let (major, minor) = device.split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The device, the inode and the length of a mapped file without a name, from a line of `/proc/PID/maps`.
fn parse_nameless_mapping(line: &str) -> Option<(u64, u64, u64)> {
    if !line.ends_with(" (deleted)") {
        return None;
    }
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapped = rustix::fs::makedev(u32::try_from(number(major)?).ok()?, u32::try_from(number(minor)?).ok()?);
    let inode = fields.next()?.parse().ok()?;
    Some((mapped, inode, number(end)?.saturating_sub(number(begin)?)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn nameless_files_are_counted_once() {
        let mut file = tempfile::tempfile().unwrap();
        let device = file.metadata().unwrap().dev();
        let pid = i32::try_from(std::process::id()).unwrap();
        let before = nameless_bytes_of_tree(pid, device);
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let _duplicate = file.try_clone().unwrap();
        let after = nameless_bytes_of_tree(pid, device);
        assert!((1 << 20..2 << 20).contains(&(after - before)), "{before} {after}");
    }

    #[test]
    fn mappings_are_found_by_device_and_name() {
        let device = rustix::fs::makedev(0xfe, 0x1);
        let line = "7f0000000000-7f0000100000 rw-s 00000000 fe:01 4711                       /workspace/a b (deleted)";
        assert_eq!(parse_nameless_mapping(line), Some((device, 4711, 1 << 20)));
        assert_eq!(parse_nameless_mapping(line.trim_end_matches(" (deleted)")), None);
    }

    #[test]
    fn overlays_are_found_in_the_table_of_mounts() {
        let line = "52 47 0:41 / /workspace/skills/a rw,nosuid,nodev - overlay none rw,lowerdir=/workspace/skills/a";
        assert_eq!(parse_overlay_mount(line), Some(rustix::fs::makedev(0, 41)));
        assert_eq!(parse_overlay_mount(&line.replace("- overlay", "- tmpfs")), None);
    }
}
