//! A set of resolved profiles. A profile is resolved after the one that it extends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use skillbox_model::Diagnostic;

use super::check;
use super::diagnostics::{Diagnostics, error_diagnostic};
use super::document::ProfileDocument;
use super::host_check::check_host_paths;
use super::merge;
use super::policy::Profile;
use super::yaml;

/// A set of resolved and checked profiles, by name.
#[derive(Clone, Debug)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
}

/// A parsed document that is not merged with its parent yet.
struct UnresolvedProfile {
    path: PathBuf,
    document: ProfileDocument,
}

impl Profiles {
    /// An empty set.
    pub(crate) fn empty() -> Self {
        Self {
            by_name: BTreeMap::new(),
        }
    }

    /// Adds a resolved profile.
    pub(crate) fn insert(&mut self, profile: Profile) {
        self.by_name.insert(profile.name.to_string(), profile);
    }

    /// Checks one profile without adding it; `extends` may name any profile of this set.
    pub fn check(&self, path: &Path, text: &str) -> Result<Profile, Vec<Diagnostic>> {
        let mut extended = self.clone();
        let diagnostics = extended.add(vec![(path.to_owned(), text.to_owned())]);
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let document: ProfileDocument = parse(path, text).map_err(|error| vec![error])?;
        extended.by_name.remove(&document.name.value).ok_or_else(Vec::new)
    }

    /// Checks one profile like [`Self::check`], and also whether its paths can be mounted on this host.
    pub fn check_on_this_host(&self, path: &Path, text: &str) -> Result<Profile, Vec<Diagnostic>> {
        let profile = self.check(path, text)?;
        let document = parse(path, text).map_err(|error| vec![error])?;
        let mut diagnostics = Diagnostics::new(path);
        check_host_paths(&document, &mut diagnostics);
        match diagnostics.into_list() {
            list if list.is_empty() => Ok(profile),
            list => Err(list),
        }
    }

    /// The profile with this name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.by_name.get(name)
    }

    /// Every profile, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.by_name.values()
    }

    /// Adds profile files, given as paths and texts. A profile is resolved after the one that it extends. Returns the
    /// errors of the files that cannot be used.
    pub(crate) fn add(&mut self, texts: Vec<(PathBuf, String)>) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let mut pending: Vec<UnresolvedProfile> = Vec::new();
        for (path, text) in texts {
            match parse(&path, &text) {
                Ok(document) => pending.push(UnresolvedProfile { path, document }),
                Err(error) => diagnostics.push(error),
            }
        }
        loop {
            let names: Vec<String> = pending
                .iter()
                .map(|unresolved| unresolved.document.name.value.clone())
                .collect();
            let ready = pending.iter().position(|candidate| {
                let parent = candidate.document.extends.as_ref().map(|parent| parent.value.as_str());
                // A profile that extends its own name extends the shipped profile that it replaces.
                parent.is_none_or(|parent| {
                    parent == candidate.document.name.value || !names.iter().any(|name| name == parent)
                })
            });
            let Some(ready) = ready else { break };
            let next = pending.remove(ready);
            match self.resolve(&next) {
                Ok(profile) => {
                    self.by_name.insert(profile.name.to_string(), profile);
                }
                Err(errors) => diagnostics.extend(errors),
            }
        }
        for unresolved in pending {
            let location = unresolved.document.extends.as_ref().and_then(yaml::location);
            let message = format!(
                "profile {:?} extends itself through other profiles",
                unresolved.document.name.value
            );
            diagnostics.push(error_diagnostic(
                &unresolved.path,
                location,
                "profile_cycle",
                message,
                None,
            ));
        }
        diagnostics
    }

    fn resolve(&self, unresolved: &UnresolvedProfile) -> Result<Profile, Vec<Diagnostic>> {
        let mut diagnostics = Diagnostics::new(&unresolved.path);
        let document = &unresolved.document;
        let parent = match &document.extends {
            None => None,
            Some(parent) => match self.by_name.get(&parent.value) {
                Some(parent) => Some(parent),
                None => {
                    let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
                    diagnostics.add_with_hint(
                        yaml::location(parent),
                        "profile_unknown_parent",
                        format!("no profile is named {:?}", parent.value),
                        format!("known profiles: {}", known.join(", ")),
                    );
                    return Err(diagnostics.into_list());
                }
            },
        };
        let profile = merge::merge_with_parent(document, parent, &mut diagnostics);
        if let Some(profile) = &profile {
            check::check_profile(profile, document, &mut diagnostics);
        }
        match (profile, diagnostics.into_list()) {
            (Some(profile), diagnostics) if diagnostics.is_empty() => Ok(profile),
            (_, diagnostics) => Err(diagnostics),
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<ProfileDocument, Diagnostic> {
    yaml::parse(text).map_err(|error| error_diagnostic(path, error.location, "profile_syntax", error.message, None))
}
