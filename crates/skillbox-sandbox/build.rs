//! Reads the shipped profiles while the program is built, with the code that reads a host's own when it runs.
//!
//! A profile becomes one file of bytes that the program carries (`profile/shipped.rs`). A filter belongs to the
//! architecture that it was compiled on: a build for another one makes empty files, and the program reads the YAML.

#![expect(clippy::disallowed_methods, reason = "a build script reads cargo's environment")]

use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(dead_code, reason = "the build uses the reading of profiles only")]
#[path = "src/profile"]
mod profile {
    pub(crate) mod catalogue;
    mod check;
    pub(crate) mod compiled;
    mod document;
    mod extend;
    mod findings;
    pub(crate) mod policy;
    mod seconds;
    mod syscalls;
    mod words;
    mod yaml;
}

#[expect(dead_code, reason = "the build uses the compiler of filters only")]
#[expect(clippy::enum_variant_names, reason = "the names are public, where they are at home")]
#[path = "src/seccomp"]
mod seccomp {
    mod bpf;
    mod calls;
    mod compile;
    mod constants;
    mod policy;
    mod rule;

    pub(crate) use calls::number_of;
    pub(crate) use compile::{CompileError, Filter};
    pub(crate) use constants::{errno_named, value_of};
    pub(crate) use policy::SyscallPolicy;
    pub(crate) use rule::{ArgumentTest, Constant, SyscallAction, SyscallRule};
}

const NAMES: [&str; 4] = ["strict", "default", "loopback", "unconfined"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profiles = Path::new("../../sandbox-profiles");
    for watched in ["src/profile", "src/seccomp", "../../sandbox-profiles"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let target = (env::var("CARGO_CFG_TARGET_ARCH")?, env::var("CARGO_CFG_TARGET_OS")?);
    let is_own = target.0 == env::consts::ARCH && target.1 == env::consts::OS;
    let mut texts = Vec::new();
    for name in NAMES {
        let path = profiles.join(format!("{name}.yaml"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        texts.push((path, text));
    }
    let mut read = profile::catalogue::Profiles::none();
    let findings = read.add(texts);
    if let Some(finding) = findings.first() {
        return Err(format!("{}: {}", finding.path.display(), finding.message).into());
    }
    for name in NAMES {
        let profile = read.get(name).ok_or_else(|| format!("no profile is named {name}"))?;
        let bytes = if is_own {
            postcard::to_stdvec(&profile::compiled::Compiled::from(profile.clone()))?
        } else {
            Vec::new()
        };
        fs::write(out.join(format!("{name}.profile")), bytes)?;
    }
    Ok(())
}
