//! Prints a plan as text.

use std::fmt;

use skillbox_model::ByteSize;

use super::job::{BindAccess, BindKind, BindOwner, CopyMethod, ListeningPorts};
use super::op::{ConfineOp, FileRights, Namespace, Op, Phase, PrepareOp, RunOp, SpawnOp, TemplateOp, WorkspaceMount};
use super::step::{LaunchPlan, Step};
use crate::cgroup::{CgroupLimits, CgroupVersion};
use crate::profile::Need;

impl fmt::Display for LaunchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan of profile {}, tier {:?}", self.profile, self.enforcement.tier)?;
        let mut phase = None;
        for step in self.steps.iter() {
            if phase != Some(step.phase()) {
                phase = Some(step.phase());
                writeln!(f, "\n{}", heading(step.phase()))?;
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
        Phase::Run => "the child, for this run: pid 1, or pid 2 of a parked sandbox",
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
            Self::Template(op) => op.fmt(f),
            Self::Spawn(op) => op.fmt(f),
            Self::Prepare(op) => op.fmt(f),
            Self::Run(op) => op.fmt(f),
            Self::Confine(op) => op.fmt(f),
        }
    }
}

impl fmt::Display for TemplateOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeMountsPrivate => f.write_str("mounts       private"),
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
                if *optional { ", if it exists" } else { "" }
            ),
            Self::Devices { names } => write!(f, "/dev         {}; read-only", names.join(", ")),
            Self::OuterProc => f.write_str("/proc        the outer one, until the fresh one covers it"),
            Self::PivotRoot => f.write_str("pivot        into the new root; the old root is unmounted"),
            Self::MakeRootReadOnly => f.write_str("root         read-only"),
        }
    }
}

impl fmt::Display for SpawnOp {
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
                    if *into_cgroup { "; in the cgroup" } else { "" }
                )
            }
            Self::Network { loopback: false } => f.write_str("network      new, with no interface up"),
            Self::Network { loopback: true } => f.write_str("network      new, with the loopback interface only"),
            Self::Listen(ListeningPorts { hosts, proxy }) => {
                let hosts: Vec<String> = hosts.iter().map(u16::to_string).collect();
                write!(
                    f,
                    "listen       ports of allowed hosts: {}; proxy: 127.0.0.1:{proxy}; names: 127.0.0.53",
                    hosts.join(", ")
                )
            }
            Self::UseHostMounts => f.write_str("mounts       those of the host"),
        }
    }
}

impl fmt::Display for PrepareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewSession => f.write_str("session      new, without a terminal"),
            Self::MapIds { inside, outside } => write!(
                f,
                "id maps      user {} is {} outside, group {} is {} outside; setgroups denied",
                inside.uid, outside.uid, inside.gid, outside.gid
            ),
            Self::BecomeUser(ids) => write!(f, "become       user {}, group {}", ids.uid, ids.gid),
            Self::DieWithSpawner => f.write_str("die          with the spawner"),
            Self::UnshareCgroupNamespace => f.write_str("cgroup root  the run's own group"),
            Self::Hostname(name) => write!(f, "host name    {name}"),
            Self::AdoptOrphans => f.write_str("orphans      adopted, and killed at the end"),
            Self::Terminals { max } => write!(f, "/dev/pts     private, at most {max} terminals"),
            Self::SharedMemory { bytes } => write!(f, "/dev/shm     private, {}, noexec", ByteSize(*bytes)),
            Self::Proc => f.write_str("/proc        fresh, read-only, without the processes of other users"),
            Self::Mask { path } => write!(f, "mask         {path}"),
            Self::EmptyBoundingSet => f.write_str("capabilities bounding set empty"),
            Self::Undumpable => f.write_str("dumpable     no"),
        }
    }
}

impl fmt::Display for RunOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResourceLimits(limits) => {
                let texts: Vec<String> = limits
                    .iter()
                    .map(|limit| format!("{} {}", limit.resource.as_str(), limit.limit))
                    .collect();
                write!(f, "rlimits      {}", texts.join(", "))
            }
            Self::MountWorkspace { target, source } => {
                let source = match source {
                    WorkspaceMount::Tmpfs => "in memory",
                    WorkspaceMount::Image => "in a file of the host",
                    WorkspaceMount::Directory => "a directory of the host",
                };
                write!(f, "workspace    {target}, {source}, writable, nosuid, nodev")
            }
            Self::BindDescriptor {
                index,
                target,
                kind,
                access,
                owner,
            } => {
                let access = match access {
                    BindAccess::ReadOnly => "read-only",
                    BindAccess::ReadWrite => "writable",
                };
                let owner = match owner {
                    BindOwner::Unchanged => "",
                    BindOwner::Script => ", owned by the script",
                };
                write!(
                    f,
                    "bind         descriptor {index} at {target}, {}, {access}, nosuid, nodev{owner}",
                    kind.as_str()
                )
            }
            Self::OpenSkillLayers { directory } => write!(f, "layers       of a writable skill, in {directory}"),
            Self::MakeSkillWritable {
                target,
                method,
                max_copy_bytes,
                ..
            } => {
                let limit = ByteSize(*max_copy_bytes);
                match method {
                    CopyMethod::Overlay => write!(
                        f,
                        "writable     {target}, by an overlay, or else by a copy of at most {limit}, nosuid, nodev"
                    ),
                    CopyMethod::Copy => {
                        write!(f, "writable     {target}, by a copy of at most {limit}, nosuid, nodev")
                    }
                }
            }
            Self::WorkingDirectory { path } => write!(f, "chdir        {path}"),
            Self::CloseDescriptors => f.write_str("descriptors  only stdin, stdout and stderr survive exec"),
            Self::EnterCgroup => f.write_str("cgroup       joined by pid 2"),
            Self::Exec => f.write_str("exec         the command, as pid 2"),
        }
    }
}

impl fmt::Display for ConfineOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropCapabilities => f.write_str("capabilities every set empty, securebits locked"),
            Self::NoNewPrivileges => f.write_str("privileges   none gained by exec"),
            Self::Landlock {
                abi,
                files,
                refuse_tcp,
                tcp_ports,
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
                    let ports: Vec<String> = tcp_ports.iter().map(u16::to_string).collect();
                    if !ports.is_empty() {
                        write!(f, " except connections to port {}", ports.join(", "))?;
                    }
                }
                if *scope {
                    f.write_str("; no signals and abstract sockets to the outside")?;
                }
                Ok(())
            }
            Self::Seccomp { allowed, program } => {
                write!(
                    f,
                    "seccomp      {allowed} calls allowed, {} instructions",
                    program.len()
                )
            }
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
