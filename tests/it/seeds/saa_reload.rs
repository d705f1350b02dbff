//! Spring AI Alibaba: skills are reloaded before each model call. A server sees a change as soon as it is complete.

use serde_json::{Value, json};

use super::mcp_text_client::McpTextClient;
use super::skill_dir::SkillDir;
use crate::harness::HttpServer;

/// More often than chance would let a late change go unnoticed: a watch without a reload is late every time.
const ROUNDS: usize = 10;

struct HttpHost {
    server: HttpServer,
    dialect: &'static str,
}

impl HttpHost {
    fn start(skills: &SkillDir, dialect: &'static str) -> Self {
        let (server, _) = HttpServer::start(&["--skills", skills.skills().to_str().unwrap()], &[]);
        server
            .request_json("", "POST", "/v1/sessions", Some(&json!({"id": "s"})))
            .expect_status(201);
        Self { server, dialect }
    }

    fn prompt(&self) -> String {
        let path = format!("/v1/sessions/s/prompt?dialect={}", self.dialect);
        let answer = self.server.request_json("", "GET", &path, None).expect_status(200);
        answer["prompt"].as_str().unwrap().to_owned()
    }

    fn call(&self, tool: &str, arguments: &Value) -> (u16, Value) {
        let path = format!("/v1/sessions/s/tools/{tool}?dialect={}", self.dialect);
        let answer = self.server.request_json("", "POST", &path, Some(arguments));
        (answer.status, answer.json())
    }
}

#[test]
fn seed_003_an_http_server_sees_changes_with_the_next_request() {
    let skills = SkillDir::new();
    let host = HttpHost::start(&skills, "saa");
    host.prompt();
    for round in 0..ROUNDS {
        let name = format!("added-{round}");
        skills.write(&name, "description: First words.", "First body.\n");
        assert!(
            host.prompt().contains(&format!("- **{name}**: First words.")),
            "{round}"
        );
        skills.write(&name, "description: Second words.", "Second body.\n");
        let (status, read) = host.call("read_skill", &json!({"skill_name": name}));
        assert_eq!((status, &read["content"]), (200, &json!("Second body.\n")), "{round}");
        assert!(host.prompt().contains("Second words."), "{round}");
        skills.write(&name, "description: Third words, which are longer.", "Third body.\n");
        let (_, again) = host.call("read_skill", &json!({"skill_name": name}));
        assert_eq!(again["content"], "Third body.\n", "{round}");
        let other = format!("other-{round}");
        skills.write(&other, "description: d", "");
        let (_, started) = host.call("before_agent", &json!({}));
        assert_eq!(started["changed"], true, "{round}: {started}");
        skills.remove(&other);
        skills.remove(&name);
        let (status, refused) = host.call("read_skill", &json!({"skill_name": name}));
        assert_eq!(
            (status, &refused["error"]["code"]),
            (404, &json!("unknown_skill")),
            "{round}"
        );
        assert!(!host.prompt().contains(&name), "{round}");
    }
}

/// The other dialects see changes with the next turn, and at its start at once.
#[test]
fn seed_003_other_dialects_see_changes_at_the_start_of_a_turn_at_once() {
    let skills = SkillDir::new();
    let host = HttpHost::start(&skills, "skillbox");
    host.prompt();
    for round in 0..ROUNDS {
        let name = format!("added-{round}");
        skills.write(&name, "description: d", "");
        assert!(!host.prompt().contains(&name), "{round}: the turn has not ended");
        let (_, started) = host.call("before_agent", &json!({}));
        assert_eq!(started["changed"], true, "{round}: {started}");
        assert!(host.prompt().contains(&name), "{round}");
    }
}

#[test]
fn seed_003_an_mcp_server_sees_changes_with_the_next_call() {
    let skills = SkillDir::new();
    skills.write("first", "description: d", "Body.\n");
    let mut client = McpTextClient::connect(&skills.skills(), &skills.state(), &["--dialect", "saa"]);
    client.call_ok("search_skills", json!({"query": ""}));
    for round in 0..ROUNDS {
        let name = format!("added-{round}");
        skills.write(&name, "description: d", "First body.\n");
        let read = json!({"skill_name": name});
        assert_eq!(client.call_ok("read_skill", read.clone()), "First body.\n", "{round}");
        skills.write(&name, "description: d", "Second body.\n");
        assert_eq!(client.call_ok("read_skill", read.clone()), "Second body.\n", "{round}");
        skills.remove(&name);
        let refused = client.call_refused("read_skill", read);
        assert!(refused.contains(&format!("Skill not found: {name}")), "{refused}");
    }
}
