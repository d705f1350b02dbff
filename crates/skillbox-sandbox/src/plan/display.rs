//! The plan as people read it.

use std::fmt;

use skillbox_model::ByteSize;

use super::job::{Access, BindKind, Ownership};
use super::op::{CgroupLimits, CgroupVersion, FileRights, LaunchPlan, Namespace, Op, Phase, Resource, Step};
use crate::profile::{Backing, Need};

impl fmt::Display for LaunchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan of profile {}, tier {:?}", self.profile, self.enforcement.tier)?;
        let mut phase = None;
        for step in self.steps.iter() {
            if phase != Some(step.phase) {
                phase = Some(step.phase);
                writeln!(f, "\n{}", heading(step.phase))?;
            }
            writeln!(f, "{step}")?;
        }
        let words: Vec<String> = self
            .command
            .argv
            .iter()
            .map(|word| format!("{:?}", word.to_string_lossy()))
            .collect();
        let names = self
            .command
            .env
            .iter()
            .map(|pair| pair.to_string_lossy().split('=').next().unwrap_or("").to_owned());
        writeln!(f, "\ncommand      {}", words.join(" "))?;
        write!(f, "environment  {}", names.collect::<Vec<_>>().join(" "))
    }
}

fn heading(phase: Phase) -> &'static str {
    match phase {
        Phase::Template => "the spawner, once for every run with the same steps",
        Phase::Spawn => "the spawner",
        Phase::Prepare => "the child, pid 1, from the profile",
        Phase::Release => "the child, for this run: pid 1, or pid 2 where both were made ahead",
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preferred = if self.need == Need::Preferred {
            "  [preferred]"
        } else {
            ""
        };
        write!(f, "{:>4}  {}{preferred}", self.number, self.op)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateCgroup(limits) => write!(f, "cgroup       {limits}"),
            Self::Clone {
                namespaces,
                into_cgroup,
            } => {
                let names: Vec<&str> = namespaces.iter().map(|namespace| namespace.as_str()).collect();
                let names = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                write!(
                    f,
                    "clone        namespaces: {names}{}",
                    if *into_cgroup { "; born in the cgroup" } else { "" }
                )
            }
            Self::NewSession => f.write_str("session      new, without a terminal"),
            Self::MapIds { inside, outside } => write!(
                f,
                "id maps      user {} is {} outside, group {} is {} outside; setgroups denied",
                inside.uid, outside.uid, inside.gid, outside.gid
            ),
            Self::BecomeUser(ids) => write!(f, "become       user {}, group {}", ids.uid, ids.gid),
            Self::DieWithSpawner => f.write_str("die          with the spawner"),
            Self::RootCgroupNamespace => f.write_str("cgroup root  the run's own group"),
            Self::Hostname(name) => write!(f, "host name    {name}"),
            Self::Network { loopback: false } => f.write_str("network      a fresh, empty one"),
            Self::Network { loopback: true } => f.write_str("network      a fresh one with nothing but loopback"),
            Self::HostView => f.write_str("mounts       those of the host"),
            Self::AdoptOrphans => f.write_str("orphans      adopted, and killed at the end"),
            Self::PrivateMounts => f.write_str("mounts       private"),
            Self::NewRoot { bytes, inodes } => {
                write!(
                    f,
                    "root         empty, in memory, {}, {inodes} inodes, nosuid, nodev",
                    ByteSize(*bytes)
                )
            }
            Self::Directory { path } => write!(f, "directory    {path}"),
            Self::MountPoint { path, kind } => write!(f, "mount point  {path}, {}", kind.as_str()),
            Self::Link { path, target } => write!(f, "link         {path} -> {target}"),
            Self::File { path, content } => write!(f, "file         {path}, {} bytes", content.len()),
            Self::BindHost { path, kind, optional } => write!(
                f,
                "bind         {path}, {}, read-only, nosuid, nodev{}",
                kind.as_str(),
                if *optional { ", if it is there" } else { "" }
            ),
            Self::Devices { names } => write!(f, "/dev         {}; read-only", names.join(", ")),
            Self::SharedMemory { bytes } => write!(f, "/dev/shm     private, {}, noexec", ByteSize(*bytes)),
            Self::OuterProc => f.write_str("/proc        the outer one, until a fresh one covers it"),
            Self::Proc => f.write_str("/proc        fresh, read-only, other users' processes invisible"),
            Self::Mask { path } => write!(f, "mask         {path}"),
            Self::EnterRoot => f.write_str("pivot        into the new root; the old one is let go"),
            Self::ResourceLimits(limits) => {
                let texts: Vec<String> = limits
                    .iter()
                    .map(|limit| format!("{} {}", limit.resource.as_str(), limit.limit))
                    .collect();
                write!(f, "rlimits      {}", texts.join(", "))
            }
            Self::MountWorkspace { target, backing } => {
                let backing = match backing {
                    Backing::Tmpfs => "in memory",
                    Backing::Disk => "a directory of the host",
                };
                write!(f, "workspace    {target}, {backing}, writable, nosuid, nodev")
            }
            Self::BindDescriptor {
                index,
                target,
                kind,
                access,
                owner,
            } => {
                let access = match access {
                    Access::ReadOnly => "read-only",
                    Access::ReadWrite => "writable",
                };
                let owner = match owner {
                    Ownership::Kept => "",
                    Ownership::Script => ", shown as the script's own",
                };
                write!(
                    f,
                    "bind         descriptor {index} at {target}, {}, {access}, nosuid, nodev{owner}",
                    kind.as_str()
                )
            }
            Self::SealRoot => f.write_str("root         read-only"),
            Self::WorkingDirectory { path } => write!(f, "chdir        {path}"),
            Self::DropCapabilities => f.write_str("capabilities every set empty, securebits locked"),
            Self::EmptyBoundingSet => f.write_str("capabilities none to be had by exec"),
            Self::Undumpable => f.write_str("dumpable     no"),
            Self::NoNewPrivileges => f.write_str("privileges   none gained by exec"),
            Self::Landlock {
                abi,
                files,
                refuse_tcp,
                scope,
            } => {
                write!(f, "landlock     ABI {abi}")?;
                if let Some(rules) = files {
                    let texts: Vec<String> = rules
                        .iter()
                        .map(|rule| format!("{} {}", rule.path, rule.rights.as_str()))
                        .collect();
                    write!(f, "; files: {}", texts.join(", "))?;
                }
                if *refuse_tcp {
                    f.write_str("; no TCP")?;
                }
                if *scope {
                    f.write_str("; no signal and no abstract socket outwards")?;
                }
                Ok(())
            }
            Self::CloseDescriptors => f.write_str("descriptors  only stdin, stdout and stderr survive exec"),
            Self::Seccomp { allowed, program } => {
                write!(
                    f,
                    "seccomp      {allowed} calls allowed, {} instructions",
                    program.len()
                )
            }
            Self::EnterCgroup => f.write_str("cgroup       joined by pid 2"),
            Self::Exec => f.write_str("exec         the command, as pid 2"),
        }
    }
}

