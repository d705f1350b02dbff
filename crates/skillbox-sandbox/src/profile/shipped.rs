//! The profiles that come with the program, and those of a host's directory over them.
//!
//! Reading a profile's YAML takes longer than the rest of a short run, so the build reads the shipped ones
//! (`build.rs`) and the program carries the result. Where it could not, because it builds for another machine than its
//! own, the YAML is read at the start: the same profiles, later.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::Diagnostic;

use super::catalogue::Profiles;
use super::compiled;
use super::findings::finding;

struct Shipped {
    name: &'static str,
    text: &'static str,
    /// What the build made of it; nothing when it could not.
    compiled: &'static [u8],
}

macro_rules! shipped {
    ($($name:literal),+) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../sandbox-profiles/", $name, ".yaml")),
            compiled: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".profile")),
        }),+]
    };
}

/// Each after the one that it extends.
const SHIPPED: [Shipped; 4] = shipped!("strict", "default", "loopback", "unconfined");

/// No profile that a person writes is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Profiles {
    /// The profiles that come with the program.
    pub fn shipped() -> Self {
        let mut profiles = Self::none();
        for shipped in &SHIPPED {
            match compiled::decode(shipped.compiled) {
                Some(profile) => profiles.put(profile),
                None => return Self::from_texts(&SHIPPED),
            }
        }
        profiles
    }

    /// One shipped profile alone: less to read for a program that makes one run.
    pub fn shipped_alone(name: &str) -> Option<Self> {
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == name)?;
        let mut profiles = Self::none();
        match compiled::decode(shipped.compiled) {
            Some(profile) => profiles.put(profile),
            None => return Some(Self::from_texts(&SHIPPED)),
        }
        Some(profiles)
    }

    fn from_texts(shipped: &[Shipped]) -> Self {
        let mut profiles = Self::none();
        let texts = shipped
            .iter()
            .map(|shipped| (PathBuf::from(format!("{}.yaml", shipped.name)), shipped.text.to_owned()));
        let findings = profiles.add(texts.collect());
        debug_assert!(findings.is_empty(), "a shipped profile is wrong: {findings:?}");
        profiles
    }

    /// The shipped profiles, and those of a directory over them. What cannot be used is told and left out.
    pub fn with_directory(directory: &Path) -> io::Result<(Self, Vec<Diagnostic>)> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
            {
                paths.push(path);
            }
        }
        paths.sort();
        let mut profiles = Self::shipped();
        let mut findings = Vec::new();
        let mut texts = Vec::new();
        for path in paths {
            match read_text(&path) {
                Ok(text) => texts.push((path, text)),
                Err(error) => findings.push(finding(&path, None, "profile_unreadable", error.to_string(), None)),
            }
        }
        findings.extend(profiles.add(texts));
        Ok((profiles, findings))
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{size} bytes are too many for a profile"),
        ));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_build_made_is_what_the_yaml_says() {
        let read = Profiles::from_texts(&SHIPPED);
        assert_eq!(read.iter().count(), SHIPPED.len());
        for shipped in &SHIPPED {
            let compiled = compiled::decode(shipped.compiled);
            assert!(compiled.is_some(), "{} was not compiled", shipped.name);
            assert_eq!(compiled.as_ref(), read.get(shipped.name), "{}", shipped.name);
        }
    }
}
