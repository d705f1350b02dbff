//! Creates the control groups of runs, and one spare group ahead of the next run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, mkdirat, open};

use super::control_file::{read_control_file, write_control_file};
use super::layout::{CgroupLayout, Controller};
use super::limits::{CgroupLimits, CgroupVersion};
use super::run_cgroup::{BaseDirectory, RunCgroup};
use super::stale::{own_group_prefix, remove_stale_groups};

/// Creates groups below the base directories of a layout.
pub(crate) struct CgroupFactory {
    version: CgroupVersion,
    /// The distinct base directories. In version 1 several controllers can share a directory.
    bases: Vec<BaseDirectory>,
    prefix: String,
    created_count: u64,
    spare: Option<RunCgroup>,
    /// The limits of the spare group to create next: those of the last run. `None` once that group has been created.
    next_spare_limits: Option<CgroupLimits>,
}

impl CgroupFactory {
    /// Opens the base directories, enables their controllers, and removes the groups of dead owners.
    pub fn open(layout: &CgroupLayout) -> io::Result<Self> {
        let mut by_path: BTreeMap<&PathBuf, Vec<Controller>> = BTreeMap::new();
        for (controller, path) in &layout.bases {
            by_path.entry(path).or_default().push(*controller);
        }
        let mut bases = Vec::new();
        for (path, controllers) in by_path {
            let directory = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            remove_stale_groups(&directory, path);
            bases.push(BaseDirectory { directory, controllers });
        }
        let factory = Self {
            version: layout.version,
            bases,
            prefix: own_group_prefix()?,
            created_count: 0,
            spare: None,
            next_spare_limits: None,
        };
        if layout.version == CgroupVersion::V2 {
            factory.enable_controllers(&layout.pids_to_move)?;
        }
        Ok(factory)
    }

    /// Version 2: enables the controllers for the children of the base group in `cgroup.subtree_control`. The kernel
    /// allows this only in a group without processes, so the given ones first move to a child group.
    fn enable_controllers(&self, pids_to_move: &[i32]) -> io::Result<()> {
        let Some(base) = self.bases.first() else { return Ok(()) };
        if !pids_to_move.is_empty() {
            let name = format!("{}-host", self.prefix);
            mkdirat(&base.directory, name.as_str(), Mode::from_raw_mode(0o755))?;
            for pid in pids_to_move {
                write_control_file(
                    base.directory.as_fd(),
                    &format!("{name}/cgroup.procs"),
                    &pid.to_string(),
                )?;
            }
        }
        let enabled = read_control_file(base.directory.as_fd(), "cgroup.subtree_control")?;
        for controller in ["memory", "pids", "cpu"] {
            let offered = read_control_file(base.directory.as_fd(), "cgroup.controllers")?;
            let is_in = |list: &str| list.split_whitespace().any(|name| name == controller);
            if is_in(&offered) && !is_in(&enabled) {
                write_control_file(
                    base.directory.as_fd(),
                    "cgroup.subtree_control",
                    &format!("+{controller}"),
                )?;
            }
        }
        Ok(())
    }

    /// Returns a new group with these limits: the spare group if its limits are the same.
    pub fn create(&mut self, limits: &CgroupLimits) -> io::Result<RunCgroup> {
        self.next_spare_limits = Some(*limits);
        match self.spare.take().filter(|spare| spare.limits() == limits) {
            Some(spare) => Ok(spare),
            None => self.create_new(limits),
        }
    }

    fn create_new(&mut self, limits: &CgroupLimits) -> io::Result<RunCgroup> {
        self.created_count += 1;
        let name = OsString::from(format!("{}-{}", self.prefix, self.created_count));
        RunCgroup::create(&self.bases, name, self.version, limits)
    }

    /// Creates the spare group, with the limits of the last run.
    pub fn prepare_spare(&mut self) {
        if let Some(limits) = self.next_spare_limits.take() {
            // A failure is ignored here. The next run tries again and reports it.
            self.spare = self.create_new(&limits).ok();
        }
    }

    /// Whether the spare group was used and has not been replaced yet.
    pub fn needs_spare(&self) -> bool {
        self.next_spare_limits.is_some()
    }
}