impl fmt::Display for CgroupLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.version {
            CgroupVersion::V1 => "v1",
            CgroupVersion::V2 => "v2",
        })?;
        if let Some(memory) = self.memory {
            write!(f, ", memory {} with swap", ByteSize(memory))?;
        }
        if let Some(pids) = self.pids {
            write!(f, ", {pids} processes")?;
        }
        if let Some(millis) = self.cpu_quota_millis {
            write!(f, ", {}.{:03} cores", millis / 1000, millis % 1000)?;
        }
        if self.count_cpu {
            f.write_str(", CPU time counted")
        } else {
            Ok(())
        }
    }
}

impl Namespace {
    /// The name in the plan.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Mount => "mount",
            Self::Pid => "pid",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Cgroup => "cgroup",
        }
    }
}

impl Resource {
    /// The name in the plan, as in prlimit(1).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Cpu => "cpu",
            Self::FileSize => "fsize",
            Self::LockedMemory => "memlock",
            Self::MessageQueue => "msgqueue",
            Self::Nice => "nice",
            Self::OpenFiles => "nofile",
            Self::Processes => "nproc",
            Self::RealTimePriority => "rtprio",
            Self::PendingSignals => "sigpending",
        }
    }

    /// The kernel's own.
    pub(crate) fn kernel(self) -> rustix::process::Resource {
        use rustix::process::Resource as Kernel;
        match self {
            Self::Core => Kernel::Core,
            Self::Cpu => Kernel::Cpu,
            Self::FileSize => Kernel::Fsize,
            Self::LockedMemory => Kernel::Memlock,
            Self::MessageQueue => Kernel::Msgqueue,
            Self::Nice => Kernel::Nice,
            Self::OpenFiles => Kernel::Nofile,
            Self::Processes => Kernel::Nproc,
            Self::RealTimePriority => Kernel::Rtprio,
            Self::PendingSignals => Kernel::Sigpending,
        }
    }
}

impl BindKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
        }
    }
}

impl FileRights {
    fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::ReadExecute => "read+execute",
            Self::Devices => "devices",
            Self::Everything => "everything",
        }
    }
}
