//! Hosts with rules for methods and paths: skillbox terminates TLS and reads each request.

use super::outside_world::OutsideWorld;
use crate::harness::{Answer, Fixture};

/// GET and HEAD below `/open` of `api.test`, on all ports of the outside world.
const PROFILE: &str = "extends: network\nnetwork:\n  mode: allow_list\n  allow:\n    - host: api.test\n      \
    ports: [80, 443, 7000, 9443]\n      methods: [GET, HEAD]\n      paths: [/open/**, /v1/items/*]\n      reason: the test\n";

/// The same ports without restrictions.
const UNRESTRICTED: [&str; 4] = ["api.test:80", "api.test", "api.test:7000", "api.test:9443"];

fn run(world: &OutsideWorld<'_>, fixture: &Fixture, granted: &[&str], command: &str) -> Answer {
    fixture.add_profile_yaml("restricted", PROFILE);
    let roots = world.ca();
    let args = ["--profile", "restricted", "--tls-roots", roots.as_str()];
    world.run_with(granted, command, &args).expect_report()
}

fn has_node() -> bool {
    std::path::Path::new("/usr/bin/node").exists()
}

/// Clients without any option for certificates, each with what it prints.
const CLIENTS: [(&str, &str); 11] = [
    ("hello api.test GET 0", "curl -sS https://api.test/open/x"),
    ("hello api.test GET 0", "curl -sS --noproxy '*' https://api.test/open/x"),
    ("hello api.test GET 0", "curl -sS --noproxy '*' http://api.test/open/x"),
    (
        "hello api.test GET 0",
        "curl -sS http://api.test/v1/items/7?q=/../admin",
    ),
    (
        "hello api.test:9443 GET 0 HTTP/2",
        "curl -sS --http2 --noproxy '*' https://api.test:9443/open/x",
    ),
    (
        "hello api.test:9443 GET 0 HTTP/2",
        "curl -sS https://api.test:9443/open/x",
    ),
    (
        "hello api.test:9443 GET 0 HTTP/1",
        "curl -sS --http1.1 --noproxy '*' https://api.test:9443/open/x",
    ),
    (
        "hello api.test GET 0",
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://api.test/open/x\").read().decode())'",
    ),
    (
        "hello api.test GET 0",
        "node -e 'fetch(\"https://api.test/open/x\").then(r => r.text()).then(console.log)'",
    ),
    (
        "hello api.test GET 0",
        "printf 'GET /open/x HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' | timeout 20 openssl s_client \
         -quiet -verify_quiet -verify_return_error -servername api.test -connect api.test:443 2>/dev/null | tail -n 1; echo",
    ),
    (
        "hello api.test:9443 GET 0 HTTP/2",
        "node -e 'const c = require(\"http2\").connect(\"https://api.test:9443\"); const r = c.request({\":path\": \"/open/x\"}); \
         let t = \"\"; r.on(\"data\", d => t += d); r.on(\"end\", () => { console.log(t); c.close(); })'",
    ),
];

#[test]
fn clients_trust_the_authority_of_their_run_without_any_option() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let clients: Vec<_> = CLIENTS
        .iter()
        .filter(|(_, command)| has_node() || !(command.starts_with("node") || command.contains("9443")))
        .collect();
    let script: Vec<String> = clients
        .iter()
        .enumerate()
        .map(|(index, (_, command))| format!("printf '\\n{index} '; {command} 2>&1"))
        .collect();
    let answer = run(&world, &fixture, &[], &script.join("\n"));
    for (index, (expected, command)) in clients.iter().enumerate() {
        let line = answer
            .stdout()
            .lines()
            .find(|line| line.starts_with(&format!("{index} ")));
        let printed = line.map(|line| line.split_once(' ').unwrap().1);
        assert_eq!(printed, Some(*expected), "{command}: {}", answer.describe());
    }
    let network = &answer["network"];
    assert_eq!(network["denials"].as_array().unwrap().len(), 0, "{network}");
    assert!(network.get("failures").is_none(), "{network}");
}

