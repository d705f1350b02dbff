//! Secrets that the script never holds: it sends a placeholder, and skillbox replaces it outside the sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::support::{assert_not_on_disk, find_form, forms, write_config};
use crate::harness::{Answer, Fixture};
use crate::network::OutsideWorld;

const VALUE: &str = "tok-5e_9Qz71Kx0vR3";

struct Granted<'f> {
    fixture: &'f Fixture,
    world: OutsideWorld<'f>,
    config: String,
}

impl<'f> Granted<'f> {
    fn new(fixture: &'f Fixture) -> Option<Self> {
        let world = OutsideWorld::open(fixture)?;
        let file = fixture.add_host_file("token", VALUE);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let text = format!(
            "[secrets.TOKEN]\nfrom = \"file:{}\"\nhosts = [\"api.test\"]\n",
            file.display()
        );
        Some(Self {
            fixture,
            world,
            config: write_config(fixture, &text),
        })
    }

    fn run(&self, command: &str, allowed: &[&str]) -> Answer {
        let roots = self.world.ca();
        let args = ["--config", &self.config, "--tls-roots", &roots, "--secret", "TOKEN"];
        self.world.run_with(allowed, command, &args).expect_report()
    }

    #[track_caller]
    fn assert_shown_nowhere(&self, answer: &Answer) {
        let printed = [answer.process.stdout.as_slice(), &answer.process.stderr].concat();
        assert_eq!(find_form(&printed, &forms(VALUE)), None, "{}", answer.describe());
        assert_not_on_disk(&self.fixture.path("state"), &forms(VALUE));
    }
}

#[test]
fn the_granted_host_gets_the_value_and_the_script_never_does() {
    let fixture = Fixture::new();
    let Some(granted) = Granted::new(&fixture) else { return };
    let command = format!(
        "curl -sS -H \"Authorization: Bearer $TOKEN\" https://api.test/echo?k=$TOKEN; echo; \
         test \"$TOKEN\" = {VALUE} && echo held; env | grep -c '^TOKEN='; \
         grep -qa {VALUE} /proc/*/environ 2>/dev/null && echo seen; true"
    );
    // The command itself must not bring the value in, so the comparison uses its halves.
    let (first, second) = VALUE.split_at(7);
    let command = command.replace(VALUE, &format!("{first}''{second}"));
    let answer = granted.run(&command, &["api.test"]);
    // The server got it, and its answer repeats it: both are the control.
    let log = granted.world.log().join("\n");
    assert!(
        log.contains(&format!("/echo?k={VALUE}")),
        "{log}\n{}",
        answer.describe()
    );
    let output = answer.stdout();
    assert!(
        output.contains("authorization: Bearer [secret TOKEN]")
            || output.contains("Authorization: Bearer [secret TOKEN]"),
        "{}",
        answer.describe()
    );
    assert!(
        !output.contains("held") && !output.contains("seen"),
        "{}",
        answer.describe()
    );
    assert_eq!(answer["secrets"]["TOKEN"], "header", "{}", answer.describe());
    granted.assert_shown_nowhere(&answer);
}

#[test]
fn another_host_gets_the_placeholder_or_nothing() {
    let fixture = Fixture::new();
    let Some(granted) = Granted::new(&fixture) else { return };
    let command = "curl -sS -H \"Authorization: Bearer $TOKEN\" \"http://b.test/echo?k=$TOKEN\"; echo \"$TOKEN\"";
    let answer = granted.run(command, &["api.test", "b.test:80"]);
    let log = granted.world.log().join("\n");
    assert!(!log.contains(VALUE), "{log}");
    granted.assert_shown_nowhere(&answer);
}

#[test]
fn a_secret_without_a_reachable_host_says_what_is_missing() {
    let fixture = Fixture::new();
    let Some(granted) = Granted::new(&fixture) else { return };
    let answer = granted.run("true", &["b.test"]);
    assert!(answer.mentions("--allow-net api.test:443"), "{}", answer.describe());
}
