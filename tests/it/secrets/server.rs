//! A server: secrets that change while it runs, and what its clients and its log show of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::json;

use super::support::{VALUE, find_form, forms};
use crate::harness::{Fixture, HttpServer, wait_until};

#[test]
fn a_server_takes_over_new_secrets_and_shows_their_values_nowhere() {
    let fixture = Fixture::new();
    let file = fixture.add_host_file("token", VALUE);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (server, tokens) = HttpServer::start(&["--log", "debug"], &["alice"]);
    let alice = tokens[0].as_str();
    let request = json!({"skill": "python-math", "command": "printf 'a %s b' \"${TOKEN:-none}\""});
    let run = || {
        let answer = server.request_json(alice, "POST", "/v1/runs?wait=100", Some(&request));
        answer.expect_status(200)
    };
    assert_eq!(run()["stdout"], "a none b");

    let text = fs::read_to_string(server.config_path()).unwrap();
    let secret = format!(
        "\n[secrets.TOKEN]\nfrom = \"file:{}\"\ninject = \"env\"\nskills = [\"python-math\"]\n",
        file.display()
    );
    fs::write(server.config_path(), text + &secret).unwrap();
    server.signal(Signal::HUP);
    wait_until("the settings are reloaded", || {
        server.log_text().contains("settings reloaded")
    });
    let ended = run();
    assert_eq!(ended["stdout"], "a [secret TOKEN] b", "{ended}");
    assert_eq!(ended["secrets"], json!({"TOKEN": "env"}), "{ended}");
    let id = ended["run_id"].as_str().unwrap();
    let events = server.request_json(alice, "GET", &format!("/v1/runs/{id}/events"), None);
    assert!(events.text().contains("[secret TOKEN]"), "{}", events.text());
    for shown in [events.text(), server.log_text(), ended.to_string()] {
        assert_eq!(find_form(shown.as_bytes(), &forms(VALUE)), None, "{shown}");
    }
}
