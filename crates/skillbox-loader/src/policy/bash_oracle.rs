//! Holds the reader of command lines against bash itself.
//!
//! Whatever the reader accepts is given to bash, with two programs on the path that write down how they were
//! called. Every call must be one that the reader foresaw, and nothing may be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use super::shell::{Segment, split};

/// Programs, blanks, operators, quotes and everything that bash might make something of. No slash: nothing
/// outside of the directory can be named.
const PIECES: &[&str] = &[
    "aa",
    "bb",
    "aa x",
    " ",
    " ",
    " ",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "'",
    "\"",
    "\\",
    "$",
    "$X",
    "${X}",
    "${X:-bb}",
    "$(bb)",
    "`bb`",
    "(",
    ")",
    "{",
    "}",
    ">",
    ">>f",
    "<",
    "<<<",
    "2>&1",
    ">&2",
    ">/dev/null",
    "2>f",
    "#",
    "*",
    "?",
    "[",
    "~",
    "!",
    "=",
    "X=bb",
    "-v",
    "\t",
    "if",
    "eval",
    "|&",
    ";;",
    "$'",
    "\\\n",
    "()",
    "{aa,bb}",
    "coproc",
    "[[",
    "((",
    "<(bb)",
    "+=",
    "-",
    "1",
];

/// Writes down its name and arguments. One call is one write, so that calls at once do not mix.
const RECORDER: &str = r#"#!/bin/sh
call=$(printf '%s\037' "${0##*/}" "$@")
printf '%s\036' "$call" >> "$LOG"
"#;

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).unwrap();
        for name in ["aa", "bb"] {
            let path = programs.join(name);
            fs::write(&path, RECORDER).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { directory }
    }

    /// The calls that bash makes, and the files it leaves.
    #[expect(
        clippy::disallowed_methods,
        reason = "bash is the oracle of this test, and starts nothing but its two programs"
    )]
    fn run(&self, command: &str) -> (Vec<Vec<String>>, usize) {
        let work = tempfile::tempdir_in(&self.directory).unwrap();
        // A log of its own: what ran on in the background writes to nobody else's.
        let log = work.path().with_extension("log");
        let output = Command::new("/bin/bash")
            .args(["-c", command])
            .current_dir(&work)
            .env_clear()
            .env("PATH", self.directory.path().join("bin"))
            .env("LOG", &log)
            .stdin(Stdio::null())
            .output();
        output.unwrap();
        let log = fs::read_to_string(log).unwrap_or_default();
        let calls = log
            .split_terminator('\u{1e}')
            .map(|call| call.split_terminator('\u{1f}').map(str::to_owned).collect());
        (calls.collect(), files_in(work.path()))
    }
}

fn files_in(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Whether one of the segments is this call; what the shell may still expand is left open.
fn foreseen(segments: &[Segment], call: &[String]) -> bool {
    segments.iter().any(|segment| {
        let all_exact = segment.words.iter().all(|word| word.exact);
        let same = segment.words.iter().map(|word| &word.text).eq(call);
        if all_exact {
            same
        } else {
            call.first() == segment.words.first().map(|word| &word.text)
        }
    })
}

#[test]
fn s21_bash_starts_only_what_was_foreseen() {
    let bench = Bench::new();
    let (calls, files) = bench.run("aa 'x y'; bb > f");
    assert_eq!(
        (calls, files),
        (vec![vec!["aa".to_owned(), "x y".to_owned()], vec!["bb".to_owned()]], 1),
        "the bench works"
    );

    let piece = proptest::sample::select(PIECES);
    let command = proptest::collection::vec(piece, 1..9).prop_map(|pieces| format!("aa {}", pieces.concat()));
    let accepted = command.prop_filter_map("refused", |command| {
        split(&command).ok().map(|segments| (command, segments))
    });
    let config = Config {
        cases: 200,
        max_local_rejects: 1_000_000,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&accepted, |(command, segments)| {
        let (calls, files) = bench.run(&command);
        prop_assert_eq!(files, 0, "{:?} wrote a file", command);
        for call in calls {
            prop_assert!(foreseen(&segments, &call), "{:?} started {:?}", command, call);
        }
        Ok(())
    });
    run.unwrap();
}