/// Requests that the rules do not allow. Each reaches the server if the host is granted without restrictions.
fn forbidden() -> Vec<String> {
    let raw = |port: u16, request: &str| {
        format!(
            "timeout 20 python3 -c '\nimport socket, ssl\ns = socket.create_connection((\"api.test\", {port}), 10)\n\
             if {port} == 443: s = ssl._create_unverified_context().wrap_socket(s, server_hostname=\"api.test\")\n\
             s.sendall(b\"{request}\")\nprint(s.recv(99))\n'"
        )
    };
    let mut all = vec![
        "curl -sSk -X POST -d x https://api.test/open/x".to_owned(),
        "curl -sSk -X DELETE --noproxy '*' https://api.test/open/x".to_owned(),
        "curl -sSk https://api.test/admin".to_owned(),
        "curl -sS http://api.test/admin".to_owned(),
        "curl -sS --noproxy '*' http://api.test/admin".to_owned(),
        "curl -sSk --path-as-is https://api.test/open/../admin".to_owned(),
        "curl -sSk --path-as-is https://api.test/open//admin".to_owned(),
        "curl -sSk https://api.test/open/%2e%2e/admin".to_owned(),
        "curl -sSk https://api.test/open%2fadmin".to_owned(),
        "curl -sSk https://api.test/open/..%5cadmin".to_owned(),
        "curl -sSk --path-as-is 'https://api.test/open/..;/admin'".to_owned(),
        "curl -sSk https://api.test/open/%252e%252e/admin".to_owned(),
        "curl -sSk https://api.test/open".to_owned(),
        "curl -sSk https://api.test/v1/items/7/keys".to_owned(),
        "curl -sSk -H 'X-HTTP-Method-Override: DELETE' https://api.test/open/x".to_owned(),
        "curl -sSk -H 'X-Original-URL: /admin' https://api.test/open/x".to_owned(),
        raw(443, "GET /admin HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n"),
        raw(
            443,
            "GET https://api.test/admin HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n",
        ),
        raw(80, "GET http://api.test/admin HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n"),
        raw(7000, "ping\\n"),
    ];
    if has_node() {
        all.push("curl -sSk --http2 -X PUT -d x https://api.test:9443/open/x".to_owned());
        all.push("curl -sSk --http2 https://api.test:9443/admin".to_owned());
    }
    all
}

#[test]
fn requests_that_no_rule_allows_do_not_reach_the_host() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let attempts = forbidden();
    let answer = run(&world, &fixture, &[], &attempts.join("; echo\n"));
    let reached: Vec<String> = world
        .log()
        .into_iter()
        .filter(|line| line.starts_with("http"))
        .collect();
    assert!(reached.is_empty(), "{reached:?}");
    let denials = answer["network"]["denials"].as_array().unwrap();
    let count: u64 = denials.iter().map(|denial| denial["count"].as_u64().unwrap()).sum();
    assert_eq!(count, attempts.len() as u64, "{}", answer.describe());
    let text = format!("{} {}", answer.json(), answer.stdout());
    for part in [
        "no rule allows GET /admin; allowed: GET, HEAD /open/**, /v1/items/*",
        "x-original-url",
        "only HTTP is carried",
        "grant_missing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let control = run(&world, &fixture, &UNRESTRICTED, &attempts.join("; echo\n"));
    let reached = world.log().iter().filter(|line| line.starts_with("http")).count();
    // All but the one that is not HTTP, which the server of port 7000 answers.
    assert_eq!(reached, attempts.len() - 1, "{:?} {}", world.log(), control.describe());
    assert!(control.stdout().contains("ready"), "{}", control.describe());
}

