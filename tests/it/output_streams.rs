//! What reaches a terminal, a pipe and a reader that goes away.

use std::io::Read;
use std::process::Stdio;

use crate::program::World;

const ESCAPE: char = '\u{1b}';

#[test]
fn a_pipe_gets_no_escape_codes_and_a_terminal_gets_colour() {
    let mut world = World::new();
    world
        .skill("skills/x", "One.")
        .write("skills/broken/SKILL.md", "no frontmatter");
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
        let ran = world.run(line);
        assert!(!ran.whole().contains(ESCAPE), "{line}: {}", ran.whole());
    }
    // The control: where colour is wanted, there is some.
    world.set("CLICOLOR_FORCE", "1");
    assert!(world.run("list").stdout.contains(ESCAPE));
    assert!(world.run("info nothing").stderr.contains(ESCAPE));
    world.set("NO_COLOR", "1").set("CLICOLOR_FORCE", "0");
    assert!(!world.run("list").whole().contains(ESCAPE));
}

/// Text that would clear the screen, rename the window or reorder the line.
const HOSTILE: &str = "\\e[2J\\e]0;owned\\a \\u202Efdp\\u202C \\x9B31m";

fn hostile_world() -> World {
    let world = World::new();
    world.write(
        "skills/evil/SKILL.md",
        format!("---\nname: evil\ndescription: \"x {HOSTILE}\"\nlicense: \"{HOSTILE}\"\n---\n"),
    );
    world.write("skills/evil/scripts/\u{1b}[31m\u{202e}.sh", "");
    world.write(
        "skills/\u{1b}[2Jdir/SKILL.md",
        "---\nname: \"a\u{202e}b\"\ndescription: \"x\"\n---\n",
    );
    world.write("skills/bad/SKILL.md", "---\nname: \"a\\e[2Jb\"\ndescription: x\n---\n");
    world
}

#[test]
fn hostile_text_is_shown_never_sent() {
    let world = hostile_world();
    let acts =
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
        let ran = world.run(line);
        assert!(!ran.whole().contains(acts), "{line}: {:?}", ran.whole());
    }
    // The control: the text is there, as escapes.
    let list = world.run("list");
    assert!(
        list.stdout.contains("\\u{1b}[2J") && list.stdout.contains("\\u{202e}fdp"),
        "{}",
        list.stdout
    );
    let json = world.run("info evil --json").json();
    assert!(
        json["description"].as_str().unwrap().contains("\u{1b}[2J"),
        "JSON carries the exact text"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::new();
    for number in 0..3000 {
        world.skill(
            &format!("skills/skill-{number}"),
            "One of very many, so that the pipe fills up before the end.",
        );
    }
    let mut child = world
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
    let world = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = world.command(&["help", "errors"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the answer"));
}

#[test]
fn file_names_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let dir = world
        .work()
        .join("skills")
        .join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("SKILL.md"),
        "---\nname: cafe\ndescription: Latin-1 directory.\n---\n",
    )
    .unwrap();
    std::fs::write(dir.join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
    let list = world.run("list --json").expect_code(0).json();
    assert!(
        list["skills"]
            .as_array()
            .unwrap()
            .iter()
            .any(|skill| skill["name"] == "cafe"),
        "{list}"
    );
    world.run("info cafe --json").expect_code(0).json();
    world.run("info cafe").expect_code(0);
    world.run("validate --lenient --json skills").json();
}
