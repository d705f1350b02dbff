//! The control group of one run.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};

use super::control_file::{write_control_file, write_optional_control_file};
use super::layout::Controller;
use super::limits::{CgroupLimits, CgroupVersion};
use super::usage::UsageFiles;

/// The period of the CPU quota, in microseconds: the kernel's default.
const CPU_PERIOD_MICROS: u32 = 100_000;

/// A directory below which groups are created.
pub(super) struct BaseDirectory {
    pub directory: OwnedFd,
    pub controllers: Vec<Controller>,
}

/// The control group of one run: a directory below each base directory. Dropping it removes the directories.
pub(crate) struct RunCgroup {
    version: CgroupVersion,
    name: OsString,
    limits: CgroupLimits,
    directories: Vec<GroupDirectory>,
    usage_files: UsageFiles,
}

/// The directory of a group in one hierarchy.
struct GroupDirectory {
    /// The base directory, from which dropping the group removes it.
    base: OwnedFd,
    directory: OwnedFd,
    /// Version 1: the `tasks` file, through which a process joins the group.
    tasks: Option<OwnedFd>,
    controllers: Vec<Controller>,
}

impl RunCgroup {
    /// Creates the group in the hierarchies that the limits need, and applies the limits.
    pub(super) fn create(
        bases: &[BaseDirectory],
        name: OsString,
        version: CgroupVersion,
        limits: &CgroupLimits,
    ) -> io::Result<Self> {
        let mut group = Self {
            version,
            name,
            limits: *limits,
            directories: Vec::new(),
            usage_files: UsageFiles::default(),
        };
        for base in bases {
            let is_needed = base.controllers.iter().any(|controller| match controller {
                Controller::Memory => limits.memory.is_some(),
                Controller::Pids => limits.pids.is_some(),
                Controller::Cpu => limits.cpu_quota_millis.is_some(),
                Controller::CpuAccounting => limits.count_cpu,
            });
            if is_needed {
                // After a failure, dropping the group removes the directories that exist already.
                group.create_directory(base)?;
            }
        }
        group.write_limits(limits)?;
        group.open_files()?;
        Ok(group)
    }

    /// The limits that the group was created with.
    pub(super) fn limits(&self) -> &CgroupLimits {
        &self.limits
    }

    fn create_directory(&mut self, base: &BaseDirectory) -> io::Result<()> {
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
        self.directories.push(GroupDirectory {
            base: base.directory.try_clone()?,
            directory,
            tasks: None,
            controllers: base.controllers.clone(),
        });
        Ok(())
    }

    fn write_limits(&self, limits: &CgroupLimits) -> io::Result<()> {
        if let (Some(bytes), Some(memory)) = (limits.memory, self.directory_of(Controller::Memory)) {
            let bytes = bytes.to_string();
            match self.version {
                CgroupVersion::V1 => {
                    write_control_file(memory, "memory.limit_in_bytes", &bytes)?;
                    write_optional_control_file(memory, "memory.memsw.limit_in_bytes", &bytes)?;
                }
                CgroupVersion::V2 => {
                    write_control_file(memory, "memory.max", &bytes)?;
                    write_optional_control_file(memory, "memory.swap.max", "0")?;
                    write_optional_control_file(memory, "memory.oom.group", "1")?;
                }
            }
        }
        if let (Some(count), Some(pids)) = (limits.pids, self.directory_of(Controller::Pids)) {
            // In version 2 the reaper (pid 1 of the sandbox) is a member of the group too.
            let reaper = u64::from(self.version == CgroupVersion::V2);
            let max = count.checked_add(reaper).ok_or_else(|| {
                let message = format!("a limit of {count} processes is too large: the reaper counts as one more");
                io::Error::new(io::ErrorKind::InvalidInput, message)
            })?;
            write_control_file(pids, "pids.max", &max.to_string())?;
        }
        if let (Some(millis), Some(cpu)) = (limits.cpu_quota_millis, self.directory_of(Controller::Cpu)) {
            let quota = u64::from(millis) * u64::from(CPU_PERIOD_MICROS / 1000);
            match self.version {
                CgroupVersion::V1 => {
                    write_control_file(cpu, "cpu.cfs_period_us", &CPU_PERIOD_MICROS.to_string())?;
                    write_control_file(cpu, "cpu.cfs_quota_us", &quota.to_string())?;
                }
                CgroupVersion::V2 => write_control_file(cpu, "cpu.max", &format!("{quota} {CPU_PERIOD_MICROS}"))?,
            }
        }
        Ok(())
    }

    /// Opens the `tasks` files and the usage files.
    fn open_files(&mut self) -> io::Result<()> {
        if self.version == CgroupVersion::V1 {
            for directory in &mut self.directories {
                directory.tasks = Some(openat(
                    &directory.directory,
                    "tasks",
                    OFlags::WRONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?);
            }
        }
        self.usage_files = UsageFiles::open(
            self.version,
            self.directory_of(Controller::Memory),
            self.directory_of(Controller::Pids),
            self.directory_of(Controller::CpuAccounting),
        );
        Ok(())
    }

    fn directory_of(&self, controller: Controller) -> Option<BorrowedFd<'_>> {
        let directory = self
            .directories
            .iter()
            .find(|directory| directory.controllers.contains(&controller))?;
        Some(directory.directory.as_fd())
    }

    /// Version 2: the descriptor for `CLONE_INTO_CGROUP`.
    pub fn directory_for_clone(&self) -> Option<BorrowedFd<'_>> {
        match self.version {
            CgroupVersion::V1 => None,
            CgroupVersion::V2 => self.directories.first().map(|directory| directory.directory.as_fd()),
        }
    }

    /// Version 1: the `tasks` files. A process with a single thread joins the group by writing `0` to each. The kernel
    /// checks the privileges of the process that opened the file, so a child without privileges can write. A write to
    /// `cgroup.procs` would wait for every processor of the machine.
    ///
    /// The child calls this on its copy of the group, so the directories are not removed.
    pub fn into_tasks_fds(self) -> Vec<OwnedFd> {
        let mut copy = std::mem::ManuallyDrop::new(self);
        copy.directories
            .iter_mut()
            .filter_map(|directory| directory.tasks.take())
            .collect()
    }

    /// The open files that report the usage of the group.
    pub fn usage_files(&self) -> &UsageFiles {
        &self.usage_files
    }
}

impl Drop for RunCgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            // The last process may still be exiting. The next start of a spawner removes a directory that stays busy.
            for _ in 0..10 {
                match unlinkat(&directory.base, &self.name, AtFlags::REMOVEDIR) {
                    Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(2)),
                    _ => break,
                }
            }
        }
    }
}