#[test]
fn each_request_of_a_connection_names_the_host_of_the_connection() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    if !has_node() {
        return;
    }
    // Streams of one connection: the allowed host, another one, and the allowed one again.
    let streams = |authorities: &str| {
        format!(
            "node -e 'const c = require(\"http2\").connect(\"https://api.test:9443\"); const names = {authorities}; let open = names.length;\n\
             for (const n of names) {{ const r = c.request({{\":path\": \"/open/x\", \":authority\": n}}); let status;\n\
             r.on(\"response\", h => status = h[\":status\"]); r.resume(); r.on(\"error\", () => {{}});\n\
             r.on(\"close\", () => {{ console.log(n, status); if (!--open) c.close(); }}) }}' | sort"
        )
    };
    let command = streams("[\"api.test:9443\", \"evil.test\", \"api.test:443\", \"evil.test:9443\"]");
    let answer = run(&world, &fixture, &[], &command);
    assert_eq!(
        answer.stdout(),
        "api.test:443 403\napi.test:9443 200\nevil.test 403\nevil.test:9443 403\n",
        "{}",
        answer.describe()
    );
    let reached: Vec<String> = world
        .log()
        .into_iter()
        .filter(|line| line.starts_with("http"))
        .collect();
    assert_eq!(reached, ["http2 9443 api.test:9443 /open/x"]);
    assert!(
        answer.describe().contains("names another host: evil.test"),
        "{}",
        answer.describe()
    );
    // HTTP/1.1: the second request of a connection.
    let command = "python3 -c '\nimport socket, ssl\nc = ssl.create_default_context()\n\
                   s = c.wrap_socket(socket.create_connection((\"api.test\", 443)), server_hostname=\"api.test\")\nf = s.makefile(\"rb\")\n\
                   for h in (\"api.test\", \"evil.test\"):\n  s.sendall(b\"GET /open/x HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n\" % h.encode())\n  \
                   head = [l for l in iter(f.readline, b\"\\r\\n\")]\n  print(head[0].split()[1].decode())\n  \
                   f.read(next(int(l.split()[1]) for l in head if l.lower().startswith(b\"content-length\")))\n'";
    let answer = run(&world, &fixture, &[], command);
    assert_eq!(answer.stdout(), "200\n403\n", "{}", answer.describe());
    assert!(
        !world.log().iter().any(|line| line.contains("evil")),
        "{:?}",
        world.log()
    );
}

#[test]
fn a_host_whose_certificate_is_not_trusted_is_not_reached() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    fixture.add_profile_yaml("restricted", PROFILE);
    // Without `tls_roots`, the host does not trust the authority of the servers. What the script trusts does not matter.
    let command = "curl -sSk -m 20 https://api.test/open/x; echo $?";
    let answer = world
        .run_with(&[], command, &["--profile", "restricted"])
        .expect_report();
    assert!(!answer.stdout().contains("hello"), "{}", answer.describe());
    assert!(
        !world.log().iter().any(|line| line.starts_with("http")),
        "{:?}",
        world.log()
    );
    assert!(
        answer.describe().contains("no secure connection to the host"),
        "{}",
        answer.describe()
    );
    let control = run(&world, &fixture, &[], command);
    assert!(control.stdout().starts_with("hello api.test"), "{}", control.describe());
}

#[test]
fn the_authority_belongs_to_one_run_and_its_files_are_removed() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command = "tail -n 12 $SSL_CERT_FILE | sha256sum; ls /run/skillbox/tls; touch /run/skillbox/tls/x 2>/dev/null || echo read-only; \
                   env | grep -c =/run/skillbox/tls/ca-bundle.pem";
    let mut printed = Vec::new();
    for _ in 0..2 {
        let answer = run(&world, &fixture, &[], command);
        assert!(
            answer.stdout().ends_with("ca-bundle.pem\nread-only\n8\n"),
            "{}",
            answer.describe()
        );
        printed.push(answer.stdout().to_owned());
    }
    assert_ne!(printed[0], printed[1]);
    // Nothing of it is needed where skillbox reads no requests.
    let plain = world.run(
        &["api.test"],
        "ls /run/skillbox/tls 2>&1; env | grep -c SSL_CERT_FILE; true",
    );
    assert!(plain.stdout().contains("No such file"), "{}", plain.describe());
    assert!(plain.stdout().ends_with("\n0\n"), "{}", plain.describe());
}
