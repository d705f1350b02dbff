//! 3.14: scripts that turn the writable view of their skill against the skill, its frozen copy, or later runs (S38).

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::harness::{Answer, Fixture, need, ordinary_user, tree_contents};
use crate::workspace::files_below;

/// The files of the skill that every case attacks.
const FILES: [(&str, &str); 5] = [
    ("a.txt", "one\n"),
    ("deep/b.txt", "two\n"),
    ("deep/deeper/c.txt", "three\n"),
    ("scripts/x.py", "print('original')\n"),
    ("big.bin", ""),
];
const BIG_BYTES: usize = 4 << 20;

/// Prints what a later run sees of the skill.
const LOOK: &str = "cat a.txt deep/b.txt deep/deeper/c.txt; python3 -B scripts/x.py; ls -A . deep | tr '\\n' ' '; stat -c %s big.bin; \
                    test -x a.txt || echo -n plain";

/// Runs an attack in a session, and checks that the skill, its frozen copy and the next run are untouched.
fn attack(command: &str) -> Answer {
    let fixture = Fixture::new();
    let source = fixture.add_skill("target", &FILES);
    fs::write(source.join("big.bin"), vec![7; BIG_BYTES]).unwrap();
    let run = |command: &str| {
        let request = json!({"skill": "target", "command": command, "output_files": ["skills/**"], "timeout": 100});
        fixture.request(request).in_session("s").run().expect_report()
    };
    let clean = run(LOOK);
    assert!(clean.stdout().ends_with("4194304\nplain"), "{}", clean.describe());
    let before = (tree_contents(&source), frozen_contents(&fixture));
    assert!(!before.1.is_empty(), "no frozen copy was found");
    let attacked = run(command);
    assert_eq!(attacked["warnings"], json!([]), "{}", attacked.describe());
    let after = (tree_contents(&source), frozen_contents(&fixture));
    assert!(
        after == before,
        "the skill or its frozen copy changed: {}",
        attacked.describe()
    );
    assert_eq!(run(LOOK).stdout(), clean.stdout(), "the next run sees changes");
    attacked
}

/// The frozen copies of all skills: content and mode of each file.
fn frozen_contents(fixture: &Fixture) -> Vec<(std::path::PathBuf, (u32, Vec<u8>))> {
    let snapshots = fixture.path("state/snapshots");
    let contents = tree_contents(&snapshots).into_iter();
    // The marks of use change with each run.
    contents
        .filter(|(path, _)| path.extension().is_none_or(|kind| kind != "use"))
        .collect()
}

fn python(lines: &str) -> String {
    format!("python3 -B - <<'END'\nimport ctypes, errno, mmap, os, shutil, sys\n{lines}\nEND\n")
}

/// Tries an expression and prints `ok`, or the name of the error.
const TRY: &str = "
def attempt(what):
    try:
        result = what()
        print('ok' if result is None else result)
    except OSError as error:
        print(errno.errorcode[error.errno])
";

#[test]
pub fn h190_removed_files_are_no_outputs_and_reappear() {
    let command = format!(
        "rm -r deep a.txt scripts; ls | tr '\\n' ' '; mkdir deep; echo new > deep/b.txt; ls deep\n{}",
        python(&format!(
            "{TRY}
attempt(lambda: os.mknod('scripts', 0o020000, os.makedev(0, 0)))
attempt(lambda: os.mknod('/workspace/work/x', 0o020000, os.makedev(0, 0)))"
        ))
    );
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert!(
        !lines[0].contains("scripts") && !lines[0].contains("a.txt"),
        "{}",
        answer.describe()
    );
    assert!(
        lines[0].ends_with("b.txt") || lines[1] == "b.txt",
        "{}",
        answer.describe()
    );
    let refused = lines.iter().filter(|line| matches!(**line, "EPERM" | "EACCES")).count();
    assert_eq!(refused, 2, "a script made a whiteout of its own: {}", answer.describe());
    assert_eq!(
        answer.output_names(),
        ["skills/target/deep/b.txt"],
        "{}",
        answer.describe()
    );
    assert!(answer.refused_output_names().is_empty(), "{}", answer.describe());
}

#[test]
pub fn h191_marks_of_the_overlay_cannot_be_forged() {
    let names = "['user.overlay.opaque', 'user.overlay.redirect', 'user.overlay.whiteout', 'user.overlay.metacopy', \
                 'trusted.overlay.opaque', 'trusted.overlay.redirect']";
    let command = python(&format!(
        "{TRY}
os.mkdir('made'); os.mkdir('/workspace/work/made')
for place in ['made', 'deep', 'a.txt', '/workspace/work/made']:
    for name in {names}:
        for value in [b'y', b'/../../../etc', b'x']:
            try: os.setxattr(place, name, value)
            except OSError: pass
attempt(lambda: os.rename('/workspace/work/made', 'moved'))
print(sorted(os.listdir('made')), sorted(os.listdir('deep')), open('a.txt').read().strip())
print([name for name in os.listxattr('deep') if name.startswith('trusted')])
"
    ));
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(
        lines[1..],
        ["[] ['b.txt', 'deeper'] one", "[]"],
        "{}",
        answer.describe()
    );
    assert!(answer.output_names().is_empty(), "{}", answer.describe());
}

