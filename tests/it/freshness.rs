//! A run never uses an older skill than the one on disk when its request arrived.
//!
//! Editors of every kind change a skill all the time, while clients run it. A client notes which edits are finished
//! before it sends a request; the run must not show an older one.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{HttpServer, program, spawn_tracked};

/// How long the stress lasts; `SKILLBOX_STRESS_SECONDS` changes it.
const STRESS: Duration = Duration::from_secs(8);
const CLIENTS: usize = 8;

/// How a file gets its next version, a number of eight digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    InPlace,
    Rename,
    KeptTime,
    Mapping,
    HardLink,
    NewDirectory,
    Nested,
}

const EDITS: [Edit; 7] = [
    Edit::InPlace,
    Edit::Rename,
    Edit::KeptTime,
    Edit::Mapping,
    Edit::HardLink,
    Edit::NewDirectory,
    Edit::Nested,
];

impl Edit {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The file of the skill `outer` that has the version.
    fn file(self) -> String {
        match self {
            Self::Nested => "inner/data/version".to_owned(),
            _ => format!("data/{}", self.name()),
        }
    }
}

/// Writes through one mapping that it never releases.
struct MappingEditor {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl MappingEditor {
    fn start(file: &Path) -> Self {
        const PROGRAM: &str = "import mmap, sys\n\
            with open(sys.argv[1], 'r+b') as f:\n\
            \x20   m = mmap.mmap(f.fileno(), 0)\n\
            for line in sys.stdin:\n\
            \x20   m[0:8] = line.strip().encode()\n\
            \x20   print('done', flush=True)\n";
        let mut command = program("python3");
        command.args(["-c", PROGRAM]).arg(file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = spawn_tracked(&mut command);
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self {
            process,
            input,
            output: BufReader::new(output),
        }
    }

    fn write(&mut self, version: &str) {
        writeln!(self.input, "{version}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for MappingEditor {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn version_text(version: u64) -> String {
    format!("{version:08}")
}

/// Creates the skill `outer` with the nested skill `inner`, all files at version 0.
fn create_skills(root: &Path) {
    let outer = root.join("skills/outer");
    fs::create_dir_all(outer.join("data")).unwrap();
    fs::create_dir_all(outer.join("inner/data")).unwrap();
    for (directory, name) in [(&outer, "outer"), (&outer.join("inner"), "inner")] {
        let text = format!("---\nname: {name}\ndescription: A skill of the tests.\n---\n");
        fs::write(directory.join("SKILL.md"), text).unwrap();
    }
    for edit in EDITS {
        if edit != Edit::NewDirectory {
            fs::write(outer.join(edit.file()), version_text(0)).unwrap();
        }
    }
    fs::create_dir_all(outer.join("data/new/00000000")).unwrap();
    fs::write(outer.join("data/new/00000000/version"), version_text(0)).unwrap();
    fs::hard_link(outer.join(Edit::HardLink.file()), root.join("outside")).unwrap();
}

/// Applies edits of one kind until `stop`, and publishes each finished version.
fn edit_repeatedly(root: &Path, edit: Edit, finished: &AtomicU64, stop: &AtomicBool) -> u64 {
    let outer = root.join("skills/outer");
    let file = outer.join(edit.file());
    let mut mapping = (edit == Edit::Mapping).then(|| MappingEditor::start(&file));
    let write_in_place = |path: PathBuf, text: &str| {
        let open = OpenOptions::new().write(true).open(path).unwrap();
        open.write_all_at(text.as_bytes(), 0).unwrap();
    };
    let mut version = 0;
    while !stop.load(Ordering::SeqCst) {
        version += 1;
        let text = version_text(version);
        match edit {
            Edit::InPlace | Edit::Nested => write_in_place(file.clone(), &text),
            Edit::HardLink => write_in_place(root.join("outside"), &text),
            Edit::Mapping => mapping.as_mut().unwrap().write(&text),
            Edit::Rename => {
                fs::write(root.join("renamed"), &text).unwrap();
                fs::rename(root.join("renamed"), &file).unwrap();
            }
            Edit::KeptTime => {
                let open = OpenOptions::new().write(true).open(&file).unwrap();
                open.write_all_at(text.as_bytes(), 0).unwrap();
                open.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000))
                    .unwrap();
            }
            Edit::NewDirectory => {
                let new = outer.join("data/new").join(&text);
                fs::create_dir(&new).unwrap();
                fs::write(new.join("version"), &text).unwrap();
                if let Some(old) = version.checked_sub(10) {
                    drop(fs::remove_dir_all(outer.join("data/new").join(version_text(old))));
                }
            }
        }
        finished.store(version, Ordering::SeqCst);
        // Some edits follow each other at once, others leave time for a snapshot to be reused.
        std::thread::sleep(Duration::from_millis(version % 7 * 10));
    }
    version
}

/// The versions that one run sees, in the order of [`EDITS`].
fn run_versions(server: &HttpServer) -> Vec<u64> {
    let files = EDITS.map(|edit| match edit {
        // The newest directory may not have its file yet, or an empty one: then its edit is not finished.
        Edit::NewDirectory => "$(find data/new -name version -size +0 | sort | tail -1)".to_owned(),
        edit => edit.file(),
    });
    let command = files.map(|file| format!("cat {file}; echo")).join("; ");
    let request = json!({"skill": "outer", "command": command});
    let report = server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
        .expect_status(200);
    let text = report["stdout"]
        .as_str()
        .unwrap_or_else(|| panic!("{report}"))
        .to_owned();
    let versions: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(versions.len(), EDITS.len(), "{report}");
    versions
}

/// The version that a run of the nested skill sees.
fn run_nested(server: &HttpServer) -> u64 {
    let request = json!({"skill": "inner", "command": "cat data/version"});
    let report = server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
        .expect_status(200);
    report["stdout"]
        .as_str()
        .unwrap()
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{report}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the length of the stress is a setting of the tests"
)]
fn stress_duration() -> Duration {
    let seconds = std::env::var("SKILLBOX_STRESS_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    seconds.map_or(STRESS, Duration::from_secs)
}

#[test]
fn no_run_is_older_than_an_edit_that_finished_before_its_request() {
    let root = tempfile::tempdir().unwrap();
    create_skills(root.path());
    let skills = root.path().join("skills");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap(), "--max-runs", "8"], &[]);
    let finished: [AtomicU64; EDITS.len()] = Default::default();
    let (stop, runs) = (AtomicBool::new(false), AtomicU64::new(0));
    let deadline = Instant::now() + stress_duration();
    let edits: Vec<u64> = std::thread::scope(|scope| {
        let editors = EDITS.iter().zip(&finished).map(|(edit, finished)| {
            let (root, stop) = (root.path(), &stop);
            scope.spawn(move || edit_repeatedly(root, *edit, finished, stop))
        });
        let editors: Vec<_> = editors.collect();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (server, finished, runs) = (&server, &finished, &runs);
                scope.spawn(move || {
                    while Instant::now() < deadline {
                        let before: Vec<u64> = finished.iter().map(|version| version.load(Ordering::SeqCst)).collect();
                        if client % 4 == 3 {
                            let seen = run_nested(server);
                            assert!(
                                seen >= before[EDITS.len() - 1],
                                "inner: {seen} < {}",
                                before[EDITS.len() - 1]
                            );
                        } else {
                            for ((edit, before), seen) in EDITS.iter().zip(before).zip(run_versions(server)) {
                                assert!(seen >= before, "{edit:?}: a run shows version {seen} after {before}");
                            }
                        }
                        runs.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        stop.store(true, Ordering::SeqCst);
        let edits = editors.into_iter().map(|editor| editor.join().unwrap()).collect();
        for result in results {
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        edits
    });
    println!(
        "{} runs during {edits:?} edits of {EDITS:?}",
        runs.load(Ordering::SeqCst)
    );
    assert!(runs.load(Ordering::SeqCst) >= CLIENTS as u64);
}

#[test]
fn the_description_of_a_skill_and_its_run_agree() {
    let root = tempfile::tempdir().unwrap();
    create_skills(root.path());
    let skills = root.path().join("skills");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap()], &[]);
    let skill_md = skills.join("outer/SKILL.md");
    for version in 0..20 {
        let text = format!("---\nname: outer\ndescription: Version {version:02}.\n---\n");
        // In place, so that every second edit keeps size and modification time.
        let file = OpenOptions::new().write(true).open(&skill_md).unwrap();
        file.set_len(text.len() as u64).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
        drop::<File>(file);
        let info = server.request("GET", "/v1/skills/outer", &[], b"").expect_status(200);
        let request = json!({"skill": "outer", "command": "cat SKILL.md"});
        let report = server
            .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
            .expect_status(200);
        assert_eq!(info["description"], format!("Version {version:02}."));
        assert_eq!(report["stdout"], text);
        assert_eq!(info["digest"], report["skill_digest"]);
    }
    // A skill that appears, and one that disappears.
    let new = skills.join("late");
    fs::create_dir(&new).unwrap();
    fs::write(new.join("SKILL.md"), "---\nname: late\ndescription: Late.\n---\n").unwrap();
    let request = json!({"skill": "late", "command": "true"});
    server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
        .expect_status(200);
    fs::remove_dir_all(&new).unwrap();
    server
        .request_json("", "POST", "/v1/runs?wait=60", Some(&request))
        .expect_status(404);
}
