//! What scripts of public skills expect around them: `python`, the directories of agents, names, a user, terminals.

use serde_json::json;

use crate::harness::{Fixture, need, need_docker, with_docker};

#[test]
fn skills_find_themselves_where_agents_keep_skills() {
    check_agent_directories(&["default", "strict"]);
}

#[test]
fn skills_find_themselves_where_agents_keep_skills_in_containers() {
    if need_docker() {
        // `strict` needs a daemon that maps user ids.
        with_docker(|| check_agent_directories(&["default"]));
    }
}

fn check_agent_directories(profiles: &[&str]) {
    let fixture = Fixture::new();
    fixture.add_skill("shown", &[("scripts/hello.py", "print('hello')\n")]);
    let command = "for agent in claude agents codex openclaw; do python ~/.$agent/skills/shown/scripts/hello.py; done; \
                   python $CLAUDE_SKILL_DIR/scripts/hello.py; echo mine > ~/.claude/settings.json; \
                   echo $USER $LOGNAME $TERM; id -un";
    for profile in profiles {
        let request = json!({"skill": "shown", "command": command, "profile": profile, "output_files": ["home/**"]});
        let answer = fixture.request(request).run().expect_report();
        let expected = "hello\nhello\nhello\nhello\nhello\nskill skill dumb\nskill\n";
        assert_eq!(answer.stdout(), expected, "{}", answer.describe());
        assert_eq!(answer.output_names(), ["home/.claude/settings.json"]);
        assert!(answer.refused_output_names().is_empty(), "{}", answer.describe());
    }
}

#[test]
fn a_session_keeps_what_its_runs_did_to_these_directories() {
    let fixture = Fixture::new();
    let run = |command: &str| {
        let request = fixture.request(json!({"command": command}));
        request.in_session("kept").run().expect_report()
    };
    let first =
        run("ls ~/.codex/skills; rm -r ~/.claude; ln -s /etc ~/.claude; rm ~/.agents/skills; mkdir ~/.agents/skills");
    assert_eq!(first.stdout(), "probe\n", "{}", first.describe());
    let second = run("readlink ~/.claude; ls ~/.agents/skills ~/.codex/skills");
    assert!(second.stdout().starts_with("/etc\n"), "{}", second.describe());
    assert!(second.stdout().ends_with("skills:\nprobe\n"), "{}", second.describe());
}

#[test]
fn names_of_the_system_resolve() {
    let fixture = Fixture::new();
    let script = "import platform, socket\n\
                  print(socket.gethostbyname(socket.gethostname()), socket.getfqdn() != '', socket.getservbyname('https'))\n\
                  print(platform.freedesktop_os_release()['ID'] != '')\n";
    fixture.add_skill("names", &[("scripts/names.py", script)]);
    for profile in ["default", "strict", "loopback"] {
        let request = json!({"skill": "names", "command": "python3 scripts/names.py", "profile": profile});
        let answer = fixture.request(request).run().expect_report();
        assert_eq!(answer.stdout(), "127.0.0.1 True 443\nTrue\n", "{}", answer.describe());
    }
}

#[test]
fn node_lists_the_interfaces_of_the_private_network() {
    let has_node = std::path::Path::new("/usr/bin/node").exists();
    if need(has_node, "Node in /usr/bin") {
        let fixture = Fixture::new();
        let command = "node -p 'Object.keys(require(\"os\").networkInterfaces())[0]'";
        let answer = fixture
            .request(json!({"command": command, "profile": "loopback"}))
            .run()
            .expect_report();
        assert_eq!(answer.stdout(), "lo\n", "{}", answer.describe());
    }
}

#[test]
fn a_sandbox_has_terminals_of_its_own() {
    let fixture = Fixture::new();
    let terminals = "import os, sys\n\
                     opened = []\n\
                     try:\n    \
                         while len(opened) < 100: opened.append(os.openpty())\n\
                     except OSError: pass\n\
                     print(len(opened), sorted(os.listdir('/dev/pts'))[:2])\n\
                     sys.stdout.flush()\n\
                     sys.stdin.read()\n";
    fixture.add_skill("terminals", &[("scripts/open.py", terminals)]);
    let answer = fixture.run_shell("script -qec 'tty; echo seen > /dev/tty' /dev/null; echo done");
    assert_eq!(answer.stdout(), "/dev/pts/0\r\nseen\r\ndone\n", "{}", answer.describe());
    for _ in 0..2 {
        let request = json!({"skill": "terminals", "command": "ls /dev/pts; python3 scripts/open.py"});
        let answer = fixture.request(request).run().expect_report();
        assert_eq!(answer.stdout(), "ptmx\n16 ['0', '1']\n", "{}", answer.describe());
    }
    let request = json!({"command": "ls /dev/pts /dev/ptmx /dev/tty", "profile": "strict"});
    let answer = fixture.request(request).run().expect_report();
    assert_eq!(
        (answer.stdout(), answer["exit_code"].as_i64()),
        ("", Some(2)),
        "{}",
        answer.describe()
    );
}
