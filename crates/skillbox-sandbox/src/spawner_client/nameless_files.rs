//! The space of files without a name: unlinked files that processes of a sandbox still hold open or mapped.
//!
//! A walk through a directory does not find them. Files in flight through sockets are not found either.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::cpu_sampling::children_of;

/// The maximum number of processes in one sample: the most that a profile can allow.
const MAX_PROCESSES: usize = 4096;

/// The bytes that the nameless files on one device use, among those that a process and its descendants hold.
pub(super) fn nameless_bytes_of_tree(root: i32, device: u64) -> u64 {
    let mut bytes: u64 = 0;
    let mut counted = BTreeSet::new();
    let mut pending = vec![root];
    let mut processes = 0;
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
                if file.nlink() == 0 && file.dev() == device && counted.insert(file.ino()) {
                    bytes = bytes.saturating_add(file.blocks().saturating_mul(512));
                }
            }
        }
        if let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) {
            for line in maps.lines() {
                if let Some((inode, length)) = parse_nameless_mapping(line, device)
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

/// The inode and the length of a mapped file without a name on this device, from a line of `/proc/PID/maps`.
fn parse_nameless_mapping(line: &str, device: u64) -> Option<(u64, u64)> {
    if !line.ends_with(" (deleted)") {
        return None;
    }
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapped = rustix::fs::makedev(u32::try_from(number(major)?).ok()?, u32::try_from(number(minor)?).ok()?);
    let inode = fields.next()?.parse().ok()?;
    (mapped == device).then_some((inode, number(end)?.saturating_sub(number(begin)?)))
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
        assert_eq!(parse_nameless_mapping(line, device), Some((4711, 1 << 20)));
        assert_eq!(parse_nameless_mapping(line, device + 1), None);
        assert_eq!(
            parse_nameless_mapping(line.trim_end_matches(" (deleted)"), device),
            None
        );
    }
}
