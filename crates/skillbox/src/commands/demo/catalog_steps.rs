//! The steps of the tour that read skills: list, info, search and validate.

use std::path::{Path, PathBuf};

use skillbox_model::ErrorCode;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source, strict};

use super::tour::{Tour, storage_failure};
use crate::commands::info::SkillInfo;
use crate::commands::list::SkillList;
use crate::commands::output::CommandOutput;
use crate::commands::search::SearchResult;
use crate::commands::validate_lenient;
use crate::failure::Failure;
use crate::render::{Progress, Span, Tone};

/// Skills with typical mistakes: one that lenient loading repairs, and one that it cannot load.
const FLAWED_SKILLS: &[(&str, &str)] = &[
    (
        "odd-skill",
        "---\nname: Odd_Skill\ndescription: Use when: somebody forgets the quotes\n---\n\n# Odd\n",
    ),
    (
        "broken-skill",
        "---\nname: broken-skill\ndescription: [never closed\n---\n",
    ),
];

impl Tour<'_> {
    pub(super) fn list_skills(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let list = SkillList::of(catalog, false, &Progress::default());
        self.start_step(
            "Find skills",
            "skillbox list",
            "A skill is a directory with a SKILL.md. These are built in; your own are found in ./skills, ~/.agents/skills \
             and the other default directories. Only the frontmatter of each file is read.",
        )?;
        self.print(|page| list.render(page))
    }

    pub(super) fn show_one_skill(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let name = "csv-report";
        let info = SkillInfo::read(catalog, name)?;
        let purpose = "Scripts, documents and a digest of the whole tree. The digest is the same on every machine, so any \
                   change since an approval is detected.";
        self.start_step("Inspect one skill", &format!("skillbox info {name}"), purpose)?;
        self.print(|page| info.render(page))
    }

    pub(super) fn search_skills(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let hits = SearchResult::of(catalog, "chart", 3);
        self.start_step(
            "Search",
            "skillbox search chart",
            "Matches in names rank first, then descriptions, then instructions.",
        )?;
        self.print(|page| hits.render(page))
    }

    pub(super) fn validate_skills(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        let purpose = "The rules of the specification, with the messages and exit codes of the reference tool.";
        self.start_step(
            "Validate against the specification",
            "skillbox validate skills/*",
            purpose,
        )?;
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let errors = strict::validate(path);
            if !errors.is_empty() {
                return Err(Failure::new(
                    ErrorCode::Internal,
                    format!("the built-in skill {name} is invalid: {}", errors.join("; ")),
                ));
            }
            self.print(|page| {
                page.line(&[
                    Span::new(Tone::Good, "  Valid skill: "),
                    Span::plain(format!("skills/{name}")),
                ])
            })?;
        }
        Ok(())
    }

    pub(super) fn explain_mistakes(&mut self, skills: &Path, valid_count: usize) -> Result<(), Failure> {
        let purpose = "Two more skills contain mistakes. Loading is lenient: skillbox loads what it can parse, and reports \
                   every problem with its position and a hint.";
        self.start_step("Explain mistakes", "skillbox validate --lenient skills", purpose)?;
        for (name, text) in FLAWED_SKILLS {
            let dir = skills.join(name);
            let written = std::fs::create_dir(&dir).and_then(|()| std::fs::write(dir.join("SKILL.md"), text));
            written.map_err(|error| storage_failure(&dir.display().to_string(), &error))?;
        }
        let report = validate_lenient::check_path(skills);
        let loaded = open_catalog(Source::Directory {
            path: skills.to_owned(),
            scope: Scope::Project,
        })
        .len();
        if loaded != valid_count + 1 {
            let message = format!(
                "loaded {loaded} skills next to a broken one, expected {}",
                valid_count + 1
            );
            return Err(Failure::new(ErrorCode::Internal, message));
        }
        self.print(|page| {
            report.render_diagnostics(page);
            page.blank_line();
            let summary = format!(
                "Loaded {loaded} of {} skills: a broken skill never hides the others.",
                valid_count + FLAWED_SKILLS.len()
            );
            page.paragraph(0, Tone::Plain, &summary);
        })
    }
}

/// The catalog of one source.
pub(super) fn open_catalog(source: Source) -> Catalog {
    Repository::open(vec![source], ScanOptions::default()).catalog()
}
