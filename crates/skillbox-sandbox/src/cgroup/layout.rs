//! Finds the controllers that this process can use, and the directories below which it can create groups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::hierarchy::{Hierarchy, parse_own_groups};
use super::limits::CgroupVersion;
use crate::kernel::pseudo_file;

/// A controller that runs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
    CpuAccounting,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::CpuAccounting];

    /// The name of the controller. `cpuacct` exists only in version 1; version 2 counts CPU time in every group.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
        }
    }
}

/// Where groups can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupLayout {
    pub version: CgroupVersion,
    /// The directory below which groups are created, for each available controller.
    pub bases: BTreeMap<Controller, PathBuf>,
    /// Version 2: the processes that must leave the base group before its children can have controllers.
    pub pids_to_move: Vec<i32>,
}

/// Why this process cannot create control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupUnavailable {
    pub reason: String,
    pub fix: String,
}

/// The fix for a missing delegation, in [`CgroupUnavailable::fix`].
pub(crate) const DELEGATION_FIX: &str =
    "run skillbox as a service with `Delegate=yes`, or by `systemd-run --user --scope -p Delegate=yes skillbox …`";

impl CgroupLayout {
    /// Finds the base directories from this process's own groups. Reads a few files and changes nothing. `own_pids` are
    /// the processes that may be moved to another group.
    pub fn discover(own_pids: &[i32]) -> Result<Self, CgroupUnavailable> {
        let read = |path: &str| {
            pseudo_file::read(path).map_err(|error| CgroupUnavailable {
                reason: format!("{path} cannot be read: {error}"),
                fix: "mount /proc".into(),
            })
        };
        let hierarchies = Hierarchy::parse_all(&read("/proc/self/mountinfo")?);
        let own_groups = parse_own_groups(&read("/proc/self/cgroup")?);
        let has_v1_memory = hierarchies
            .iter()
            .any(|hierarchy| hierarchy.version == CgroupVersion::V1 && hierarchy.has_controller("memory"));
        if has_v1_memory {
            return Self::discover_v1(&hierarchies, &own_groups);
        }
        match hierarchies
            .iter()
            .find(|hierarchy| hierarchy.version == CgroupVersion::V2)
        {
            Some(unified) => Self::discover_v2(unified, own_groups.get("").map_or("/", String::as_str), own_pids),
            None => Err(CgroupUnavailable {
                reason: "no control group filesystem is mounted".into(),
                fix: "mount cgroup2 on /sys/fs/cgroup".into(),
            }),
        }
    }

    fn discover_v1(
        hierarchies: &[Hierarchy],
        own_groups: &BTreeMap<String, String>,
    ) -> Result<Self, CgroupUnavailable> {
        let mut bases = BTreeMap::new();
        let mut first_refusal = None;
        for controller in Controller::ALL {
            let mounted = hierarchies
                .iter()
                .find(|hierarchy| hierarchy.has_controller(controller.name()));
            let Some(hierarchy) = mounted else { continue };
            let group = own_groups.get(controller.name()).map_or("/", String::as_str);
            let base = hierarchy.directory_of(group);
            match access(&base, Access::WRITE_OK | Access::EXEC_OK) {
                Ok(()) => {
                    bases.insert(controller, base);
                }
                Err(error) => {
                    first_refusal.get_or_insert((base, error));
                }
            }
        }
        match (bases.is_empty(), first_refusal) {
            (true, Some((base, error))) => Err(CgroupUnavailable {
                reason: format!(
                    "{} is not writable: {error}; cgroup v1 has no delegation",
                    base.display()
                ),
                fix: "run skillbox as root, or boot with cgroup v2 (`systemd.unified_cgroup_hierarchy=1`) and delegate"
                    .into(),
            }),
            (true, None) => Err(CgroupUnavailable {
                reason: "no controller for memory, pids or cpu is mounted".into(),
                fix: "mount the cgroup v1 controllers".into(),
            }),
            (false, _) => Ok(Self {
                version: CgroupVersion::V1,
                bases,
                pids_to_move: Vec::new(),
            }),
        }
    }

