//! Probes the host by reading a few small files and by making system calls without side effects.
#![expect(
    unsafe_code,
    reason = "some kernel features are probed with system calls that fail on purpose"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::thread::CapabilitySet;

use super::cgroup_facts::cgroup_facts;
use super::facts::{Availability, CgroupFacts, HostFacts, MountApi, PathType};
use super::mapped_ids::choose_mapped_ids;
use super::resource::Resource;
use super::uid_gid::UidGid;
use crate::cgroup::CgroupLayout;
use crate::kernel::pseudo_file;
use crate::profile::Profile;

impl HostFacts {
    /// Probes what this process can do on this host. A privileged caller runs scripts with `script_ids`.
    pub fn probe(script_ids: UidGid) -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::probe_with_cgroup(script_ids, cgroup_facts(&CgroupLayout::discover(&[pid])))
    }

    /// Does the same as [`Self::probe`] with facts about control groups that the caller knows already.
    pub(crate) fn probe_with_cgroup(script_ids: UidGid, cgroup: CgroupFacts) -> Self {
        let privileged = is_privileged();
        let own = UidGid {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let script_ids = if privileged { choose_mapped_ids(script_ids) } else { own };
        Self {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            privileged,
            script_ids,
            namespaces: probe_namespaces(privileged),
            proc: probe_fresh_proc(privileged),
            mount_api: probe_mount_api(),
            landlock_abi: landlock_abi(),
            seccomp: probe_seccomp(),
            cgroup,
            hard_limits: hard_limits(),
            paths: BTreeMap::new(),
        }
    }

    /// Adds the type of every existing path that these profiles make visible.
    pub fn with_profile_paths<'a>(mut self, profiles: impl IntoIterator<Item = &'a Profile>) -> Self {
        for profile in profiles {
            for visible in &profile.filesystem.visible {
                // Profiles that extend one another name the same paths.
                if self.paths.contains_key(&visible.path) {
                    continue;
                }
                if let Some(fact) = probe_path(&visible.path) {
                    self.paths.insert(visible.path.clone(), fact);
                }
            }
        }
        self
    }
}

fn probe_path(path: &str) -> Option<PathType> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if metadata.is_dir() {
        Some(PathType::Directory)
    } else if metadata.is_symlink() {
        let target = std::fs::read_link(path).ok()?;
        Some(PathType::Link(target.to_str()?.to_owned()))
    } else {
        metadata.is_file().then_some(PathType::File)
    }
}

/// Whether this process has the capabilities for mounting without a user namespace. Root in a container often lacks
/// them. Root in a user namespace has them, but they do not apply to the mounts of the host.
fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::KILL
        | CapabilitySet::SYS_CHROOT;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) && owns_mount_namespace()
}

/// Whether our user namespace owns our mount namespace, so that our capabilities apply to its mounts.
fn owns_mount_namespace() -> bool {
    /// `NS_GET_USERNS` of ioctl_ns(2): returns the user namespace that owns a namespace, or fails with `EPERM` if that
    /// one is above our own.
    const NS_GET_USERNS: libc::c_ulong = 0xb701;
    let (Ok(mounts), Ok(own)) = (File::open("/proc/self/ns/mnt"), rustix::fs::stat("/proc/self/ns/user")) else {
        return false;
    };
    // SAFETY: the request takes no argument and returns a new descriptor or an error.
    let owner = unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) };
    if owner < 0 {
        // The request exists since Linux 4.9. On an older kernel we assume that this process is in the initial
        // namespace.
        return io::Error::last_os_error().raw_os_error() == Some(libc::ENOTTY);
    }
    // SAFETY: the kernel returned this new descriptor, which nothing else owns.
    let owner = unsafe { OwnedFd::from_raw_fd(owner) };
    rustix::fs::fstat(&owner).is_ok_and(|owner| (owner.st_dev, owner.st_ino) == (own.st_dev, own.st_ino))
}

fn read_number(path: &str) -> Option<u64> {
    pseudo_file::read(path).ok()?.trim().parse().ok()
}

