//! `skillbox lock`: the versions of skills that a project uses.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use skillbox_model::{ExitCode, SkillName};
use skillbox_repository::{Catalog, Scope, SkillEntry};
use skillbox_runtime::{TrustSettings, read_skill_files};
use skillbox_trust::{LockDifference, LockFile, LockedSkill, SignatureStatus, SkillManifest};

use super::lock_import::read_foreign_lock;
use super::output::{CommandOutput, print_output};
use crate::catalog;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::settings::TrustFlags;
use crate::trust_setup::{trust_failure, trust_settings};

/// Write the lock file with the digests of skills, or check it
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "Without names, the file gets all skills but the built-in ones. With `trust = \"locked\"`, only the versions in the \
     lock file run.\n\n",
    crate::examples!(
    "skillbox lock                              lock all skills found here",
    "skillbox lock csv-report                   add or update one skill",
    "skillbox lock --check                      exit 1 and name every difference",
    "skillbox lock --import skills-lock.json    lock the skills that another tool locked",
    )
))]
pub struct LockArgs {
    /// Names of the skills
    names: Vec<String>,
    /// Compare the skills with the lock file, and change nothing
    #[arg(long)]
    check: bool,
    /// Lock the skills in the lock file of another tool, and report what cannot be verified
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "names"])]
    import: Option<PathBuf>,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Serialize)]
struct LockWritten {
    path: PathBuf,
    skills: Vec<SkillName>,
    /// The differences to the file before.
    changes: Vec<LockDifference>,
    /// Skills of an imported file that were not found here.
    missing: Vec<String>,
    /// Claims of an imported file that the files of the skill cannot prove.
    unverified: Vec<String>,
}

#[derive(Serialize)]
struct LockCheck {
    path: PathBuf,
    skills: usize,
    differences: Vec<LockDifference>,
}

pub fn run(args: &LockArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let path = context.trust.lock_file.clone();
    let settings = trust_settings(context)?;
    let repository = catalog::open_repository(context, terminal);
    let catalog = repository.catalog();
    let stored = LockFile::read(&path).map_err(trust_failure)?;
    if args.check {
        let Some(lock) = stored else {
            let message = format!("there is no lock file {}", path.display());
            return Err(
                Failure::new(skillbox_model::ErrorCode::NotLocked, message).with_hint("write it with `skillbox lock`")
            );
        };
        let check = check(&lock, args, &catalog, &settings, path)?;
        return print_output(&check, context, terminal);
    }
    let before = stored.unwrap_or_default();
    let mut lock = match args.names.is_empty() && args.import.is_none() {
        true => LockFile::default(),
        false => before.clone(),
    };
    let mut written = LockWritten {
        path,
        skills: Vec::new(),
        changes: Vec::new(),
        missing: Vec::new(),
        unverified: Vec::new(),
    };
    let locked = match &args.import {
        Some(file) => written.import(file, &catalog, &settings)?,
        None => {
            let entries = selected(&catalog, &args.names)?.into_iter();
            entries
                .map(|entry| lock_skill(entry, &settings))
                .collect::<Result<_, _>>()?
        }
    };
    for skill in locked {
        written.skills.push(skill.name.clone());
        lock.insert(skill);
    }
    let now: Vec<(&SkillName, &SkillManifest)> = lock.skills().map(|skill| (&skill.name, &skill.files)).collect();
    written.changes = before.differences(now);
    lock.write(&written.path).map_err(trust_failure)?;
    print_output(&written, context, terminal)
}

impl LockWritten {
    /// The skills that another tool locked, as they are here.
    fn import(
        &mut self,
        file: &Path,
        catalog: &Catalog,
        settings: &TrustSettings,
    ) -> Result<Vec<LockedSkill>, Failure> {
        let mut locked = Vec::new();
        for foreign in read_foreign_lock(file)? {
            let Some(entry) = catalog.get(&foreign.name) else {
                self.missing.push(foreign.name);
                continue;
            };
            let skill = lock_skill(entry, settings)?;
            let digest = skill.digest.to_string();
            let is_unverified = |claim: &&(String, String)| !digest.ends_with(&claim.1) || claim.1.len() < 64;
            let unverified = foreign.claims.iter().filter(is_unverified);
            let to_text = |(key, value): &(String, String)| format!("{}: {key} {value}", foreign.name);
            self.unverified.extend(unverified.map(to_text));
            locked.push(LockedSkill {
                source: foreign.source.or(skill.source),
                ..skill
            });
        }
        Ok(locked)
    }
}

