//! The secrets that the operator configured.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use skillbox_model::{Digest, HostPort, SecretInjection, SecretName, SecretValue, SkillName};

/// Why the source of a secret has no usable value. It never contains the value.
pub type SecretSourceError = Box<dyn Error + Send + Sync>;

/// Reads the value of a secret from its source, outside every sandbox.
pub type ReadSecret = Arc<dyn Fn() -> Result<SecretValue, SecretSourceError> + Send + Sync>;

/// A skill to which the configuration grants a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillSelector {
    /// Every version of a skill.
    Name(SkillName),
    /// One version of a skill, under every name.
    Digest(Digest),
}

/// One configured secret.
#[derive(Clone)]
pub struct ConfiguredSecret {
    /// Where the value comes from, such as `env:API_TOKEN`. It is shown.
    pub source: String,
    /// The hosts that may receive the value.
    pub hosts: BTreeSet<HostPort>,
    /// The skills that have the secret without an approval.
    pub skills: Vec<SkillSelector>,
    /// How runs get it.
    pub injection: SecretInjection,
    /// Reads the value.
    pub read: ReadSecret,
}

impl fmt::Debug for ConfiguredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredSecret")
            .field("source", &self.source)
            .field("hosts", &self.hosts)
            .field("skills", &self.skills)
            .field("injection", &self.injection)
            .finish_non_exhaustive()
    }
}

/// All configured secrets.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredSecrets {
    /// The secrets by name.
    pub secrets: BTreeMap<SecretName, ConfiguredSecret>,
    /// A directory that anyone could have written, such as the working directory. The name of a skill in it proves
    /// nothing, so it selects no secret.
    pub untrusted_directory: Option<PathBuf>,
}

impl ConfiguredSecrets {
    /// The secrets that the configuration grants to a skill. A name counts if `is_version_checked`, or if the skill is
    /// outside the untrusted directory.
    pub fn granted_to(
        &self,
        name: &SkillName,
        digest: &Digest,
        path: &Path,
        is_version_checked: bool,
    ) -> BTreeSet<SecretName> {
        let is_name_proof = is_version_checked || !self.is_untrusted(path);
        let granted = self.secrets.iter().filter(|(_, secret)| {
            let mut selectors = secret.skills.iter();
            selectors.any(|selector| selects(selector, name, digest, is_name_proof))
        });
        granted.map(|(name, _)| name.clone()).collect()
    }

    fn is_untrusted(&self, path: &Path) -> bool {
        self.untrusted_directory
            .as_ref()
            .is_some_and(|directory| directory.join(path).starts_with(directory))
    }
}

fn selects(selector: &SkillSelector, name: &SkillName, digest: &Digest, is_name_proof: bool) -> bool {
    match selector {
        SkillSelector::Name(selected) => is_name_proof && selected == name,
        SkillSelector::Digest(selected) => selected == digest,
    }
}

/// The configured secrets of a process, which a reload replaces.
#[derive(Debug, Default)]
pub(crate) struct SecretStore(RwLock<Arc<ConfiguredSecrets>>);

impl SecretStore {
    pub(crate) fn new(secrets: ConfiguredSecrets) -> Self {
        Self(RwLock::new(Arc::new(secrets)))
    }

    pub(crate) fn get(&self) -> Arc<ConfiguredSecrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, secrets: ConfiguredSecrets) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(secrets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_an_untrusted_directory_selects_nothing() {
        let (name, digest) = (
            SkillName::parse("weather").unwrap(),
            Digest::parse(&format!("sha256:{}", "ab".repeat(32))).unwrap(),
        );
        let secret = |selector| ConfiguredSecret {
            source: "env:X".to_owned(),
            hosts: BTreeSet::new(),
            skills: vec![selector],
            injection: SecretInjection::Header,
            read: Arc::new(|| Ok(SecretValue::parse("0123456789".to_owned())?)),
        };
        let secrets = ConfiguredSecrets {
            secrets: [
                ("BY_NAME", secret(SkillSelector::Name(name.clone()))),
                ("BY_DIGEST", secret(SkillSelector::Digest(digest))),
                ("OTHER", secret(SkillSelector::Name(SkillName::parse("other").unwrap()))),
            ]
            .map(|(name, secret)| (SecretName::parse(name).unwrap(), secret))
            .into(),
            untrusted_directory: Some("/project".into()),
        };
        let granted = |path: &str, is_checked| -> Vec<String> {
            let names = secrets.granted_to(&name, &digest, Path::new(path), is_checked);
            names.iter().map(ToString::to_string).collect()
        };
        assert_eq!(granted("/srv/skills/weather", false), ["BY_DIGEST", "BY_NAME"]);
        for path in ["./skills/weather", "/project/skills/weather", "/project/../srv/weather"] {
            assert_eq!(granted(path, false), ["BY_DIGEST"], "{path}");
            assert_eq!(granted(path, true), ["BY_DIGEST", "BY_NAME"], "{path}");
        }
    }
}
