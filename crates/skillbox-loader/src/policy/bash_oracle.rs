//! Compares the command-line parser with bash itself.
//!
//! Bash runs every command line that the parser accepts, with two programs on the path that record how they were called.
//! The parser must have predicted every call, and bash must not write any file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use super::command_line::{SimpleCommand, split_commands};

/// Programs, blanks, operators, quotes and everything else that is special to bash. No slash, so that no path outside
/// the directory can be named.
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

/// Records its name and arguments in one write, so that concurrent calls do not mix.
const RECORDER_SCRIPT: &str = r#"#!/bin/sh
call=$(printf '%s\037' "${0##*/}" "$@")
printf '%s\036' "$call" >> "$LOG"
"#;

struct BashFixture {
    directory: TempDir,
}

impl BashFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).unwrap();
        for name in ["aa", "bb"] {
            let path = programs.join(name);
            fs::write(&path, RECORDER_SCRIPT).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { directory }
    }

    /// Runs a command in bash and returns the recorded calls and the number of created files.
    #[expect(
        clippy::disallowed_methods,
        reason = "bash is the oracle of this test, and starts nothing but its two programs"
    )]
    fn run(&self, command: &str) -> (Vec<Vec<String>>, usize) {
        let work = tempfile::tempdir_in(&self.directory).unwrap();
        // Each run has its own log, so that programs still in the background do not write to a later one.
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
        (calls.collect(), count_files(work.path()))
    }
}

fn count_files(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Whether one of the commands is this call. Of a command with expansions, only the program is compared.
fn is_predicted(commands: &[SimpleCommand], call: &[String]) -> bool {
    commands.iter().any(|command| {
        let is_literal = command.words.iter().all(|word| word.is_literal);
        if is_literal {
            command.words.iter().map(|word| &word.text).eq(call)
        } else {
            call.first() == command.words.first().map(|word| &word.text)
        }
    })
}

#[test]
fn s21_bash_starts_only_predicted_commands() {
    let bash = BashFixture::new();
    let (calls, files) = bash.run("aa 'x y'; bb > f");
    assert_eq!(
        (calls, files),
        (vec![vec!["aa".to_owned(), "x y".to_owned()], vec!["bb".to_owned()]], 1),
        "control: the recorder sees calls and files"
    );

    let piece = proptest::sample::select(PIECES);
    let command = proptest::collection::vec(piece, 1..9).prop_map(|pieces| format!("aa {}", pieces.concat()));
    let accepted = command.prop_filter_map("refused", |command| {
        split_commands(&command).ok().map(|commands| (command, commands))
    });
    let config = Config {
        cases: 200,
        max_local_rejects: 1_000_000,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&accepted, |(command, commands)| {
        let (calls, files) = bash.run(&command);
        prop_assert_eq!(files, 0, "{:?} wrote a file", command);
        for call in calls {
            prop_assert!(is_predicted(&commands, &call), "{:?} started {:?}", command, call);
        }
        Ok(())
    });
    run.unwrap();
}
