//! Embeds the `skills/` directory of the repository as a table of paths, contents and executable bits, with its digest.
#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes the directories of a build script in environment variables"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Names that running or checking out a skill creates.
const EXCLUDED_NAMES: [&str; 2] = ["__pycache__", ".git"];

fn main() -> Result<(), Box<dyn Error>> {
    // This is read at run time, because the checkout may have been moved after this script was compiled.
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let skills = Path::new(&manifest_dir).join("../../skills");
    let mut files = Vec::new();
    collect_files(&skills, &mut files)?;
    let mut table = Vec::new();
    for file in files {
        let path = file.strip_prefix(&skills)?;
        let path = path
            .to_str()
            .ok_or("the path of a built-in skill is not UTF-8")?
            .to_owned();
        let is_executable = fs::metadata(&file)?.permissions().mode() & 0o100 != 0;
        table.push((path, file, is_executable));
    }
    table.sort();

    let digest = tree_digest(&table)?;
    let mut code = String::from("static BUILT_IN_FILES: &[EmbeddedFile] = &[\n");
    for (path, file, is_executable) in table {
        writeln!(
            code,
            "    EmbeddedFile {{ path: {path:?}, bytes: include_bytes!({file:?}), is_executable: {is_executable} }},"
        )?;
    }
    code.push_str("];\n");
    writeln!(code, "static BUILT_IN_DIGEST: &str = {digest:?};")?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("built_in.rs"), code)?;
    Ok(())
}

/// The digest of all files, in the format that `src/skill/digest.rs` describes. Computing it here saves every process the
/// hashing of half a megabyte.
fn tree_digest(table: &[(String, PathBuf, bool)]) -> Result<String, Box<dyn Error>> {
    let mut hasher = Sha256::new();
    hasher.update(b"skillbox-tree/1\0");
    for (path, file, is_executable) in table {
        let content = hex(&Sha256::digest(fs::read(file)?));
        let kind = if *is_executable { 'x' } else { 'f' };
        hasher.update(format!("{kind} {content} {path}\0"));
    }
    Ok(hex(&hasher.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if EXCLUDED_NAMES.iter().any(|name| entry.file_name() == *name) {
            continue;
        } else if kind.is_dir() {
            collect_files(&entry.path(), files)?;
        } else if kind.is_file() {
            println!("cargo::rerun-if-changed={}", entry.path().display());
            files.push(entry.path());
        } else {
            return Err(format!("{} is neither a file nor a directory", entry.path().display()).into());
        }
    }
    Ok(())
}
