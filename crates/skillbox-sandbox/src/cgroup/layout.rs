//! Which controllers this process can use, and below which directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::host::{Availability, CgroupFacts};
use crate::kernel::made_up;
use crate::plan::CgroupVersion;

/// The controllers that a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
    CpuAccounting,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::CpuAccounting];

    /// The name in version 1. Version 2 counts CPU time in every group.
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
        }
    }
}

/// Where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub version: CgroupVersion,
    /// The directory below which each controller's groups are made; a controller that is missing cannot be had.
    pub bases: BTreeMap<Controller, PathBuf>,
    /// Version 2: processes that have to leave the base before it can have groups with controllers.
    pub evacuate: Vec<i32>,
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoCgroup {
    pub reason: String,
    pub fix: String,
}

const DELEGATE: &str =
    "run skillbox as a service with `Delegate=yes`, or by `systemd-run --user --scope -p Delegate=yes skillbox …`";

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: CgroupVersion,
    controllers: Vec<String>,
    root: String,
    mount_point: PathBuf,
}

impl Layout {
    /// Looks at this process's own place in the hierarchies. Reads a handful of files and changes nothing.
    pub fn discover(family: &[i32]) -> Result<Self, NoCgroup> {
        let read = |path: &str| {
            made_up::read(path).map_err(|error| NoCgroup {
                reason: format!("{path} cannot be read: {error}"),
                fix: "mount /proc".into(),
            })
        };
        let hierarchies = hierarchies(&read("/proc/self/mountinfo")?);
        let places = places(&read("/proc/self/cgroup")?);
        let has_v1_memory = hierarchies.iter().any(|hierarchy| {
            hierarchy.version == CgroupVersion::V1 && hierarchy.controllers.iter().any(|name| name == "memory")
        });
        if has_v1_memory {
            return Self::version_1(&hierarchies, &places);
        }
        match hierarchies
            .iter()
            .find(|hierarchy| hierarchy.version == CgroupVersion::V2)
        {
            Some(unified) => Self::version_2(unified, places.get("").map_or("/", String::as_str), family),
            None => Err(NoCgroup {
                reason: "no control group filesystem is mounted".into(),
                fix: "mount cgroup2 on /sys/fs/cgroup".into(),
            }),
        }
    }

    fn version_1(hierarchies: &[Hierarchy], places: &BTreeMap<String, String>) -> Result<Self, NoCgroup> {
        let mut bases = BTreeMap::new();
        let mut refused = None;
        for controller in Controller::ALL {
            let mounted = hierarchies
                .iter()
                .find(|hierarchy| hierarchy.controllers.iter().any(|name| name == controller.name()));
            let Some(hierarchy) = mounted else { continue };
            let place = places.get(controller.name()).map_or("/", String::as_str);
            let base = below(hierarchy, place);
            match access(&base, Access::WRITE_OK | Access::EXEC_OK) {
                Ok(()) => {
                    bases.insert(controller, base);
                }
                Err(error) => {
                    refused.get_or_insert((base, error));
                }
            }
        }
        match (bases.is_empty(), refused) {
            (true, Some((base, error))) => Err(NoCgroup {
                reason: format!(
                    "{} cannot be written to: {error}; cgroup v1 has no delegation",
                    base.display()
                ),
                fix: "run skillbox as root, or boot with cgroup v2 (`systemd.unified_cgroup_hierarchy=1`) and delegate"
                    .into(),
            }),
            (true, None) => Err(NoCgroup {
                reason: "no controller for memory, pids or cpu is mounted".into(),
                fix: "mount the cgroup v1 controllers".into(),
            }),
            (false, _) => Ok(Self {
                version: CgroupVersion::V1,
                bases,
                evacuate: Vec::new(),
            }),
        }
    }

    /// The nearest group at or above our own that can have children with controllers.
    fn version_2(unified: &Hierarchy, place: &str, family: &[i32]) -> Result<Self, NoCgroup> {
        let own = below(unified, place);
        let mut reasons = Vec::new();
        for base in own
            .ancestors()
            .take_while(|path| path.starts_with(&unified.mount_point))
        {
            match usable_v2(base, base == unified.mount_point, family) {
                Ok((controllers, evacuate)) => {
                    let mut bases = BTreeMap::new();
                    for controller in Controller::ALL {
                        let counted = controller == Controller::CpuAccounting;
                        if counted || controllers.iter().any(|name| name == controller.name()) {
                            bases.insert(controller, base.to_owned());
                        }
                    }
                    return Ok(Self {
                        version: CgroupVersion::V2,
                        bases,
                        evacuate,
                    });
                }
                Err(reason) => reasons.push(reason),
            }
        }
        let reason = reasons
            .into_iter()
            .next()
            .unwrap_or_else(|| "this process is in no control group".into());
        Err(NoCgroup {
            reason,
            fix: DELEGATE.into(),
        })
    }

    /// What the layout means for the planner.
    pub fn facts(found: &Result<Self, NoCgroup>) -> CgroupFacts {
        let layout = match found {
            Ok(layout) => layout,
            Err(missing) => return CgroupFacts::none(&missing.reason, &missing.fix),
        };
        let controller = |controller: Controller| match layout.bases.contains_key(&controller) {
            true => Availability::Available,
            false => Availability::missing(
                format!("the {} controller is not delegated to this process", controller.name()),
                DELEGATE,
            ),
        };
        CgroupFacts {
            version: Some(layout.version),
            memory: controller(Controller::Memory),
            swap: layout.swap(),
            pids: controller(Controller::Pids),
            cpu_quota: controller(Controller::Cpu),
            cpu_time: controller(Controller::CpuAccounting),
        }
    }

