//! The output on a terminal, in a pipe, and for a reader that closes the pipe.

use std::io::Read;
use std::process::Stdio;

use crate::cli::Cli;

const ESCAPE: char = '\u{1b}';

#[test]
fn escape_codes_are_written_only_where_colour_is_wanted() {
    let mut cli = Cli::new();
    cli.add_skill("skills/x", "One.")
        .write_file("skills/broken/SKILL.md", "no frontmatter");
    for line in [
        "list",
        "info x",
        "search x",
        "--help",
        "list --help",
        "help errors",
        "info nothing",
        "validate --lenient skills",
    ] {
        let output = cli.run(line);
        assert!(!output.transcript().contains(ESCAPE), "{line}: {}", output.transcript());
    }
    // The control: escape codes are written where colour is forced.
    cli.set_variable("CLICOLOR_FORCE", "1");
    assert!(cli.run("list").stdout.contains(ESCAPE));
    assert!(cli.run("info nothing").stderr.contains(ESCAPE));
    cli.set_variable("NO_COLOR", "1").set_variable("CLICOLOR_FORCE", "0");
    assert!(!cli.run("list").transcript().contains(ESCAPE));
}

/// Text that would clear the screen, rename the window or reorder the line.
const HOSTILE: &str = "\\e[2J\\e]0;owned\\a \\u202Efdp\\u202C \\x9B31m";

fn cli_with_hostile_skills() -> Cli {
    let cli = Cli::new();
    cli.write_file(
        "skills/evil/SKILL.md",
        format!("---\nname: evil\ndescription: \"x {HOSTILE}\"\nlicense: \"{HOSTILE}\"\n---\n"),
    );
    cli.write_file("skills/evil/scripts/\u{1b}[31m\u{202e}.sh", "");
    cli.write_file(
        "skills/\u{1b}[2Jdir/SKILL.md",
        "---\nname: \"a\u{202e}b\"\ndescription: \"x\"\n---\n",
    );
    cli.write_file("skills/bad/SKILL.md", "---\nname: \"a\\e[2Jb\"\ndescription: x\n---\n");
    cli
}

#[test]
fn hostile_text_is_printed_escaped() {
    let cli = cli_with_hostile_skills();
    let is_active =
        |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    for line in [
        "list",
        "list --json",
        "info evil",
        "info evil --json",
        "search x",
        "search x --json",
        "validate --lenient skills",
        "validate --lenient --json skills",
        "info \u{1b}[2J",
        "validate \u{1b}[2J",
        "list --skills \u{1b}[2J",
    ] {
        let output = cli.run(line);
        assert!(
            !output.transcript().contains(is_active),
            "{line}: {:?}",
            output.transcript()
        );
    }
    // The control: the text is printed, with escapes.
    let list = cli.run("list");
    assert!(
        list.stdout.contains("\\u{1b}[2J") && list.stdout.contains("\\u{202e}fdp"),
        "{}",
        list.stdout
    );
    let json = cli.run("info evil --json").json();
    assert!(
        json["description"].as_str().unwrap().contains("\u{1b}[2J"),
        "JSON contains the exact text"
    );
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let cli = Cli::new();
    for number in 0..3000 {
        cli.add_skill(
            &format!("skills/skill-{number}"),
            "One of very many, so that the pipe fills up before the end.",
        );
    }
    let mut child = cli
        .command(&["list", "--skills", "skills"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 64]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), "")
    );
}

#[test]
fn a_full_disk_is_a_failure() {
    let cli = Cli::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = cli.command(&["help", "errors"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the output"));
}

#[test]
fn file_names_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let cli = Cli::new();
    let dir = cli
        .work_dir()
        .join("skills")
        .join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("SKILL.md"),
        "---\nname: cafe\ndescription: Latin-1 directory.\n---\n",
    )
    .unwrap();
    std::fs::write(dir.join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
    let list = cli.run("list --json").expect_code(0).json();
    assert!(
        list["skills"]
            .as_array()
            .unwrap()
            .iter()
            .any(|skill| skill["name"] == "cafe"),
        "{list}"
    );
    cli.run("info cafe --json").expect_code(0).json();
    cli.run("info cafe").expect_code(0);
    cli.run("validate --lenient --json skills").json();
}
