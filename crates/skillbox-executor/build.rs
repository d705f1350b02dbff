//! Builds `skillbox-runner`: pid 1 of containers, and the spawner of a server's sandboxes. It is linked statically, so
//! that it runs in any image. Its bytes are embedded into skillbox, so the skillbox program alone can build the image.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads cargo's environment and starts cargo"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Read at run time rather than with `env!`: the checkout and its build directory may have been moved since
    // compilation.
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let workspace = Path::new(&manifest_dir).join("../..");
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
    // A packager can provide a runner built separately. It must have exactly this version: the protocol is not
    // versioned.
    let runner = match std::env::var_os("SKILLBOX_RUNNER") {
        Some(path) => PathBuf::from(path),
        None => build_runner(&workspace),
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::copy(&runner, out.join("skillbox-runner"))
        .unwrap_or_else(|error| panic!("cannot copy {}: {error}", runner.display()));
}

fn build_runner(workspace: &Path) -> PathBuf {
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // OUT_DIR is target/PROFILE/build/PACKAGE/out. One directory next to it serves all profiles of the outer build.
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
    // The settings of the outer build do not apply to this one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_outer_build_setting = [
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
        if is_outer_build_setting {
            command.env_remove(name);
        }
    }
    let status = command.status().expect("cargo starts");
    assert!(
        status.success(),
        "cannot build the runner: see the errors above. If the static C library is missing (libc.a), install libc6-dev on \
         Debian or glibc-static on Fedora, or set SKILLBOX_RUNNER to the path of a built runner"
    );
    directory.join(target).join("runner/skillbox-runner")
}
