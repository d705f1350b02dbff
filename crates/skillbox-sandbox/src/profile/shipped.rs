//! Loads the shipped profiles, and the profiles in a directory of the host, which override them.
//!
//! Parsing the YAML of a profile takes longer than the rest of a short run, so the build parses the shipped profiles
//! (`build.rs`) and the program embeds the result. A build for another architecture embeds nothing, and the program
//! then parses the YAML when it starts.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::Diagnostic;

use super::compiled;
use super::diagnostics::error_diagnostic;
use super::policy::Profile;
use super::profiles::Profiles;

struct ShippedProfile {
    name: &'static str,
    text: &'static str,
    /// The compiled profile; empty in a build for another architecture.
    compiled: &'static [u8],
}

macro_rules! shipped {
    ($($name:literal),+) => {
        [$(ShippedProfile {
            name: $name,
            text: include_str!(concat!("../../../../sandbox-profiles/", $name, ".yaml")),
            compiled: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".profile")),
        }),+]
    };
}

/// The shipped profiles, each after the one that it extends.
const SHIPPED_PROFILES: [ShippedProfile; 5] = shipped!("strict", "default", "loopback", "network", "unconfined");

/// The profile of builds. It is in no set of profiles, because no request may name it.
const BUILD_PROFILE: [ShippedProfile; 1] = shipped!("build");

/// The largest shipped profile has 16 KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Profiles {
    /// The shipped profiles.
    pub fn shipped() -> Self {
        let mut profiles = Self::empty();
        for shipped in &SHIPPED_PROFILES {
            match compiled::decode(shipped.compiled) {
                Some(profile) => profiles.insert(profile),
                None => return Self::parse_shipped(),
            }
        }
        profiles
    }

    /// A set with only this shipped profile, for a program with a single run: decoding one profile is faster than
    /// decoding all. Returns `None` if no shipped profile has this name.
    pub fn single_shipped(name: &str) -> Option<Self> {
        let shipped = SHIPPED_PROFILES.iter().find(|shipped| shipped.name == name)?;
        let mut profiles = Self::empty();
        match compiled::decode(shipped.compiled) {
            Some(profile) => profiles.insert(profile),
            None => return Some(Self::parse_shipped()),
        }
        Some(profiles)
    }

    /// The same set with one more shipped profile.
    pub fn with_shipped(mut self, name: &str) -> Self {
        let others = Self::single_shipped(name).into_iter();
        for profile in others.flat_map(|others| others.iter().cloned().collect::<Vec<_>>()) {
            if self.get(profile.name.as_str()).is_none() {
                self.insert(profile);
            }
        }
        self
    }

    /// The profile in which packages are installed.
    pub fn for_builds() -> Option<Profile> {
        let [build] = &BUILD_PROFILE;
        let compiled = compiled::decode(build.compiled);
        compiled.or_else(|| {
            Self::parse(SHIPPED_PROFILES.iter().chain([build]))
                .get(build.name)
                .cloned()
        })
    }

    /// Parses the YAML of the shipped profiles.
    fn parse_shipped() -> Self {
        Self::parse(SHIPPED_PROFILES.iter())
    }

    fn parse(shipped: impl Iterator<Item = &'static ShippedProfile>) -> Self {
        let mut profiles = Self::empty();
        let texts = shipped.map(|shipped| (PathBuf::from(format!("{}.yaml", shipped.name)), shipped.text.to_owned()));
        let diagnostics = profiles.add(texts.collect());
        debug_assert!(diagnostics.is_empty(), "a shipped profile is invalid: {diagnostics:?}");
        profiles
    }

    /// The shipped profiles and those in a directory, which override shipped ones of the same name. Invalid profiles
    /// are omitted, and their errors are returned.
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
        let mut diagnostics = Vec::new();
        let mut texts = Vec::new();
        for path in paths {
            match read_text(&path) {
                Ok(text) => texts.push((path, text)),
                Err(error) => diagnostics.push(error_diagnostic(
                    &path,
                    None,
                    "profile_unreadable",
                    error.to_string(),
                    None,
                )),
            }
        }
        diagnostics.extend(profiles.add(texts));
        Ok((profiles, diagnostics))
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("a profile has at most {MAX_FILE_BYTES} bytes, and this file has {size}"),
        ));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_builds_is_no_profile_of_requests() {
        let build = Profiles::for_builds().unwrap();
        let parsed = Profiles::parse(SHIPPED_PROFILES.iter().chain(&BUILD_PROFILE));
        assert_eq!(parsed.get("build"), Some(&build));
        assert_eq!(Profiles::shipped().get("build"), None);
        assert!(Profiles::single_shipped("build").is_none());
    }

    #[test]
    fn compiled_profiles_equal_the_yaml() {
        let parsed = Profiles::parse_shipped();
        assert_eq!(parsed.iter().count(), SHIPPED_PROFILES.len());
        for shipped in &SHIPPED_PROFILES {
            let compiled = compiled::decode(shipped.compiled);
            assert!(compiled.is_some(), "{} was not compiled", shipped.name);
            assert_eq!(compiled.as_ref(), parsed.get(shipped.name), "{}", shipped.name);
        }
    }
}
