//! One control group per run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, unlinkat};

use super::layout::{Controller, Layout};
use super::meters::Meters;
use super::sweep;
use crate::plan::{CgroupLimits, CgroupVersion};

/// Makes groups below the bases of a layout.
pub(crate) struct Groups {
    version: CgroupVersion,
    /// One per directory: version 1 can mount several controllers on one.
    bases: Vec<Base>,
    prefix: String,
    made: u64,
    spare: Option<Group>,
    wanted_next: Option<CgroupLimits>,
}

struct Base {
    directory: OwnedFd,
    controllers: Vec<Controller>,
}

/// The group of one run: a directory below each base.
pub(crate) struct Group {
    version: CgroupVersion,
    name: OsString,
    limits: CgroupLimits,
    places: Vec<Place>,
    meters: Meters,
}

struct Place {
    /// The base, to remove the group from.
    base: OwnedFd,
    directory: OwnedFd,
    /// Version 1: where a process comes in.
    door: Option<OwnedFd>,
    controllers: Vec<Controller>,
}

impl Groups {
    /// Opens the bases, makes room for groups below them, and removes what dead owners left.
    pub fn open(layout: &Layout) -> io::Result<Self> {
        let mut by_path: BTreeMap<&PathBuf, Vec<Controller>> = BTreeMap::new();
        for (controller, path) in &layout.bases {
            by_path.entry(path).or_default().push(*controller);
        }
        let mut bases = Vec::new();
        for (path, controllers) in by_path {
            let directory = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            sweep::sweep(&directory, path);
            bases.push(Base { directory, controllers });
        }
        let prefix = sweep::own_prefix()?;
        let groups = Self {
            version: layout.version,
            bases,
            prefix,
            made: 0,
            spare: None,
            wanted_next: None,
        };
        if layout.version == CgroupVersion::V2 {
            groups.enable_controllers(&layout.evacuate)?;
        }
        Ok(groups)
    }

    /// Version 2: a group gives controllers to its children only when told to, and only when it holds no process.
    fn enable_controllers(&self, evacuate: &[i32]) -> io::Result<()> {
        let Some(base) = self.bases.first() else { return Ok(()) };
        if !evacuate.is_empty() {
            let name = format!("{}-host", self.prefix);
            mkdirat(&base.directory, name.as_str(), Mode::from_raw_mode(0o755))?;
            for pid in evacuate {
                write_at(
                    base.directory.as_fd(),
                    &format!("{name}/cgroup.procs"),
                    &pid.to_string(),
                )?;
            }
        }
        let enabled = read_at(base.directory.as_fd(), "cgroup.subtree_control")?;
        for controller in ["memory", "pids", "cpu"] {
            let offered = read_at(base.directory.as_fd(), "cgroup.controllers")?;
            let has = |list: &str| list.split_whitespace().any(|name| name == controller);
            if has(&offered) && !has(&enabled) {
                write_at(
                    base.directory.as_fd(),
                    "cgroup.subtree_control",
                    &format!("+{controller}"),
                )?;
            }
        }
        Ok(())
    }

    /// A group with these limits, never used before.
    pub fn create(&mut self, limits: &CgroupLimits) -> io::Result<Group> {
        self.wanted_next = Some(*limits);
        match self.spare.take().filter(|spare| spare.limits == *limits) {
            Some(spare) => Ok(spare),
            None => self.make(limits),
        }
    }

    fn make(&mut self, limits: &CgroupLimits) -> io::Result<Group> {
        self.made += 1;
        let name = OsString::from(format!("{}-{}", self.prefix, self.made));
        let mut group = Group {
            version: self.version,
            name,
            limits: *limits,
            places: Vec::new(),
            meters: Meters::default(),
        };
        for base in &self.bases {
            let needed = base.controllers.iter().any(|controller| match controller {
                Controller::Memory => limits.memory.is_some(),
                Controller::Pids => limits.pids.is_some(),
                Controller::Cpu => limits.cpu_quota_millis.is_some(),
                Controller::CpuAccounting => limits.count_cpu,
            });
            if needed {
                // What was made before a failure is removed when the group is dropped.
                group.add(base)?;
            }
        }
        group.apply(limits)?;
        group.furnish()?;
        Ok(group)
    }

    /// Makes a group ahead, for the next run with limits like the last one's.
    pub fn prepare(&mut self) {
        if let Some(limits) = self.wanted_next.take() {
            // A failure comes up again when the group is needed, and is told then.
            self.spare = self.make(&limits).ok();
        }
    }

