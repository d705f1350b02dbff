//! trpc-agent-go: `$SKILLS_ROOT` is mounted read-only in containers, where the operator asks for it.

use std::fs;

use serde_json::json;

use crate::cli::Cli;
use crate::harness::{Fixture, need_docker, with_docker};

const COMMAND: &str = r#"echo "root=$SKILLS_ROOT"; cat /opt/skills/other/SKILL.md /opt/skills-2/more/SKILL.md
    for place in /opt/skills /opt/skills/other; do touch $place/new 2>&1 && echo written; done; true"#;

fn write_root(fixture: &Fixture, root: &str, skill: &str) -> String {
    let directory = fixture.path(root).join(skill);
    fs::create_dir_all(&directory).unwrap();
    let text = format!("---\nname: {skill}\ndescription: From the root.\n---\n");
    fs::write(directory.join("SKILL.md"), text).unwrap();
    fixture.path_str(root)
}

#[test]
fn seed_004_skills_root_is_mounted_read_only_in_containers() {
    if !need_docker() {
        return;
    }
    with_docker(|| {
        let fixture = Fixture::new();
        let roots = [
            write_root(&fixture, "roots/a", "other"),
            write_root(&fixture, "roots/b", "more"),
        ]
        .join(":");
        let run = |flags: &[&str]| {
            let request = fixture.request(json!({"command": COMMAND, "timeout": 100}));
            request
                .with_args(flags)
                .env("SKILLS_ROOT", &roots)
                .run()
                .expect_report()
        };
        let answer = run(&["--mount-skills-root"]);
        let stdout = answer.stdout();
        assert!(stdout.starts_with("root=/opt/skills:/opt/skills-2\n"), "{stdout}");
        assert!(
            stdout.contains("name: other") && stdout.contains("name: more"),
            "{stdout}"
        );
        assert!(
            !stdout.contains("written") && stdout.contains("Read-only file system"),
            "{stdout}"
        );
        assert_eq!(answer.layer_status("mount_namespace"), "enforced");
        assert!(!fixture.path("roots/a/new").exists());

        let control = run(&[]);
        assert!(control.stdout().starts_with("root=\n"), "{}", control.stdout());
        assert!(
            !control.stdout().contains("name: other"),
            "by default nothing of the host is mounted"
        );
    });
}

#[test]
fn seed_004_a_missing_skills_root_is_refused() {
    let mut cli = Cli::new();
    cli.add_skill("skills/one", "A skill.");
    let refused = |cli: &Cli| {
        let output = cli
            .run("--skills skills run one --mount-skills-root -- true")
            .expect_code(125);
        output.stderr
    };
    let message = refused(&cli);
    assert!(message.contains("SKILLS_ROOT names no directory"), "{message}");
    cli.set_variable("SKILLS_ROOT", "nowhere");
    let message = refused(&cli);
    assert!(message.contains("cannot open nowhere in SKILLS_ROOT"), "{message}");
    cli.run("--skills skills run one -- true").expect_code(0);
}