/// The named skills; without names, all but the built-in ones, whose version is that of the program.
fn selected<'c>(catalog: &'c Catalog, names: &[String]) -> Result<Vec<&'c SkillEntry>, Failure> {
    if names.is_empty() {
        let is_outside = |entry: &&SkillEntry| entry.scope() != Scope::BuiltIn;
        return Ok(catalog.skills().filter(is_outside).collect());
    }
    names.iter().map(|name| catalog::find_skill(catalog, name)).collect()
}

fn lock_skill(entry: &SkillEntry, settings: &TrustSettings) -> Result<LockedSkill, Failure> {
    let files = read_skill_files(entry, &settings.publishers).map_err(|error| Failure::from_body(error.body()))?;
    Ok(LockedSkill {
        name: entry.name().clone(),
        digest: files.manifest.digest(),
        source: Some(entry.source_label().to_owned()),
        signer: match files.signature {
            SignatureStatus::Valid(signatures) => signatures.into_iter().next().map(|signature| signature.publisher),
            _ => None,
        },
        files: files.manifest,
    })
}

fn check(
    lock: &LockFile,
    args: &LockArgs,
    catalog: &Catalog,
    settings: &TrustSettings,
    path: PathBuf,
) -> Result<LockCheck, Failure> {
    let names: Vec<&str> = args.names.iter().map(String::as_str).collect();
    // A skill that cannot be read is an error, never a skill without differences.
    let is_checked = |entry: &&SkillEntry| match names.is_empty() {
        true => entry.scope() != Scope::BuiltIn || lock.get(entry.name()).is_some(),
        false => names.contains(&entry.name().as_str()),
    };
    for name in &names {
        catalog::find_skill(catalog, name)?;
    }
    let found = catalog.skills().filter(is_checked);
    let found: Vec<LockedSkill> = found
        .map(|entry| lock_skill(entry, settings))
        .collect::<Result<_, _>>()?;
    let differences = lock.differences(found.iter().map(|skill| (&skill.name, &skill.files)));
    let is_named = |difference: &LockDifference| names.is_empty() || names.contains(&difference.skill().as_str());
    Ok(LockCheck {
        path,
        skills: lock.skills().len(),
        differences: differences.into_iter().filter(is_named).collect(),
    })
}

impl CommandOutput for LockWritten {
    fn render(&self, page: &mut Page) {
        let text = format!(
            "{} in {}",
            plural(self.skills.len(), "skill"),
            page.short_path(&self.path)
        );
        page.labelled(0, Span::new(Tone::Good, "locked"), 8, Tone::Plain, &text);
        render_differences(&self.changes, page);
        for name in &self.missing {
            page.labelled(0, Span::new(Tone::Bad, "missing"), 12, Tone::Plain, name);
        }
        for claim in &self.unverified {
            page.labelled(0, Span::new(Tone::Warning, "unverified"), 12, Tone::Plain, claim);
        }
    }

    fn exit_code(&self) -> u8 {
        match self.missing.is_empty() {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}

impl CommandOutput for LockCheck {
    fn render(&self, page: &mut Page) {
        if self.differences.is_empty() {
            let text = format!("{} as in {}", plural(self.skills, "skill"), page.short_path(&self.path));
            page.labelled(0, Span::new(Tone::Good, "ok"), 4, Tone::Plain, &text);
        }
        render_differences(&self.differences, page);
        if !self.differences.is_empty() {
            let hint = "restore the files, or accept them with `skillbox lock NAME`";
            page.labelled(0, Span::new(Tone::Hint, "hint:"), 6, Tone::Plain, hint);
        }
    }

    fn exit_code(&self) -> u8 {
        match self.differences.is_empty() {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}

fn render_differences(differences: &[LockDifference], page: &mut Page) {
    for difference in differences {
        page.verbatim(2, Tone::Warning, &difference.to_string());
    }
}
