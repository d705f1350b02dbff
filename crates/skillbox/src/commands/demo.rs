//! `skillbox demo`: a guided tour on the built-in skills, made of the commands' own answers.
//!
//! Every step does the real thing, on skills unpacked into a temporary directory; a step that does not find what it
//! should fails the demo.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_repository::{BUILT_IN, Catalog, Repository, ScanOptions, Scope, Source, strict};
use skillbox_sandbox::SpawnerOptions;

use super::demo_disclose::Layer;
use super::info::Info;
use super::list::Listing;
use super::search::Hits;
use super::unpack::unpack;
use super::{Answer, Context, lenient};
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Progress, Span, Terminal, Tone};

/// Take a guided tour, no set-up needed
#[derive(Args, Debug)]
#[command(after_help = crate::examples!("skillbox demo", "skillbox demo | less"))]
pub struct DemoArgs {}

/// Skills as people write them: slips that a reader can mend, and one that it cannot.
const SLIPS: &[(&str, &str)] = &[
    (
        "odd-skill",
        "---\nname: Odd_Skill\ndescription: Use when: somebody forgets the quotes\n---\n\n# Odd\n",
    ),
    (
        "broken-skill",
        "---\nname: broken-skill\ndescription: [never closed\n---\n",
    ),
];

pub fn run(context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    // The spawner is forked off before anything else exists.
    let spawner = engine::spawner(SpawnerOptions::default());
    let mut tour = Tour {
        terminal,
        as_json: context.as_json,
        steps: Vec::new(),
    };
    tour.welcome()?;
    let built_in = catalog_of(Source::Embedded(&BUILT_IN));
    let place = tempfile::tempdir().map_err(|error| storage("a temporary directory", &error))?;
    let skills = place.path().join("skills");
    tour.terminal.stand_in(place.path());

    tour.find(&built_in)?;
    tour.look_at_one(&built_in)?;
    tour.search(&built_in)?;
    let paths = unpack(&built_in, &skills)?;
    tour.validate(&paths)?;
    tour.explain_mistakes(&skills, built_in.len())?;
    tour.disclose(engine::of_built_in(None, place.path())?, &built_in)?;
    let sandboxed = spawner.and_then(|spawner| tour.run_sandboxed(spawner, place.path()));
    sandboxed.or_else(|failure| tour.without_a_sandbox(failure))?;
    tour.end()
}

/// The tour, and the streams it is told on.
pub(super) struct Tour<'a> {
    terminal: &'a mut Terminal,
    as_json: bool,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    title: &'static str,
    command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<Layer>,
}

#[derive(Serialize)]
struct Told<'a> {
    ok: bool,
    steps: &'a [Step],
}