    /// Searches from our own group upwards for the nearest group whose children can have controllers.
    fn discover_v2(unified: &Hierarchy, own_group: &str, own_pids: &[i32]) -> Result<Self, CgroupUnavailable> {
        let own = unified.directory_of(own_group);
        let mut reasons = Vec::new();
        for base in own
            .ancestors()
            .take_while(|path| path.starts_with(&unified.mount_point))
        {
            match check_v2_base(base, base == unified.mount_point, own_pids) {
                Ok(V2Base {
                    controllers,
                    pids_to_move,
                }) => {
                    let mut bases = BTreeMap::new();
                    for controller in Controller::ALL {
                        let is_always_available = controller == Controller::CpuAccounting;
                        if is_always_available || controllers.iter().any(|name| name == controller.name()) {
                            bases.insert(controller, base.to_owned());
                        }
                    }
                    return Ok(Self {
                        version: CgroupVersion::V2,
                        bases,
                        pids_to_move,
                    });
                }
                Err(reason) => reasons.push(reason),
            }
        }
        let reason = reasons
            .into_iter()
            .next()
            .unwrap_or_else(|| "this process is in no control group".into());
        Err(CgroupUnavailable {
            reason,
            fix: DELEGATION_FIX.into(),
        })
    }
}

/// A group of version 2 below which groups can be created.
struct V2Base {
    /// The controllers that its children can have.
    controllers: Vec<String>,
    /// The processes that must leave it first.
    pids_to_move: Vec<i32>,
}

/// Checks whether children of a group can have controllers, or returns why they cannot.
fn check_v2_base(base: &Path, is_mount_point: bool, own_pids: &[i32]) -> Result<V2Base, String> {
    let base_path = base.display();
    for path in [
        base.to_owned(),
        base.join("cgroup.procs"),
        base.join("cgroup.subtree_control"),
    ] {
        access(&path, Access::WRITE_OK).map_err(|error| format!("{} is not writable: {error}", path.display()))?;
    }
    let words = |name: &str| -> Result<Vec<String>, String> {
        let text = pseudo_file::read(base.join(name))
            .map_err(|error| format!("{} cannot be read: {error}", base.join(name).display()))?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    };
    let has_needed = |list: &[String]| {
        ["memory", "pids"]
            .iter()
            .all(|needed| list.iter().any(|name| name == needed))
    };
    let enabled = words("cgroup.subtree_control")?;
    if has_needed(&enabled) {
        return Ok(V2Base {
            controllers: enabled,
            pids_to_move: Vec::new(),
        });
    }
    let offered = words("cgroup.controllers")?;
    if !has_needed(&offered) {
        return Err(format!("{base_path} does not have the memory and pids controllers"));
    }
    let members: Vec<i32> = words("cgroup.procs")?
        .iter()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    // Only the root of the hierarchy, which has no `cgroup.type`, may contain both processes and groups with
    // controllers.
    let is_hierarchy_root = is_mount_point && !base.join("cgroup.type").exists();
    if is_hierarchy_root {
        return Ok(V2Base {
            controllers: offered,
            pids_to_move: Vec::new(),
        });
    }
    if let Some(other) = members.iter().find(|pid| !own_pids.contains(pid)) {
        return Err(format!(
            "{base_path} contains other processes, such as {other}, so its groups cannot have controllers"
        ));
    }
    Ok(V2Base {
        controllers: offered,
        pids_to_move: members,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_group(directory: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(directory).unwrap();
        for (name, content) in files {
            std::fs::write(directory.join(name), content).unwrap();
        }
    }

    #[test]
    fn the_nearest_delegated_group_of_version_2_is_used() {
        let top = tempfile::tempdir().unwrap();
        let unified = Hierarchy {
            version: CgroupVersion::V2,
            mount_options: Vec::new(),
            root: "/".into(),
            mount_point: top.path().to_owned(),
        };
        let all = "cpu memory pids";
        write_group(
            top.path(),
            &[
                ("cgroup.procs", "1\n"),
                ("cgroup.controllers", all),
                ("cgroup.subtree_control", all),
            ],
        );
        let service = top.path().join("service");
        let busy = [
            ("cgroup.procs", "7\n8\n"),
            ("cgroup.controllers", all),
            ("cgroup.subtree_control", ""),
            ("cgroup.type", "domain"),
        ];
        write_group(&service, &busy);

        // The group contains only our own processes, which can be moved.
        let layout = CgroupLayout::discover_v2(&unified, "/service", &[7, 8]).unwrap();
        assert_eq!(layout.bases[&Controller::Memory], service);
        assert_eq!(layout.pids_to_move, [7, 8]);
        // It contains another process: the parent, which has controllers enabled already, is used.
        let layout = CgroupLayout::discover_v2(&unified, "/service", &[7]).unwrap();
        assert_eq!(layout.bases[&Controller::Pids], top.path());
        assert!(layout.pids_to_move.is_empty());
        // No group offers the controllers.
        write_group(
            top.path(),
            &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu")],
        );
        let missing = CgroupLayout::discover_v2(&unified, "/service", &[7]).unwrap_err();
        assert!(missing.reason.contains("contains other processes"), "{missing:?}");
        assert!(missing.fix.contains("Delegate"), "{missing:?}");
    }
}
