//! Landlock, through the crate of its maintainers.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, RestrictSelfAttr,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::plan::{FileRights, LandlockRule};

/// Restricts this process and everything it starts. With `files`, only the listed accesses to files are allowed;
/// `tcp` denies to bind TCP sockets, and to connect them except to the listed ports; `scope` denies signals and abstract sockets to processes
/// outside. It is an error if the kernel cannot enforce all that the ABI version includes.
pub(crate) fn restrict_self(
    abi: u8,
    files: Option<&[LandlockRule]>,
    tcp: Option<&[u16]>,
    scope: bool,
) -> io::Result<()> {
    PendingRuleset::new(abi, files.is_some(), tcp, scope)?
        .add_rules(files.unwrap_or_default())?
        .enforce()
}

/// A ruleset that is not enforced yet.
pub(super) struct PendingRuleset {
    created: RulesetCreated,
    abi: ABI,
}

impl PendingRuleset {
    /// A ruleset that denies everything it handles, except connections to the ports in `tcp`.
    pub fn new(abi: u8, restrict_files: bool, tcp: Option<&[u16]>, scope: bool) -> io::Result<Self> {
        let abi = known_abi(abi)?;
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if restrict_files {
            ruleset = ruleset.handle_access(AccessFs::from_all(abi)).map_err(kernel_error)?;
        }
        if tcp.is_some() {
            ruleset = ruleset
                .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)
                .map_err(kernel_error)?;
        }
        if scope {
            ruleset = ruleset
                .scope(Scope::AbstractUnixSocket | Scope::Signal)
                .map_err(kernel_error)?;
        }
        let mut created = ruleset.create().map_err(kernel_error)?;
        for port in tcp.unwrap_or_default() {
            let rule = NetPort::new(*port, AccessNet::ConnectTcp);
            created = created.add_rule(rule).map_err(kernel_error)?;
        }
        Ok(Self { created, abi })
    }

    /// Adds the rules whose paths exist now.
    pub fn add_rules(self, files: &[LandlockRule]) -> io::Result<Self> {
        let Self { mut created, abi } = self;
        for rule in files {
            let opened = openat(CWD, rule.path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            let path = match opened {
                // A path that does not exist needs no rule.
                Err(rustix::io::Errno::NOENT) => continue,
                path => path?,
            };
            let mut access = access(rule.rights, abi);
            if FileType::from_raw_mode(fstat(&path)?.st_mode) != FileType::Directory {
                access &= AccessFs::from_file(abi);
            }
            created = created.add_rule(PathBeneath::new(path, access)).map_err(kernel_error)?;
        }
        Ok(Self { created, abi })
    }

    /// Enforces the ruleset for this process and everything it starts.
    ///
    /// Since ABI 7 (Linux 6.15) the kernel writes each denial to the audit log: those of this domain until its process
    /// executes a program, and those of domains that the script creates. A script could fill the log with them.
    pub fn enforce(self) -> io::Result<()> {
        let Self { mut created, abi } = self;
        if abi >= ABI::V7 {
            created = created
                .log_same_exec(false)
                .and_then(|created| created.log_subdomains(false))
                .map_err(kernel_error)?;
        }
        created.restrict_self().map_err(kernel_error)?;
        Ok(())
    }
}

fn access(rights: FileRights, abi: ABI) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    match rights {
        FileRights::List => AccessFs::ReadDir.into(),
        FileRights::Read => read,
        FileRights::ReadExecute => read | AccessFs::Execute,
        FileRights::Devices => {
            (read | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate) & AccessFs::from_all(abi)
        }
        FileRights::Everything => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
    }
}

/// The ABI version in the type of the `landlock` crate. A version that the crate does not know yet is treated as the
/// last one that it knows.
fn known_abi(abi: u8) -> io::Result<ABI> {
    Ok(match abi {
        0 => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    })
}

/// The kernel error that caused an error of the `landlock` crate.
fn kernel_error(error: RulesetError) -> io::Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(io);
        }
        source = cause.source();
    }
    io::Error::other(error)
}