/// Checks the known settings that prevent a process from creating namespaces. Only the spawner, which creates them,
/// finds out whether it really works.
fn probe_namespaces(privileged: bool) -> Availability {
    if !Path::new("/proc/self/ns/user").exists() {
        return Availability::missing("the kernel has no user namespaces", "use a kernel with CONFIG_USER_NS");
    }
    if read_number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return Availability::missing("user.max_user_namespaces is 0", "sysctl user.max_user_namespaces=10000");
    }
    if privileged {
        return Availability::Available;
    }
    if read_number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return Availability::missing(
            "kernel.unprivileged_userns_clone is 0",
            "sysctl kernel.unprivileged_userns_clone=1, or run as root",
        );
    }
    if read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        return Availability::missing(
            "AppArmor removes the capabilities in user namespaces of ordinary users",
            "give skillbox an AppArmor profile with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    Availability::Available
}

/// In a user namespace the kernel mounts a fresh /proc only if nothing covers a part of the existing one.
fn probe_fresh_proc(privileged: bool) -> Availability {
    if privileged {
        return Availability::Available;
    }
    let mounts = match pseudo_file::read("/proc/self/mountinfo") {
        Ok(mounts) => mounts,
        Err(error) => {
            return Availability::missing(format!("/proc/self/mountinfo cannot be read: {error}"), "mount /proc");
        }
    };
    let mount_points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    // These directories are always empty, so a mount on them covers nothing.
    let ignored = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];
    let mut covered = mount_points.filter(|point| point.starts_with("/proc/") && !ignored.contains(point));
    match covered.next() {
        None => Availability::Available,
        Some(point) => Availability::missing(
            format!("{point} is covered, so the kernel refuses a fresh /proc"),
            "start the container with an unmasked /proc (`--security-opt systempaths=unconfined`)",
        ),
    }
}

fn probe_mount_api() -> MountApi {
    // SAFETY: both calls are made to fail, by an invalid descriptor and by a structure of size 0, and read no memory
    // but the empty C strings.
    let (move_mount_error, setattr_error) = unsafe {
        let move_mount = libc::syscall(
            libc::SYS_move_mount,
            -1,
            c"".as_ptr(),
            -1,
            c"".as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        );
        let move_mount_error = errno_of(move_mount);
        let setattr = libc::syscall(libc::SYS_mount_setattr, -1, c"".as_ptr(), libc::AT_EMPTY_PATH, 0, 0);
        (move_mount_error, errno_of(setattr))
    };
    let exists = |errno: Option<i32>| errno != Some(libc::ENOSYS);
    match (exists(move_mount_error), exists(setattr_error)) {
        (true, true) => MountApi::Descriptors,
        (true, false) => MountApi::DescriptorsWithRemount,
        (false, _) => MountApi::MountByPath,
    }
}

fn errno_of(result: libc::c_long) -> Option<i32> {
    if result < 0 {
        io::Error::last_os_error().raw_os_error()
    } else {
        None
    }
}

/// The version of the kernel's Landlock ABI; 0 if the kernel has no Landlock or it is not enabled.
pub(crate) fn landlock_abi() -> u8 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads no memory and only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    match u8::try_from(version) {
        Ok(version) => version,
        Err(_) if version < 0 => 0,
        // Each version includes the earlier ones, and the rules use none above 255.
        Err(_) => u8::MAX,
    }
}

fn probe_seccomp() -> Availability {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads one number and returns whether the kernel knows the action.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    match errno_of(result) {
        None => Availability::Available,
        Some(errno) => Availability::missing(
            format!("the kernel accepts no filters: {}", io::Error::from_raw_os_error(errno)),
            "use a kernel with CONFIG_SECCOMP_FILTER, 4.14 or later",
        ),
    }
}

fn hard_limits() -> BTreeMap<Resource, u64> {
    Resource::ALL
        .into_iter()
        .filter_map(|resource| Some((resource, rustix::process::getrlimit(resource.to_rlimit()).maximum?)))
        .collect()
}
