//! Builds the program that is pid 1 in containers and the spawner of a server's sandboxes, linked statically, so that it
//! runs in whatever image there is. Its bytes become part of skillbox: who has the program can build the image.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads cargo's environment and starts cargo"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Asked for now, and not when this script was compiled: a checkout may have been moved since, with its build.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let workspace = Path::new(&here).join("../..");
    println!("cargo:rerun-if-env-changed=SKILLBOX_RUNNER");
    for path in [
        "Cargo.lock",
        "Cargo.toml",
        "Dockerfile.runner",
        "crates/skillbox-model/src",
        "crates/skillbox-model/Cargo.toml",
        "crates/skillbox-sandbox/src",
        "crates/skillbox-sandbox/build.rs",
        "crates/skillbox-sandbox/Cargo.toml",
        "crates/skillbox-runner/src",
        "crates/skillbox-runner/Cargo.toml",
    ] {
        println!("cargo:rerun-if-changed={}", workspace.join(path).display());
    }
    // A packager may bring a program of their own making, of this very version: both sides speak without versions.
    let runner = match std::env::var_os("SKILLBOX_RUNNER") {
        Some(path) => PathBuf::from(path),
        None => build(&workspace),
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::copy(&runner, out.join("skillbox-runner"))
        .unwrap_or_else(|error| panic!("cannot take {}: {error}", runner.display()));
}

fn build(workspace: &Path) -> PathBuf {
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // One directory for every profile of the build around this one: target/PROFILE/build/PACKAGE/out.
    let directory = out.ancestors().nth(4).unwrap_or(&out).join("runner");
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO");
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--locked",
            "--package",
            "skillbox-runner",
            "--profile",
            "runner",
        ])
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(&directory)
        .current_dir(workspace)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static");
    // What the build around this one was told is not meant for this one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_meant_for_the_other = [
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "CARGO_TARGET_DIR",
        ]
        .contains(&name.as_str())
            || name.starts_with("CARGO_PROFILE_")
            || name.starts_with("CARGO_CFG_")
            || name.starts_with("CARGO_FEATURE_")
            || name == "CARGO_BUILD_TARGET";
        if is_meant_for_the_other {
            command.env_remove(name);
        }
    }
    let status = command.status().expect("cargo starts");
    assert!(
        status.success(),
        "the runner could not be built; it needs the static C library (libc.a: Debian has it in libc6-dev, Fedora in \
         glibc-static), or the path of a built one in SKILLBOX_RUNNER"
    );
    directory.join(target).join("runner/skillbox-runner")
}
