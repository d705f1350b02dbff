//! What a run with allowed hosts can do.

use super::outside_world::OutsideWorld;
use crate::harness::{Fixture, ordinary_user};

/// The clients, each with a line that begins with what it prints. Half of them know nothing of proxies.
const CLIENTS: [(&str, &str); 12] = [
    ("hello api.test GET 0", "curl -sS --cacert $CA https://api.test/"),
    (
        "hello api.test GET 0",
        "curl -sS --noproxy '*' --cacert $CA https://api.test/",
    ),
    (
        "hello api.test:8443 GET 0",
        "curl -sS --noproxy '*' --cacert $CA https://api.test:8443/",
    ),
    ("hello api.test GET 0", "curl -sS http://api.test/"),
    (
        "hello api.test:8080 POST 5",
        "curl -sS --noproxy '*' -d 12345 http://api.test:8080/",
    ),
    (
        "hello b.wild.test GET 0",
        "curl -sS --noproxy '*' --cacert $CA https://b.wild.test/",
    ),
    (
        "hello api.test GET 0",
        "python3 -c 'import ssl, sys, urllib.request as u; c = ssl.create_default_context(cafile=sys.argv[1]); \
         print(u.urlopen(\"https://api.test/\", context=c).read().decode())' $CA",
    ),
    (
        "hello x GET 0",
        "python3 -c 'import socket, ssl, sys; c = ssl.create_default_context(cafile=sys.argv[1]); \
         s = c.wrap_socket(socket.create_connection((\"api.test\", 443)), server_hostname=\"api.test\"); \
         s.sendall(b\"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n\"); print(s.recv(4096).decode().split(chr(10))[-1])' $CA",
    ),
    (
        "hello api.test GET 0",
        "printf 'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n' | timeout 20 openssl s_client -quiet -verify_quiet \
         -CAfile $CA -servername api.test -connect api.test:443 2>/dev/null | tail -n 1 & wait; echo",
    ),
    (
        "ready ping",
        "python3 -c 'import socket; s = socket.create_connection((\"api.test\", 7000)); s.sendall(b\"ping\\n\"); \
         f = s.makefile(); print(f.readline().strip(), f.readline().strip())'",
    ),
    (
        "echo!",
        "python3 -c 'import socket; s = socket.create_connection((\"api.test\", 8080)); f = s.makefile(\"rwb\", 0); \
         f.write(b\"GET / HTTP/1.1\\r\\nHost: api.test:8080\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n\"); \
         any(line == b\"\\r\\n\" for line in iter(f.readline, b\"\")); f.write(b\"echo!\\n\"); print(f.readline().decode().strip())'",
    ),
    (
        "hello api.test GET 0",
        "node -e 'require(\"https\").get({host: \"api.test\", ca: require(\"fs\").readFileSync(process.argv[1])}, \
         r => r.on(\"data\", d => console.log(String(d))))' $CA",
    ),
];

const HOSTS: [&str; 7] = [
    "api.test",
    "api.test:80",
    "api.test:8080",
    "api.test:8443",
    "api.test:7000",
    "*.wild.test",
    "93.184.215.14:8080",
];

#[test]
fn clients_reach_allowed_hosts_with_and_without_the_proxy() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let has_node = std::path::Path::new("/usr/bin/node").exists();
    let clients: Vec<_> = CLIENTS
        .iter()
        .filter(|(_, command)| has_node || !command.starts_with("node"))
        .collect();
    let script: Vec<String> = clients
        .iter()
        .enumerate()
        .map(|(index, (_, command))| format!("printf '\\n{index} '; {command} 2>&1"))
        .collect();
    let answer = world.run(&HOSTS, &script.join("\n"));
    for (index, (expected, command)) in clients.iter().enumerate() {
        let line = answer
            .stdout()
            .lines()
            .find(|line| line.starts_with(&format!("{index} ")));
        let printed = line.map(|line| line.split_once(' ').unwrap().1);
        assert_eq!(printed, Some(*expected), "{command}: {}", answer.describe());
    }
    assert_eq!(answer["profile"], "network");
    let network = &answer["network"];
    assert_eq!(network["denials"].as_array().unwrap().len(), 0, "{network}");
    let connections = network["connections"].as_array().unwrap();
    assert_eq!(connections.len(), clients.len(), "{network}");
    for connection in connections {
        let count = |key: &str| connection[key].as_u64().unwrap();
        assert!(count("bytes_sent") > 0 && count("bytes_received") > 0, "{connection}");
        assert!(
            HOSTS[..6]
                .iter()
                .any(|host| host.contains("wild") || connection["host"] == "api.test"),
            "{connection}"
        );
    }
    assert_eq!(
        answer["warnings"].as_array().unwrap().len(),
        0,
        "{}",
        answer["warnings"]
    );
}

#[test]
fn an_address_is_reached_only_as_an_address() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command = "curl -sS -m 20 http://10.1.2.3:8080/; echo; curl -sS -m 20 http://private.test:8080/; echo; \
                   curl -sS -m 20 http://private.test/ -o /dev/null -w '%{http_code}'";
    let answer = world.run(&["10.1.2.3:8080", "private.test:8080", "private.test:80"], command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(
        lines,
        ["hello 10.1.2.3:8080 GET 0", "hello private.test:8080 GET 0", "403"],
        "{}",
        answer.describe()
    );
}

#[test]
fn an_ordinary_user_has_the_same_network() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let (id, launcher) = ordinary_user();
    fixture.chown_to(id);
    let world = world.with_launcher(launcher);
    let command = "curl -sS -m 20 --noproxy '*' --cacert $CA https://api.test/; echo; \
                   curl -sS -m 20 --noproxy '*' --cacert $CA https://evil.test/ || echo refused";
    let answer = world.run(&["api.test"], command);
    assert!(
        answer.stdout().starts_with("hello api.test GET 0\n"),
        "{}",
        answer.describe()
    );
    assert!(answer.stdout().ends_with("refused\n"), "{}", answer.describe());
    assert!(
        !world.log().iter().any(|line| line.contains("evil")),
        "{:?}",
        world.log()
    );
}

#[test]
fn a_server_that_dies_ends_the_connection_and_large_bodies_arrive() {
    let fixture = Fixture::new();
    let Some(world) = OutsideWorld::open(&fixture) else {
        return;
    };
    let command = "curl -sS -m 20 http://api.test/dies -o /dev/null; echo $?; \
                   curl -sS -m 20 --noproxy '*' --cacert $CA https://api.test/dies -o /dev/null; echo $?; \
                   curl -sS -m 60 --noproxy '*' --cacert $CA https://api.test/size/30000000 | wc -c; \
                   curl -sS -m 60 http://api.test/size/30000000 | wc -c";
    let answer = world.run(&["api.test", "api.test:80"], command);
    let lines: Vec<&str> = answer.stdout().lines().collect();
    assert_eq!(lines, ["18", "18", "30000000", "30000000"], "{}", answer.describe());
}
