//! Landlock, by the crate of its maintainers.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::plan::{FileRights, LandlockRule};

/// Restricts this process and everything it starts. What the plan counts on is a hard requirement.
pub(crate) fn restrict(abi: u8, files: Option<&[LandlockRule]>, refuse_tcp: bool, scope: bool) -> io::Result<()> {
    Rules::new(abi, files.is_some(), refuse_tcp, scope)?
        .grant(files.unwrap_or_default())?
        .enforce()
}

/// Rules that are not in force yet.
pub(crate) struct Rules {
    created: RulesetCreated,
    abi: ABI,
}

impl Rules {
    /// Rules that grant nothing so far of what they handle.
    pub fn new(abi: u8, files: bool, refuse_tcp: bool, scope: bool) -> io::Result<Self> {
        let abi = version(abi);
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if files {
            ruleset = ruleset.handle_access(AccessFs::from_all(abi)).map_err(cause)?;
        }
        if refuse_tcp {
            ruleset = ruleset
                .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)
                .map_err(cause)?;
        }
        if scope {
            ruleset = ruleset
                .scope(Scope::AbstractUnixSocket | Scope::Signal)
                .map_err(cause)?;
        }
        let created = ruleset.create().map_err(cause)?;
        Ok(Self { created, abi })
    }

    /// Grants what these rules say of what is there now.
    pub fn grant(self, files: &[LandlockRule]) -> io::Result<Self> {
        let Self { mut created, abi } = self;
        for rule in files {
            let opened = openat(CWD, rule.path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            let path = match opened {
                // A grant for something that is not there grants nothing.
                Err(rustix::io::Errno::NOENT) => continue,
                path => path?,
            };
            let mut access = access(rule.rights, abi);
            if FileType::from_raw_mode(fstat(&path)?.st_mode) != FileType::Directory {
                access &= AccessFs::from_file(abi);
            }
            created = created.add_rule(PathBeneath::new(path, access)).map_err(cause)?;
        }
        Ok(Self { created, abi })
    }

    /// Puts them in force, for this process and everything it starts.
    pub fn enforce(self) -> io::Result<()> {
        self.created.restrict_self().map_err(cause)?;
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

fn version(abi: u8) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}

/// The kernel's error behind the crate's.
fn cause(error: RulesetError) -> io::Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(io);
        }
        source = cause.source();
    }
    io::Error::other(error)
}
