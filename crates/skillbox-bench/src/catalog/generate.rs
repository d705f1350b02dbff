//! Generates skills that resemble real ones and are the same on every machine.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The number of collections: directories that contain many skills each, as real ones do.
const COLLECTIONS: usize = 40;

const NOUNS: &[&str] = &[
    "report",
    "invoice",
    "dataset",
    "chart",
    "contract",
    "release",
    "ticket",
    "schema",
    "notebook",
    "slide",
    "archive",
    "log",
    "query",
    "budget",
    "survey",
    "meeting",
    "design",
    "translation",
    "podcast",
    "deployment",
];
const VERBS: &[&str] = &[
    "summarise",
    "review",
    "extract",
    "convert",
    "validate",
    "draft",
    "compare",
    "triage",
    "plan",
    "audit",
    "merge",
    "annotate",
];
const WORDS: &[&str] = &[
    "the",
    "file",
    "before",
    "you",
    "run",
    "script",
    "check",
    "that",
    "column",
    "names",
    "match",
    "and",
    "keep",
    "every",
    "row",
    "which",
    "user",
    "asked",
    "for",
    "when",
    "output",
    "is",
    "written",
    "to",
    "directory",
    "use",
    "table",
    "values",
    "with",
    "each",
    "step",
    "of",
    "workflow",
    "if",
    "something",
    "fails",
    "say",
    "what",
    "happened",
    "stop",
];

/// A seeded random number generator (splitmix64). The seed makes the files the same in every measurement.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// Returns true with this probability.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Writes `count` skills below `root` and returns the sorted paths of their SKILL.md files.
pub(crate) fn write_skills(root: &Path, count: usize, seed: u64) -> io::Result<Vec<PathBuf>> {
    let mut random = Random::seeded(seed);
    let mut files = Vec::with_capacity(count);
    for index in 0..count {
        let verb = random.one_of(VERBS);
        let noun = random.one_of(NOUNS);
        let name = format!("{verb}-{noun}-{index:05}");
        let dir = collection_path(root, index % COLLECTIONS).join(&name);
        fs::create_dir_all(&dir)?;
        let file = dir.join("SKILL.md");
        fs::write(&file, skill_md(&mut random, &name, verb, noun))?;
        write_resources(&mut random, &dir)?;
        files.push(file);
    }
    files.sort();
    Ok(files)
}

/// The directories of the collections.
pub(crate) fn collections(root: &Path) -> impl Iterator<Item = PathBuf> {
    (0..COLLECTIONS).map(|index| collection_path(root, index))
}

fn collection_path(root: &Path, index: usize) -> PathBuf {
    root.join(format!("collection-{index:02}"))
}

fn skill_md(random: &mut Random, name: &str, verb: &str, noun: &str) -> String {
    let body_bytes = 2 * 1024 + random.below(38 * 1024);
    let mut text = String::with_capacity(body_bytes + 1024);
    let _ = writeln!(text, "---\nname: {name}");
    let description_words = 12 + random.below(40);
    let description = sentence(random, description_words);
    // Plain, quoted and folded YAML scalars are all common in descriptions.
    let _ = match random.below(3) {
        0 => writeln!(text, "description: Use this skill to {verb} a {noun}. {description}"),
        1 => writeln!(
            text,
            "description: \"Use when the user wants to {verb} a {noun}: {description}\""
        ),
        _ => writeln!(text, "description: >-\n  Helps to {verb} a {noun}.\n  {description}"),
    };
    if random.chance(60) {
        text.push_str("license: Apache-2.0\n");
    }
    if random.chance(20) {
        text.push_str("compatibility: Needs python3 and a POSIX shell\n");
    }
    if random.chance(35) {
        let _ = writeln!(
            text,
            "metadata:\n  author: team-{}\n  version: \"1.{}\"",
            random.below(90),
            random.below(9)
        );
    }
    if random.chance(30) {
        text.push_str("allowed-tools: Bash(git:*) Read Write\n");
    }
    text.push_str("---\n");
    let end = text.len() + body_bytes;
    let _ = writeln!(text, "\n# {name}\n");
    while text.len() < end {
        let words = 8 + random.below(14);
        let _ = match random.below(9) {
            0 => writeln!(text, "\n## {}\n", sentence(random, 3)),
            1 | 2 => writeln!(text, "- {}", sentence(random, words)),
            3 => writeln!(
                text,
                "```bash\npython3 scripts/run.py --{} out/{noun}.json\n```",
                random.one_of(WORDS)
            ),
            _ => writeln!(text, "{}", sentence(random, words)),
        };
    }
    text
}

fn sentence(random: &mut Random, words: usize) -> String {
    let mut text = random.one_of(WORDS).to_owned();
    for _ in 1..words {
        text.push(' ');
        text.push_str(random.one_of(WORDS));
    }
    text
}

fn write_resources(random: &mut Random, dir: &Path) -> io::Result<()> {
    for (percent, directory, file) in [
        (35, "scripts", "run.py"),
        (30, "references", "guide.md"),
        (15, "assets", "a.txt"),
    ] {
        if random.chance(percent) {
            fs::create_dir(dir.join(directory))?;
            fs::write(dir.join(directory).join(file), sentence(random, 60))?;
        }
    }
    Ok(())
}
