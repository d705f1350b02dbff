//! Opens the catalog for commands, and looks up skills in it.

use std::fmt;
use std::num::NonZeroUsize;

use serde::Serialize;
use skillbox_model::{Diagnostic, ErrorCode, Severity, with_causes};
use skillbox_repository::{
    Catalog, Repository, Resource, ResourceKind, ScanCode, ScanOptions, SkillEntry, SkillLimits, SkillReadError,
};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Progress, Terminal, plural};
use crate::sources::{NamedSkill, skill_sources, with_named_skill};

/// With fewer skills, starting threads takes longer than the work that they would save.
const MIN_SKILLS_FOR_THREADS: usize = 500;

/// Scans every source of the settings.
pub fn open_repository(context: &Context<'_>, terminal: &Terminal) -> Repository {
    open_repository_with(context, None, terminal)
}

/// Scans every source of the settings, and the skill that the command line names.
pub fn open_repository_with(context: &Context<'_>, named: Option<&NamedSkill>, terminal: &Terminal) -> Repository {
    let sources = skill_sources(context.settings, context.layers.environment());
    let sources = with_named_skill(sources, named);
    let options = ScanOptions {
        max_directories: context.settings.max_directories,
        metadata_fallback: context.settings.metadata_fallback,
        skill_limits: SkillLimits {
            files: context.settings.max_skill_files,
            bytes: context.settings.max_skill_bytes as u64,
            file_bytes: context.settings.max_skill_file_bytes as u64,
        },
        ..ScanOptions::default()
    };
    Progress::show_during(terminal.is_stderr_terminal(), "scanning skills", |_| {
        Repository::open(sources, options)
    })
}

/// The skill with this name, or a failure that suggests similar names.
pub fn find_skill<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a SkillEntry, Failure> {
    catalog.get(name).ok_or_else(|| {
        if let Some(finding) = catalog.why_not_loaded(name) {
            let reason = finding.summary();
            let message = format!("unknown skill `{name}`: it exists but did not load: {reason}");
            let failure = Failure::new(ErrorCode::UnknownSkill, message);
            return match &finding.hint {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            };
        }
        let failure = Failure::new(ErrorCode::UnknownSkill, format!("unknown skill `{name}`"));
        let nearest: Vec<_> = catalog
            .nearest_names(name, 3)
            .into_iter()
            .map(|name| format!("`{name}`"))
            .collect();
        match nearest.as_slice() {
            [] => failure.with_hint("no skills found; create one with `skillbox create NAME --dir skills`"),
            names => failure.with_hint(format!(
                "similar names: {}; run `skillbox list` for all",
                names.join(", ")
            )),
        }
    })
}

/// Applies a function to every skill and returns the results in order. A large catalog is divided among threads.
pub fn map_skills<T: Send>(catalog: &Catalog, work: impl Fn(&SkillEntry) -> T + Sync) -> Vec<T> {
    let entries: Vec<_> = catalog.skills().collect();
    if entries.len() < MIN_SKILLS_FOR_THREADS {
        return entries.into_iter().map(work).collect();
    }
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let chunks = entries.chunks(entries.len().div_ceil(workers));
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = chunks
            .map(|chunk| scope.spawn(move || chunk.iter().map(|entry| work(entry)).collect::<Vec<_>>()))
            .collect();
        let finished = started.into_iter().map(|worker| worker.join());
        finished
            .flat_map(|results| results.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The diagnostic of a skill that exists but cannot be read.
pub fn unreadable_skill(entry: &SkillEntry, error: &SkillReadError) -> Diagnostic {
    Diagnostic {
        code: ErrorCode::SkillUnreadable.as_str(),
        severity: Severity::Error,
        path: entry.skill_md_path().to_owned(),
        line: None,
        column: None,
        message: error.to_string(),
        hint: Some(ErrorCode::SkillUnreadable.remedy().to_owned()),
    }
}

/// The diagnostic of a directory of resources that cannot be listed.
pub fn unlisted_resources(entry: &SkillEntry, problem: &SkillReadError) -> Diagnostic {
    let code = ScanCode::ResourcesUnreadable;
    Diagnostic {
        code: code.as_str(),
        severity: code.severity(),
        path: match problem {
            SkillReadError::Io { path, .. } => path.clone(),
            _ => entry.dir().to_owned(),
        },
        line: None,
        column: None,
        message: format!("the resources cannot be listed: {}", with_causes(problem)),
        hint: Some("grant read access to the directory".to_owned()),
    }
}

/// The number of resources of each type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResourceCounts {
    script: usize,
    reference: usize,
    asset: usize,
    other: usize,
}

impl ResourceCounts {
    /// Counts a skill's resources.
    pub fn of(resources: &[Resource]) -> Self {
        let mut counts = Self::default();
        for resource in resources {
            *match resource.kind {
                ResourceKind::Script => &mut counts.script,
                ResourceKind::Reference => &mut counts.reference,
                ResourceKind::Asset => &mut counts.asset,
                ResourceKind::Other => &mut counts.other,
            } += 1;
        }
        counts
    }
}

/// Such as `2 scripts, 1 reference`; empty for a skill that consists of its SKILL.md only.
impl fmt::Display for ResourceCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.script, "script"),
            (self.reference, "reference"),
            (self.asset, "asset"),
            (self.other, "other file"),
        ];
        let parts = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| plural(count, noun));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}
