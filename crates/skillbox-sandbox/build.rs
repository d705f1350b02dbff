//! Compiles the shipped profiles at build time, with the code that reads the profiles of a host at run time.
//!
//! Each profile becomes one file of bytes that the program embeds (`profile/shipped.rs`). A filter is valid only for
//! the architecture that compiled it, so a build for another architecture writes empty files and the program parses the
//! YAML.

#![expect(clippy::disallowed_methods, reason = "a build script reads cargo's environment")]

use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(dead_code, reason = "the build only reads profiles")]
#[path = "src/profile"]
mod profile {
    mod check;
    pub(crate) mod compiled;
    mod diagnostics;
    mod document;
    mod duration;
    mod host_check;
    mod merge;
    mod merge_syscalls;
    mod name_list;
    mod network_section;
    pub(crate) mod policy;
    pub(crate) mod profiles;
    mod yaml;
}

#[expect(dead_code, reason = "the build only compiles filters")]
#[path = "src/seccomp"]
mod seccomp {
    mod assembler;
    mod bpf;
    mod compile;
    mod constants;
    mod error;
    mod policy;
    mod rule;
    mod syscall_table;

    pub(crate) use compile::Filter;
    pub(crate) use constants::{parse_constant, parse_errno};
    pub(crate) use error::CompileError;
    pub(crate) use policy::SyscallPolicy;
    pub(crate) use rule::{ArgumentTest, Condition, Constant, SyscallAction, SyscallRule};
    pub(crate) use syscall_table::find_syscall;
}

const PROFILE_NAMES: [&str; 6] = ["strict", "default", "loopback", "network", "unconfined", "build"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profiles = Path::new("../../sandbox-profiles");
    for watched in ["src/profile", "src/seccomp", "../../sandbox-profiles"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let target = (env::var("CARGO_CFG_TARGET_ARCH")?, env::var("CARGO_CFG_TARGET_OS")?);
    let is_native = target.0 == env::consts::ARCH && target.1 == env::consts::OS;
    let mut texts = Vec::new();
    for name in PROFILE_NAMES {
        let path = profiles.join(format!("{name}.yaml"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        texts.push((path, text));
    }
    let mut parsed = profile::profiles::Profiles::empty();
    let diagnostics = parsed.add(texts);
    if let Some(diagnostic) = diagnostics.first() {
        return Err(format!("{}: {}", diagnostic.path.display(), diagnostic.message).into());
    }
    for name in PROFILE_NAMES {
        let profile = parsed.get(name).ok_or_else(|| format!("no profile is named {name}"))?;
        let bytes = if is_native {
            postcard::to_stdvec(&profile::compiled::CompiledProfile::from(profile.clone()))?
        } else {
            Vec::new()
        };
        fs::write(out.join(format!("{name}.profile")), bytes)?;
    }
    Ok(())
}