#[test]
pub fn h192_hard_links_do_not_lead_to_the_frozen_copy() {
    let command = python(&format!(
        "{TRY}
attempt(lambda: os.link('a.txt', 'linked'))
attempt(lambda: open('linked', 'w').write('changed') and None)
os.link('deep/b.txt', 'deep/deeper/linked'); os.chmod('deep/deeper/linked', 0o777)
attempt(lambda: os.link('big.bin', '/workspace/out/linked'))
attempt(lambda: os.link('/etc/passwd', 'linked-passwd'))
print(open('a.txt').read())"
    ));
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(
        (lines[0], lines[1], lines[3], lines[4]),
        ("ok", "ok", "EXDEV", "changed"),
        "{}",
        answer.describe()
    );
    assert!(answer.output_names().is_empty(), "{}", answer.describe());
    let refused = answer.refused_output_names();
    assert!(
        refused.contains(&"skills/target/a.txt".to_owned().as_str()),
        "{}",
        answer.describe()
    );
}

#[test]
pub fn h193_changing_large_files_ends_at_the_limit_of_the_workspace() {
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "10MiB")]);
    let source = fixture.add_skill("large", &[]);
    for number in 0..6 {
        fs::write(source.join(format!("{number}.bin")), vec![7; 3 << 20]).unwrap();
    }
    let before = tree_contents(&source);
    let command =
        "for file in *.bin; do printf x >> $file && echo changed; done; rm -f *.bin; echo y > small && cat small";
    let request = json!({"skill": "large", "command": command, "profile": "small"});
    let answer = fixture.request(request).run().expect_report();
    let changed = answer.stdout().matches("changed").count();
    assert!((1..=3).contains(&changed), "{}", answer.describe());
    assert!(answer.mentions("No space left on device"), "{}", answer.describe());
    // What was removed takes no space, and the skill can be used again.
    assert!(answer.stdout().ends_with("y\n"), "{}", answer.describe());
    assert_eq!(tree_contents(&source), before);
    let again = fixture
        .request(json!({"skill": "large", "command": "stat -c %s *.bin | uniq", "profile": "small"}))
        .run()
        .expect_report();
    assert_eq!(again.stdout(), "3145728\n", "{}", again.describe());
}

/// In containers too, although the skill is on a file system of its own there.
#[test]
pub fn h193_what_a_run_adds_to_its_skill_counts_against_the_workspace() {
    let fixture = Fixture::new();
    fixture.add_profile("small", &[("workspace", "16MiB"), ("file", "64MiB")]);
    fixture.add_skill("growing", &[]);
    let command = "head -c 40000000 /dev/zero > filled; sleep 30";
    let request = json!({"skill": "growing", "command": command, "profile": "small"});
    let answer = fixture.request(request.clone()).run().expect_report();
    // The local workspace refuses the write; a container is checked periodically.
    assert!(
        answer["ended_by"] == "disk" || answer.mentions("No space left on device"),
        "{}",
        answer.describe()
    );
}

#[test]
pub fn h194_many_small_changes_end_at_the_limit_of_inodes() {
    let fixture = Fixture::new();
    fixture.add_profile("few", &[("workspace_inodes", "300")]);
    let files: Vec<(String, String)> = (0..400).map(|number| (format!("f/{number}"), "x".to_owned())).collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let source = fixture.add_skill("many", &files);
    let before = tree_contents(&source);
    let command = "n=0; for file in f/*; do chmod 600 $file 2>/dev/null && n=$((n+1)); done; echo $n; \
                   m=0; for k in $(seq 400); do (: > new-$k) 2>/dev/null && m=$((m+1)); done; echo $m";
    let request = json!({"skill": "many", "command": command, "profile": "few"});
    let answer = fixture.request(request).run().expect_report();
    let counts: Vec<u32> = answer.stdout().lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        counts[0] < 300 && counts[1] < 300 && counts[0] > 0,
        "{}",
        answer.describe()
    );
    assert_eq!(tree_contents(&source), before);
}