    /// Whether a run like the last one would have to wait for its group.
    pub fn needs_preparation(&self) -> bool {
        self.wanted_next.is_some()
    }
}

impl Group {
    fn add(&mut self, base: &Base) -> io::Result<()> {
        mkdirat(&base.directory, &self.name, Mode::from_raw_mode(0o755))?;
        let directory = openat(
            &base.directory,
            &self.name,
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let directory = match directory {
            Ok(directory) => directory,
            Err(error) => {
                let _ = unlinkat(&base.directory, &self.name, AtFlags::REMOVEDIR);
                return Err(error.into());
            }
        };
        self.places.push(Place {
            base: base.directory.try_clone()?,
            directory,
            door: None,
            controllers: base.controllers.clone(),
        });
        Ok(())
    }

    fn apply(&self, limits: &CgroupLimits) -> io::Result<()> {
        if let (Some(bytes), Some(memory)) = (limits.memory, self.place(Controller::Memory)) {
            let bytes = bytes.to_string();
            match self.version {
                CgroupVersion::V1 => {
                    write_at(memory, "memory.limit_in_bytes", &bytes)?;
                    optional(write_at(memory, "memory.memsw.limit_in_bytes", &bytes))?;
                }
                CgroupVersion::V2 => {
                    write_at(memory, "memory.max", &bytes)?;
                    optional(write_at(memory, "memory.swap.max", "0"))?;
                    optional(write_at(memory, "memory.oom.group", "1"))?;
                }
            }
        }
        if let (Some(count), Some(pids)) = (limits.pids, self.place(Controller::Pids)) {
            // Version 2 has the reaper in the group.
            let reaper = u64::from(self.version == CgroupVersion::V2);
            write_at(pids, "pids.max", &count.saturating_add(reaper).to_string())?;
        }
        if let (Some(millis), Some(cpu)) = (limits.cpu_quota_millis, self.place(Controller::Cpu)) {
            let quota = u64::from(millis) * 100;
            match self.version {
                CgroupVersion::V1 => {
                    write_at(cpu, "cpu.cfs_period_us", "100000")?;
                    write_at(cpu, "cpu.cfs_quota_us", &quota.to_string())?;
                }
                CgroupVersion::V2 => write_at(cpu, "cpu.max", &format!("{quota} 100000"))?,
            }
        }
        Ok(())
    }

    fn place(&self, controller: Controller) -> Option<BorrowedFd<'_>> {
        let place = self
            .places
            .iter()
            .find(|place| place.controllers.contains(&controller))?;
        Some(place.directory.as_fd())
    }

    /// Version 2: the directory that a child is born in.
    pub fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        (self.version == CgroupVersion::V2).then(|| self.places.first().map(|place| place.directory.as_fd()))?
    }

    /// Version 1: the files that a process of one thread writes `0` to. The rights are those of the opener, so a
    /// child without any can use them; and unlike `cgroup.procs` they cost no wait for the whole machine.
    ///
    /// For the child, whose copy of the group must not remove anything.
    pub fn into_doors(self) -> Vec<OwnedFd> {
        let mut copy = std::mem::ManuallyDrop::new(self);
        copy.places.iter_mut().filter_map(|place| place.door.take()).collect()
    }

    /// What the group measures.
    pub fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Opens everything that a launch will need.
    fn furnish(&mut self) -> io::Result<()> {
        if self.version == CgroupVersion::V1 {
            for place in &mut self.places {
                place.door = Some(openat(
                    &place.directory,
                    "tasks",
                    OFlags::WRONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?);
            }
        }
        self.meters = Meters::open(
            self.version,
            self.place(Controller::Memory),
            self.place(Controller::Pids),
            self.place(Controller::CpuAccounting),
        );
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for place in &self.places {
            // The last process can still be on its way out; whatever stays is swept at the next start.
            for _ in 0..10 {
                match unlinkat(&place.base, &self.name, AtFlags::REMOVEDIR) {
                    Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(2)),
                    _ => break,
                }
            }
        }
    }
}

/// A file that some kernels do not have.
fn optional(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

pub(super) fn write_at(directory: BorrowedFd<'_>, name: &str, value: &str) -> io::Result<()> {
    let file = openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}

pub(super) fn read_at(directory: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0; 4096];
    let length = rustix::io::read(&file, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}