impl Tour<'_> {
    fn welcome(&mut self) -> Result<(), Failure> {
        self.tell(|page| {
            page.line(&[
                Span::new(Tone::Heading, "skillbox demo"),
                Span::new(Tone::Dim, " · a guided tour in eight steps"),
            ]);
            page.paragraph(
                0,
                Tone::Dim,
                "Everything below is real output. Nothing outside a temporary directory is touched.",
            );
        })
    }

    fn find(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let listing = Listing::of(catalog, false, &Progress::default());
        self.step(
            "Find skills",
            "skillbox list",
            "A skill is a directory with a SKILL.md. These are built into the program; your own are found in ./skills, \
             ~/.agents/skills and other customary places. Only the head of each file is read.",
        )?;
        self.tell(|page| listing.render(page))
    }

    fn look_at_one(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let name = "csv-report";
        let info = Info::read(catalog, name)?;
        let why = "Its scripts and documents, and a digest of the whole tree: the same on every machine, so that what \
                   was approved can be told from what changed.";
        self.step("Look at one", &format!("skillbox info {name}"), why)?;
        self.tell(|page| info.render(page))
    }

    fn search(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        let hits = Hits::of(catalog, "chart", 3);
        self.step(
            "Search",
            "skillbox search chart",
            "Names count most, then descriptions, then the instructions.",
        )?;
        self.tell(|page| hits.render(page))
    }

    fn validate(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        let why = "The specification's rules with the reference tool's verdicts, texts and exit codes.";
        self.step("Check against the specification", "skillbox validate skills/*", why)?;
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let errors = strict::validate(path);
            if !errors.is_empty() {
                return Err(Failure::new(
                    ErrorCode::Internal,
                    format!("the built-in skill {name}: {}", errors.join("; ")),
                ));
            }
            self.tell(|page| {
                page.line(&[
                    Span::new(Tone::Good, "  Valid skill: "),
                    Span::plain(format!("skills/{name}")),
                ])
            })?;
        }
        Ok(())
    }

    fn explain_mistakes(&mut self, skills: &Path, good: usize) -> Result<(), Failure> {
        let why = "Two more skills, written with slips. Reading is lenient: what can be understood is loaded, and every \
                   oddity is told with its place and a hint.";
        self.step("See mistakes explained", "skillbox validate --lenient skills", why)?;
        for (name, text) in SLIPS {
            let dir = skills.join(name);
            let written = std::fs::create_dir(&dir).and_then(|()| std::fs::write(dir.join("SKILL.md"), text));
            written.map_err(|error| storage(&dir.display().to_string(), &error))?;
        }
        let examined = lenient::examine(skills);
        let loaded = catalog_of(Source::Directory {
            path: skills.to_owned(),
            scope: Scope::Project,
        })
        .len();
        if loaded != good + 1 {
            let message = format!("{loaded} skills were loaded beside a broken one, not {}", good + 1);
            return Err(Failure::new(ErrorCode::Internal, message));
        }
        self.tell(|page| {
            examined.render_findings(page);
            page.gap();
            let verdict = format!(
                "{loaded} of {} skills are loaded: a broken one never hides the others.",
                good + SLIPS.len()
            );
            page.paragraph(0, Tone::Plain, &verdict);
        })
    }

    /// The last step showed these.
    pub(super) fn keep_layers(&mut self, layers: Vec<Layer>) {
        if let Some(step) = self.steps.last_mut() {
            step.layers = layers;
        }
    }

    /// Where this host cannot isolate a script, none is run: that is the point. Anything else is a failure.
    fn without_a_sandbox(&mut self, failure: Failure) -> Result<(), Failure> {
        if !matches!(
            failure.code(),
            ErrorCode::IsolationUnavailable | ErrorCode::ExecutorUnavailable
        ) {
            return Err(failure);
        }
        self.tell(|page| {
            page.gap();
            page.paragraph(2, Tone::Warning, "This host cannot isolate a script, so none is run.");
            page.paragraph(2, Tone::Plain, failure.message());
            page.paragraph(2, Tone::Hint, "`skillbox doctor` tells the cause and the fix");
        })
    }

    fn end(&mut self) -> Result<u8, Failure> {
        if self.as_json {
            self.terminal.json(&Told {
                ok: true,
                steps: &self.steps,
            })?;
        }
        self.tell(|page| {
            page.line(&[]);
            page.line(&[Span::new(Tone::Heading, "Where to go from here")]);
            for (command, about) in [
                (
                    "skillbox create my-skill",
                    "a skill of your own that validates and runs",
                ),
                ("skillbox list", "what there is around you"),
                ("skillbox doctor", "what this host can enforce"),
                ("skillbox --help", "everything else"),
            ] {
                page.beside(2, Span::new(Tone::Hint, command), 30, Tone::Plain, about);
            }
        })?;
        Ok(ExitCode::OK)
    }

    /// Announces a step: its number, what it is about, and the command that does the same.
    pub(super) fn step(&mut self, title: &'static str, command: &str, why: &str) -> Result<(), Failure> {
        self.steps.push(Step {
            title,
            command: command.to_owned(),
            layers: Vec::new(),
        });
        let number = self.steps.len();
        self.tell(|page| {
            page.line(&[]);
            page.line(&[Span::new(Tone::Heading, format!("{number}. {title}"))]);
            page.paragraph(3, Tone::Dim, why);
            page.line(&[]);
            for line in command.lines() {
                let prompt = if line.starts_with(' ') { "  " } else { "$ " };
                page.line(&[Span::new(Tone::Dim, prompt), Span::new(Tone::Hint, line)]);
            }
        })
    }

    /// Tells people at once; programs get the whole at the end.
    pub(super) fn tell(&mut self, write: impl FnOnce(&mut Page)) -> Result<(), Failure> {
        if self.as_json {
            return Ok(());
        }
        let mut page = self.terminal.page();
        write(&mut page);
        Ok(self.terminal.show(page)?)
    }
}

fn catalog_of(source: Source) -> Catalog {
    Repository::open(vec![source], ScanOptions::default()).catalog()
}

fn storage(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ErrorCode::Storage, format!("cannot write {what}: {error}"))
}