#[test]
pub fn h195_a_directory_that_was_replaced_shows_nothing_of_the_old_one() {
    let answer = attack(
        "rm -r deep && mkdir -p deep/deeper && echo new > deep/deeper/n.txt && ls deep deep/deeper && mv deep other && \
         mkdir deep && ls deep && ls other",
    );
    assert_eq!(
        answer.stdout(),
        "deep:\ndeeper\n\ndeep/deeper:\nn.txt\ndeeper\n",
        "{}",
        answer.describe()
    );
    assert_eq!(answer.output_names(), ["skills/target/other/deeper/n.txt"]);
}

#[test]
pub fn h196_handles_do_not_open_the_frozen_copy() {
    let command = python(&format!(
        "{TRY}
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), '')
handle = ctypes.create_string_buffer(b'\\x80\\0\\0\\0\\0\\0\\0\\0' + bytes(128)); mount = ctypes.c_int()
attempt(lambda: call(303, -100, b'a.txt', handle, ctypes.byref(mount), 0))
place = os.open('.', os.O_RDONLY)
attempt(lambda: call(304, place, handle, os.O_RDWR))"
    ));
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert!(
        matches!(lines[1], "EPERM" | "ENOSYS"),
        "a handle was opened: {}",
        answer.describe()
    );
}

#[test]
pub fn h197_renamed_directories_are_those_of_the_view() {
    let command = python(&format!(
        "{TRY}
try:
    os.rename('deep', 'renamed')
except OSError as error:
    assert error.errno == errno.EXDEV, error
    shutil.move('deep', 'renamed')
open('renamed/b.txt', 'a').write('more')
os.rename('a.txt', 'renamed/a.txt')
os.replace('scripts/x.py', 'a.txt')
attempt(lambda: os.rename('renamed', '../elsewhere'))
attempt(lambda: os.rename('/workspace/skills/target', '/workspace/skills/other'))
print(sorted(os.listdir('renamed')), os.path.exists('deep'))"
    ));
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(lines[2], "['a.txt', 'b.txt', 'deeper'] False", "{}", answer.describe());
    assert!(!lines[..2].contains(&"ok"), "{}", answer.describe());
}

#[test]
pub fn h198_writes_through_a_mapping_stay_in_the_view() {
    let command = python(
        "early = open('big.bin', 'rb'); seen = mmap.mmap(early.fileno(), 4096, prot=mmap.PROT_READ)
file = open('big.bin', 'r+b'); shared = mmap.mmap(file.fileno(), 0)
shared[0:5] = b'wrote'; shared.flush()
try:
    mmap.mmap(early.fileno(), 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE)
    print('mapped for writing')
except PermissionError:
    print('refused')
print(open('big.bin', 'rb').read(5))",
    );
    let answer = attack(&command);
    assert_eq!(answer.stdout(), "refused\nb'wrote'\n", "{}", answer.describe());
    assert_eq!(answer.output_names(), ["skills/target/big.bin"]);
}

#[test]
pub fn h199_descriptors_of_the_skill_do_not_write_to_it() {
    let command = python(&format!(
        "{TRY}
kept = os.open('a.txt', os.O_RDONLY); place = os.open('deep', os.O_RDONLY); path = os.open('deep/b.txt', os.O_PATH)
attempt(lambda: os.write(kept, b'x'))
again = os.open(f'/proc/self/fd/{{kept}}', os.O_WRONLY | os.O_TRUNC); os.write(again, b'by proc')
file = os.open('b.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=place); os.write(file, b'by directory')
os.fchmod(kept, 0o777); os.utime(kept, (1, 1)); os.ftruncate(again, 3)
os.setxattr(kept, 'user.mark', b'x')
more = os.open(f'/proc/self/fd/{{path}}', os.O_WRONLY | os.O_APPEND); os.write(more, b'!')
print(open('a.txt').read(), open('deep/b.txt').read())"
    ));
    let answer = attack(&command);
    assert_eq!(answer.stdout(), "EBADF\nby  by directory!\n", "{}", answer.describe());
}

#[test]
pub fn h200_the_layers_of_the_view_are_out_of_reach() {
    let command = python(&format!(
        "{TRY}
print(sorted(os.listdir('/workspace/skills')), sorted(os.listdir('/workspace')))
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), '')
for target in [b'/workspace/skills/target', b'/workspace/skills', b'/workspace']:
    attempt(lambda: call('umount2', target, 2))
attempt(lambda: call('mount', b'none', b'/workspace/skills/target', None, 32, None))
attempt(lambda: os.mkdir('/workspace/skills/.overlay-work'))
attempt(lambda: os.rename('/workspace/skills', '/workspace/work/skills'))
lines = [line.split(' - ') for line in open('/proc/self/mountinfo')]
line = [line for line in lines if line[1].startswith('overlay ') and ' /workspace/' in line[0]]
print(len(line), '/var/' in line[0][1] or '/tmp/' in line[0][1], 'nosuid' in line[0][0], 'nodev' in line[0][0])"
    ));
    let answer = attack(&command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert!(lines[0].starts_with("['target'] ["), "{}", answer.describe());
    assert!(
        lines[1..7].iter().all(|line| line.starts_with('E')),
        "{}",
        answer.describe()
    );
    assert_eq!(lines[7], "1 False True True", "{}", answer.describe());
}

