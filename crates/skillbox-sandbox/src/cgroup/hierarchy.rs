//! The mounted control group hierarchies, and the group of this process in each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::limits::CgroupVersion;

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub version: CgroupVersion,
    /// In version 1 they contain the names of the controllers.
    pub mount_options: Vec<String>,
    /// The directory of the hierarchy that appears at the mount point: `/`, or another group in a bind mount.
    pub root: String,
    pub mount_point: PathBuf,
}

impl Hierarchy {
    /// Parses the text of `/proc/self/mountinfo`.
    pub fn parse_all(mountinfo: &str) -> Vec<Self> {
        mountinfo.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, mount_point) = (mount.next()?.to_owned(), PathBuf::from(mount.next()?));
        let mut filesystem = filesystem.split(' ');
        let version = match filesystem.next()? {
            "cgroup" => CgroupVersion::V1,
            "cgroup2" => CgroupVersion::V2,
            _ => return None,
        };
        let options = filesystem.nth(1).unwrap_or_default();
        Some(Self {
            version,
            mount_options: options.split(',').map(str::to_owned).collect(),
            root,
            mount_point,
        })
    }

    /// Whether this hierarchy has a controller of version 1.
    pub fn has_controller(&self, name: &str) -> bool {
        self.mount_options.iter().any(|controller| controller == name)
    }

    /// The directory of a group. A bind mount shows only the groups below its root; for a group outside of it this
    /// returns the mount point.
    pub fn directory_of(&self, group: &str) -> PathBuf {
        let root = self.root.trim_end_matches('/');
        let below_root = group
            .strip_prefix(root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .unwrap_or("");
        let below_root = below_root.trim_matches('/');
        if below_root.is_empty() || below_root.split('/').any(|part| part == "..") {
            return self.mount_point.clone();
        }
        self.mount_point.join(below_root)
    }
}

/// Parses the text of `/proc/self/cgroup`: the group of this process in each hierarchy, by controller. The hierarchy of
/// version 2 has the empty name.
pub(super) fn parse_own_groups(text: &str) -> BTreeMap<String, String> {
    let mut groups = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        if let (Some(controllers), Some(group)) = (parts.next(), parts.next()) {
            for controller in controllers.split(',') {
                groups.insert(controller.to_owned(), group.to_owned());
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const MOUNTINFO: &str = "\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn hierarchies_and_own_groups_are_parsed() {
        let found = Hierarchy::parse_all(MOUNTINFO);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].mount_options, ["rw", "cpu", "cpuacct"]);
        assert_eq!(found[2].version, CgroupVersion::V2);
        let groups = parse_own_groups("4:cpu,cpuacct:/a\n3:memory:/docker/abc/x\n0::/b\n");
        assert_eq!(
            found[0].directory_of(&groups["cpuacct"]),
            Path::new("/sys/fs/cgroup/cpu,cpuacct/a")
        );
        assert_eq!(
            found[1].directory_of(&groups["memory"]),
            Path::new("/sys/fs/cgroup/memory/x")
        );
        assert_eq!(
            found[2].directory_of(&groups[""]),
            Path::new("/sys/fs/cgroup/unified/b")
        );
        assert_eq!(found[1].directory_of("/elsewhere"), Path::new("/sys/fs/cgroup/memory"));
    }
}
