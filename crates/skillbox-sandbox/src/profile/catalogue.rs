//! A set of profiles, each read after the one that it extends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use skillbox_model::Diagnostic;

use super::check;
use super::document::Document;
use super::extend;
use super::findings::{Findings, finding};
use super::policy::Profile;
use super::yaml;

/// A set of profiles by name, each resolved and checked.
#[derive(Clone, Debug)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
}

/// A document that is not resolved yet.
struct Unresolved {
    path: PathBuf,
    document: Document,
}

impl Profiles {
    /// No profile.
    pub(crate) fn none() -> Self {
        Self {
            by_name: BTreeMap::new(),
        }
    }

    /// Adds a profile that was resolved before.
    pub(crate) fn put(&mut self, profile: Profile) {
        self.by_name.insert(profile.name.to_string(), profile);
    }

    /// Checks one profile without adding it; `extends` may name any profile of this set.
    pub fn check(&self, path: &Path, text: &str) -> Result<Profile, Vec<Diagnostic>> {
        let mut with = self.clone();
        let findings = with.add(vec![(path.to_owned(), text.to_owned())]);
        if !findings.is_empty() {
            return Err(findings);
        }
        let document: Document = parse(path, text).map_err(|error| vec![error])?;
        with.by_name.remove(&document.name.value).ok_or_else(Vec::new)
    }

    /// The profile of that name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.by_name.get(name)
    }

    /// Every profile, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.by_name.values()
    }

    /// Adds documents, each after the one it extends.
    pub(crate) fn add(&mut self, texts: Vec<(PathBuf, String)>) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        let mut waiting: Vec<Unresolved> = Vec::new();
        for (path, text) in texts {
            match parse(&path, &text) {
                Ok(document) => waiting.push(Unresolved { path, document }),
                Err(error) => findings.push(error),
            }
        }
        loop {
            let names: Vec<String> = waiting
                .iter()
                .map(|waiting| waiting.document.name.value.clone())
                .collect();
            let ready = waiting.iter().position(|candidate| {
                let parent = candidate.document.extends.as_ref().map(|parent| parent.value.as_str());
                // A profile that extends its own name builds on the shipped one that it replaces.
                parent.is_none_or(|parent| {
                    parent == candidate.document.name.value || !names.iter().any(|name| name == parent)
                })
            });
            let Some(ready) = ready else { break };
            let next = waiting.remove(ready);
            match self.resolve(&next) {
                Ok(profile) => {
                    self.by_name.insert(profile.name.to_string(), profile);
                }
                Err(errors) => findings.extend(errors),
            }
        }
        for left in waiting {
            let place = left.document.extends.as_ref().and_then(yaml::place);
            let message = format!("profile {:?} extends itself through others", left.document.name.value);
            findings.push(finding(&left.path, place, "profile_cycle", message, None));
        }
        findings
    }

    fn resolve(&self, unresolved: &Unresolved) -> Result<Profile, Vec<Diagnostic>> {
        let mut findings = Findings::new(&unresolved.path);
        let document = &unresolved.document;
        let parent = match &document.extends {
            None => None,
            Some(parent) => match self.by_name.get(&parent.value) {
                Some(parent) => Some(parent),
                None => {
                    let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
                    findings.hint(
                        yaml::place(parent),
                        "profile_unknown_parent",
                        format!("no profile is named {:?}", parent.value),
                        format!("known are {}", known.join(", ")),
                    );
                    return Err(findings.into_list());
                }
            },
        };
        let profile = extend::resolve(document, parent, &mut findings);
        if let Some(profile) = &profile {
            check::contradictions(profile, document, &mut findings);
        }
        match (profile, findings.into_list()) {
            (Some(profile), findings) if findings.is_empty() => Ok(profile),
            (_, findings) => Err(findings),
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Document, Diagnostic> {
    yaml::parse(text).map_err(|error| finding(path, error.place, "profile_syntax", error.message, None))
}