/// Fills files without a name in the directory of the skill, and keeps them open.
const HOLD_NAMELESS: &str = r#"python3 -c '
import os, time
kept = []
for number in range(40):
    file = open("nameless", "w+b", buffering=0)
    os.unlink("nameless")
    kept.append(file)
    for _ in range(16):
        if file.write(bytes(1 << 20)) < 1 << 20:
            raise OSError("no space")
print("all written", flush=True)
time.sleep(100)
'"#;

#[test]
fn h201_files_without_a_name_in_the_view_count() {
    let fixture = Fixture::new();
    let (id, user) = ordinary_user();
    if !need(!user.is_empty() || id != 0, "an ordinary user") {
        return;
    }
    fixture.add_profile("small", &[("workspace", "64MiB"), ("wall", "60 s")]);
    fixture.chown_to(id);
    let request = json!({"command": HOLD_NAMELESS, "profile": "small"});
    let answer = fixture
        .request(request)
        .in_session("s")
        .with_launcher(&user)
        .run()
        .expect_report();
    assert_eq!(answer["ended_by"], "disk", "{}", answer.describe());
    assert!(!answer.stdout().contains("all written"), "{}", answer.describe());
}

#[test]
pub fn h202_the_view_of_an_ordinary_user_is_the_same() {
    let fixture = Fixture::new();
    let (id, user) = ordinary_user();
    let source = fixture.add_skill("target", &FILES);
    fixture.chown_to(id);
    let before = tree_contents(&source);
    for session in [None, Some("s"), Some("s")] {
        let command = "cat a.txt; echo changed > a.txt; rm -r deep; python3 -B scripts/x.py; cat a.txt; ls deep";
        let request = json!({"skill": "target", "command": command, "output_files": ["skills/**"]});
        let invocation = fixture.request(request).in_optional_session(session);
        let answer = invocation.with_launcher(&user).run().expect_report();
        assert_eq!(answer.stdout(), "one\noriginal\nchanged\n", "{}", answer.describe());
        assert_eq!(answer.output_names(), ["skills/target/a.txt"], "{}", answer.describe());
        assert!(!answer.mentions("directory of the skill"), "{}", answer.describe());
    }
    assert_eq!(tree_contents(&source), before);
}

#[test]
pub fn h203_modes_and_capabilities_of_changed_files_give_no_privilege() {
    let command = "cp /usr/bin/id mine; chmod 6755 mine 2>/dev/null; ./mine -u; ./mine -g; \
                   chmod 4755 a.txt 2>/dev/null; chmod 777 scripts/x.py; id -u";
    let answer = attack(command);
    assert_eq!(answer.stdout(), "1000\n1000\n1000\n", "{}", answer.describe());
}

#[test]
pub fn h204_links_out_of_the_view_are_not_collected() {
    let answer = attack(
        "ln -sf /etc/passwd a.txt; rm -r deep; ln -s /etc deep; rm -r scripts; ln -s / scripts; rm out; ln -s /etc out; mkfifo pipe; \
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; true",
    );
    assert!(answer.output_names().is_empty(), "{}", answer.describe());
    for name in ["a.txt", "deep", "out", "pipe", "scripts"] {
        let path = format!("skills/target/{name}");
        assert!(
            answer.refused_output_names().contains(&path.as_str()),
            "{name}: {}",
            answer.describe()
        );
    }
}

#[test]
pub fn h205_runs_at_the_same_time_have_views_of_their_own() {
    let fixture = Fixture::new();
    let source = fixture.add_skill("shared", &[("count", "0")]);
    let before = tree_contents(&source);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6)
            .map(|number| {
                let fixture = &fixture;
                scope.spawn(move || {
                    let command = format!(
                        "cat count; echo -n {number} > count; touch mine-{number}; sleep 0.5; cat count; ls mine-*"
                    );
                    let answer = fixture
                        .request(json!({"skill": "shared", "command": command}))
                        .run()
                        .expect_report();
                    assert_eq!(
                        answer.stdout(),
                        format!("0{number}mine-{number}\n"),
                        "{}",
                        answer.describe()
                    );
                })
            })
            .collect();
        for run in runs {
            run.join().unwrap();
        }
    });
    assert_eq!(tree_contents(&source), before);
    assert!(no_layers_remain(&fixture.path("state")), "layers of a run remain");
}

fn no_layers_remain(state: &Path) -> bool {
    files_below(state)
        .iter()
        .all(|path| !path.ends_with("count") || path.to_string_lossy().contains("/sha256-"))
}