    /// Swap is accounted, or there is none to escape to.
    fn swap(&self) -> Availability {
        let Some(base) = self.bases.get(&Controller::Memory) else {
            return Availability::Available;
        };
        let accounted = match self.version {
            CgroupVersion::V1 => base.join("memory.memsw.limit_in_bytes").exists(),
            CgroupVersion::V2 => true,
        };
        let swaps = made_up::read("/proc/swaps").unwrap_or_default();
        if accounted || swaps.lines().count() <= 1 {
            return Availability::Available;
        }
        Availability::missing(
            "swap is in use and the kernel does not account it",
            "boot with `swapaccount=1`, or turn swap off",
        )
    }
}

/// The controllers that children of a group can have, and who would have to leave it first.
fn usable_v2(base: &Path, is_top: bool, family: &[i32]) -> Result<(Vec<String>, Vec<i32>), String> {
    let shown = base.display();
    for path in [
        base.to_owned(),
        base.join("cgroup.procs"),
        base.join("cgroup.subtree_control"),
    ] {
        access(&path, Access::WRITE_OK).map_err(|error| format!("{} cannot be written to: {error}", path.display()))?;
    }
    let words = |name: &str| -> Vec<String> {
        let text = made_up::read(base.join(name)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let wanted = |list: &[String]| {
        ["memory", "pids"]
            .iter()
            .all(|name| list.iter().any(|have| have == name))
    };
    let enabled = words("cgroup.subtree_control");
    if wanted(&enabled) {
        return Ok((enabled, Vec::new()));
    }
    let offered = words("cgroup.controllers");
    if !wanted(&offered) {
        return Err(format!("{shown} is not given the memory and pids controllers"));
    }
    let inside: Vec<i32> = words("cgroup.procs")
        .iter()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    // Only the real root, which has no type, may hold processes beside groups with controllers.
    if !is_top || base.join("cgroup.type").exists() {
        if let Some(stranger) = inside.iter().find(|pid| !family.contains(pid)) {
            return Err(format!(
                "{shown} holds other processes, such as {stranger}, and can give its groups no controllers"
            ));
        }
        return Ok((offered, inside));
    }
    Ok((offered, Vec::new()))
}

/// A process's place as a path below the mount point. A bind-mounted hierarchy shows only what is below its root.
fn below(hierarchy: &Hierarchy, place: &str) -> PathBuf {
    let root = hierarchy.root.trim_end_matches('/');
    let rest = place
        .strip_prefix(root)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        .unwrap_or("");
    let rest = rest.trim_matches('/');
    if rest.is_empty() || rest.split('/').any(|part| part == "..") {
        return hierarchy.mount_point.clone();
    }
    hierarchy.mount_point.join(rest)
}

/// The mounted hierarchies, from the text of `/proc/self/mountinfo`.
fn hierarchies(mountinfo: &str) -> Vec<Hierarchy> {
    mountinfo
        .lines()
        .filter_map(|line| {
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
            let controllers = options.split(',').map(str::to_owned).collect();
            Some(Hierarchy {
                version,
                controllers,
                root,
                mount_point,
            })
        })
        .collect()
}

/// This process's place by controller, from the text of `/proc/self/cgroup`; version 2 is the empty name.
fn places(text: &str) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        if let (Some(controllers), Some(place)) = (parts.next(), parts.next()) {
            for controller in controllers.split(',') {
                places.insert(controller.to_owned(), place.to_owned());
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn hierarchies_and_places_are_read() {
        let found = hierarchies(MOUNTINFO);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].controllers, ["rw", "cpu", "cpuacct"]);
        assert_eq!(found[2].version, CgroupVersion::V2);
        let places = places("4:cpu,cpuacct:/a\n3:memory:/docker/abc/x\n0::/b\n");
        assert_eq!(
            below(&found[0], &places["cpuacct"]),
            Path::new("/sys/fs/cgroup/cpu,cpuacct/a")
        );
        assert_eq!(
            below(&found[1], &places["memory"]),
            Path::new("/sys/fs/cgroup/memory/x")
        );
        assert_eq!(below(&found[2], &places[""]), Path::new("/sys/fs/cgroup/unified/b"));
        // A place outside of what is mounted cannot be named: the mount point is the best there is.
        assert_eq!(below(&found[1], "/elsewhere"), Path::new("/sys/fs/cgroup/memory"));
    }

    fn group(directory: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(directory).unwrap();
        for (name, content) in files {
            std::fs::write(directory.join(name), content).unwrap();
        }
    }

    #[test]
    fn the_nearest_delegated_group_of_version_2_is_taken() {
        let top = tempfile::tempdir().unwrap();
        let unified = Hierarchy {
            version: CgroupVersion::V2,
            controllers: Vec::new(),
            root: "/".into(),
            mount_point: top.path().to_owned(),
        };
        let all = "cpu memory pids";
        group(
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
        group(&service, &busy);

        // Only our own processes: they can be moved aside.
        let layout = Layout::version_2(&unified, "/service", &[7, 8]).unwrap();
        assert_eq!(layout.bases[&Controller::Memory], service);
        assert_eq!(layout.evacuate, [7, 8]);
        // A stranger: the parent, which has controllers enabled already, is taken.
        let layout = Layout::version_2(&unified, "/service", &[7]).unwrap();
        assert_eq!(layout.bases[&Controller::Pids], top.path());
        assert!(layout.evacuate.is_empty());
        // Nothing offers the controllers.
        group(
            top.path(),
            &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu")],
        );
        let missing = Layout::version_2(&unified, "/service", &[7]).unwrap_err();
        assert!(missing.reason.contains("holds other processes"), "{missing:?}");
        assert!(missing.fix.contains("Delegate"), "{missing:?}");
    }
}
