//! Skills that this host lacks, or has in another version: fetched from the object store by digest.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use skillbox_model::{Digest, RunRequest, SkillName, with_causes};
use skillbox_repository::{Repository, ScanOptions, Scope, SkillDir, Source};
use skillbox_runtime::Runtime;

use crate::queue::batch_store::BatchStore;
use crate::queue::error::QueueError;
use crate::queue::message::{SkillContent, Submission};
use crate::queue::skill_archive;

/// The number of skills that stay on this host. The oldest are removed.
const MAX_STORED_SKILLS: usize = 256;
/// The number of combinations of skills that are kept open.
const MAX_OPEN_RUNTIMES: usize = 64;

type SkillVersions = Vec<(SkillName, Digest)>;

/// The skills that were fetched.
#[derive(Debug)]
pub(super) struct FetchedSkills {
    directory: PathBuf,
    runtimes: Mutex<HashMap<SkillVersions, Arc<Runtime>>>,
}

impl FetchedSkills {
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            runtimes: Mutex::default(),
        }
    }

    /// A runtime whose catalog has exactly the versions of the skills that a request needs. The trust rules, the records and
    /// the limits are those of this host: a skill that came from elsewhere gets no other treatment.
    pub fn runtime_for(
        &self,
        runtime: &Runtime,
        store: &BatchStore,
        submission: &Submission,
        request: &RunRequest,
    ) -> Result<Arc<Runtime>, QueueError> {
        let mut wanted: Vec<(SkillName, &SkillContent)> = Vec::new();
        for name in skill_names(request) {
            let listed = submission.skills.iter().find(|(listed, _)| listed.as_str() == name);
            let (name, content) = listed.ok_or_else(|| {
                QueueError::Record(format!(
                    "the submission of the batch {} has no skill {name}",
                    store.name()
                ))
            })?;
            if !wanted.iter().any(|(known, _)| known == name) {
                wanted.push((name.clone(), content));
            }
        }
        let versions: SkillVersions = wanted
            .iter()
            .map(|(name, content)| (name.clone(), content.digest))
            .collect();
        // One at a time: the first job of a batch fetches, and the others wait for it.
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = runtimes.get(&versions) {
            return Ok(known.clone());
        }
        let mut sources = Vec::new();
        for (name, content) in &wanted {
            let path = self.fetch(store, name, content)?;
            sources.push(Source::Directory {
                path,
                scope: Scope::User,
            });
        }
        if runtimes.len() >= MAX_OPEN_RUNTIMES {
            runtimes.clear();
        }
        let opened = Arc::new(runtime.with_repository(Repository::open(sources, ScanOptions::default())));
        runtimes.insert(versions, opened.clone());
        Ok(opened)
    }

    /// The directory of a skill with exactly this digest.
    fn fetch(&self, store: &BatchStore, name: &SkillName, content: &SkillContent) -> Result<PathBuf, QueueError> {
        let unusable = |message: String| QueueError::SkillContent {
            skill: name.clone(),
            digest: content.digest,
            message,
        };
        let parent = self.directory.join(content.digest.hex());
        let path = parent.join(name.as_str());
        if digest_of(&path) == Ok(content.digest) {
            return Ok(path);
        }
        let io = |source| QueueError::Io {
            action: "write a skill below",
            path: self.directory.clone(),
            source,
        };
        fs::create_dir_all(&self.directory).map_err(io)?;
        self.remove_oldest();
        let unpacked = tempfile::tempdir_in(&self.directory).map_err(io)?;
        let skill = unpacked.path().join(name.as_str());
        fs::create_dir(&skill).map_err(io)?;
        let archive = store.open_content(&content.archive)?;
        skill_archive::unpack(archive, &skill).map_err(|error| unusable(error.to_string()))?;
        let found = digest_of(&skill).map_err(unusable)?;
        if found != content.digest {
            return Err(unusable(format!("its files have the digest {found}")));
        }
        // A damaged directory of that name is replaced; another worker may have put a good one there meanwhile.
        let _absent = fs::remove_dir_all(&parent);
        match fs::rename(unpacked.path(), &parent) {
            Ok(()) => drop(unpacked.keep()),
            Err(_) if digest_of(&path) == Ok(content.digest) => {}
            Err(error) => return Err(io(error)),
        }
        Ok(path)
    }

    fn remove_oldest(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut stored: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if stored.len() < MAX_STORED_SKILLS {
            return;
        }
        stored.sort_unstable();
        for (_, path) in &stored[..=stored.len() - MAX_STORED_SKILLS] {
            if let Err(error) = fs::remove_dir_all(path) {
                tracing::warn!(%error, path = %path.display(), "an old skill is not removed");
            }
        }
    }
}

fn digest_of(path: &std::path::Path) -> Result<Digest, String> {
    let opened = SkillDir::open(path).and_then(|skill| skill.digest());
    opened.map_err(|error| with_causes(&error))
}

/// The names of the skills whose files a request uses.
fn skill_names(request: &RunRequest) -> Vec<&str> {
    let of_inputs = request.inputs.iter().filter_map(|input| {
        let rest = input.from.strip_prefix("skill://")?;
        Some(rest.split('/').next().unwrap_or(rest))
    });
    std::iter::once(request.skill.as_str())
        .chain(request.with_skills.iter().map(String::as_str))
        .chain(of_inputs)
        .collect()
}
