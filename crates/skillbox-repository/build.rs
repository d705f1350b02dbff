//! Embeds the repository's `skills/` directory: a table of paths, contents and executable bits.
#![expect(
    clippy::disallowed_methods,
    reason = "this is how cargo tells a build script where it is and where to write"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What running or checking out a skill leaves behind is no part of it.
const LEFT_OUT: [&str; 2] = ["__pycache__", ".git"];

fn main() -> Result<(), Box<dyn Error>> {
    // Asked for now, and not when this script was compiled: a checkout may have been moved since, with its build.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo gave no CARGO_MANIFEST_DIR")?;
    let skills = Path::new(&here).join("../../skills");
    let mut files = Vec::new();
    collect(&skills, &mut files)?;
    let mut table = Vec::new();
    for file in files {
        let below = file.strip_prefix(&skills)?;
        let below = below
            .to_str()
            .ok_or("the path of a built-in skill is not UTF-8")?
            .to_owned();
        let executable = fs::metadata(&file)?.permissions().mode() & 0o100 != 0;
        table.push((below, file, executable));
    }
    table.sort();

    let mut code = String::from("static BUILT_IN_FILES: &[EmbeddedFile] = &[\n");
    for (below, file, executable) in table {
        writeln!(
            code,
            "    EmbeddedFile {{ path: {below:?}, bytes: include_bytes!({file:?}), executable: {executable} }},"
        )?;
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo gave no OUT_DIR")?);
    fs::write(out.join("built_in.rs"), code)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        } else if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            println!("cargo::rerun-if-changed={}", entry.path().display());
            files.push(entry.path());
        } else {
            return Err(format!("{} is neither file nor directory", entry.path().display()).into());
        }
    }
    Ok(())
}
