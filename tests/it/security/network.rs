//! 3.8: scripts have no network.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::json;

use crate::harness::{AbstractListener, Fixture, TcpListeners, assert_within, is_refusal, kill_and_reap, need_root};

#[test]
pub fn h096_no_packet_leaves_the_sandbox() {
    let fixture = Fixture::new();
    let listeners = TcpListeners::open();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    assert_eq!(
        fixture.control_probe("connect.py", &["udp", "127.0.0.1", &port]),
        "allowed"
    );
    // A packet over loopback is in the socket when its sender has ended.
    assert!(udp.recv(&mut [0; 8]).is_ok(), "the packet of the control arrives");
    for profile in ["default", "loopback", "strict"] {
        // The strict profile needs a daemon that maps ids, and most do not.
        if fixture.docker().is_some_and(|docker| !docker.maps_ids()) && profile == "strict" {
            let refused = fixture.request(json!({"command": "true", "profile": profile})).run();
            assert_eq!(refused.expect_refusal().0, "isolation_unavailable");
            continue;
        }
        let command = format!(
            "for a in 1.1.1.1 8.8.8.8 2606:4700:4700::1111 255.255.255.255 224.0.0.1; do \
             python3 scripts/connect.py tcp $a 53; python3 scripts/connect.py udp $a 53; done; \
             python3 scripts/connect.py udp 127.0.0.1 {port}; python3 scripts/connect.py name example.org; \
             python3 scripts/socket_family.py 2 raw 1; python3 scripts/connect.py name localhost.localdomain"
        );
        let answer = fixture
            .request(json!({"command": command, "profile": profile, "timeout": 100}))
            .run()
            .expect_report();
        let words: Vec<&str> = answer.stdout().lines().collect();
        assert_eq!(words.len(), 14, "{profile}: {}", answer.describe());
        for (at, word) in words.iter().enumerate() {
            // A private loopback accepts a packet to itself, which reaches no other process.
            assert!(
                is_refusal(word) || (at == 10 && profile == "loopback"),
                "{profile}, {at}: {word}"
            );
        }
        assert_within(answer.process.wall, Duration::from_secs(10), "refusals without waiting");
    }
    assert!(udp.recv(&mut [0; 8]).is_err(), "a packet reached the host");
    assert_eq!(listeners.count_connections(), 0);
}

#[test]
pub fn h097_listeners_of_the_host_are_unreachable() {
    let fixture = Fixture::new();
    let listeners = TcpListeners::open();
    let addresses = listeners.addresses();
    for (address, port) in &addresses {
        assert_eq!(
            fixture.control_probe("connect.py", &["tcp", address, port]),
            "allowed",
            "{address}"
        );
    }
    assert_eq!(listeners.count_connections(), addresses.len());
    for profile in ["default", "loopback"] {
        for (address, port) in &addresses {
            for target in [address.as_str(), "0.0.0.0", "localhost"] {
                let request =
                    json!({"argv": ["python3", "scripts/connect.py", "tcp", target, port], "profile": profile});
                let word = fixture.request(request).run().expect_word();
                assert!(is_refusal(&word), "{profile}: {target}:{port}: {word}");
            }
        }
    }
    assert_eq!(listeners.count_connections(), 0);
}

#[test]
pub fn h098_metadata_services_are_unreachable() {
    let fixture = Fixture::new();
    for profile in ["default", "loopback"] {
        let command = "for a in 169.254.169.254 fd00:ec2::254 100.100.100.200 168.63.129.16; do python3 scripts/connect.py tcp $a 80; done; \
                       for n in metadata.google.internal metadata instance-data; do python3 scripts/connect.py name $n; done";
        let answer = fixture
            .request(json!({"command": command, "profile": profile, "timeout": 100}))
            .run()
            .expect_report();
        assert_eq!(answer.stdout().lines().count(), 7, "{}", answer.describe());
        assert_within(answer.process.wall, Duration::from_secs(6), "refusals without waiting");
        assert!(
            answer.stdout().lines().all(is_refusal),
            "{profile}: {}",
            answer.describe()
        );
    }
    if need_root() {
        // In a namespace where the address exists, the probe reaches it.
        let serve = "ip link set lo up && ip addr add 169.254.169.254/32 dev lo && \
                     (python3 -c 'import socket; s=socket.create_server((\"169.254.169.254\", 80)); s.accept()' & \
                     for i in $(seq 500); do word=$(python3 scripts/connect.py tcp 169.254.169.254 80); \
                     [ $word = allowed ] && break; sleep 0.05; done; echo $word)";
        assert_eq!(
            fixture.control_shell(&format!("unshare --net bash -c '{}'", serve.replace('\'', "'\\''"))),
            "allowed"
        );
    }
}

#[test]
pub fn h099_abstract_sockets_do_not_cross_the_sandbox() {
    let fixture = Fixture::new();
    let name = fixture.canary().to_owned();
    let listener = AbstractListener::open(&name);
    assert_eq!(fixture.control_probe("connect.py", &["abstract", &name]), "allowed");
    assert_eq!(listener.count_connections(), 1);
    for profile in ["default", "loopback"] {
        let request = json!({"argv": ["python3", "scripts/connect.py", "abstract", name], "profile": profile});
        let word = fixture.request(request).run().expect_word();
        assert!(is_refusal(&word), "{profile}: {word}");
    }
    assert_eq!(listener.count_connections(), 0);
    // Two concurrent runs do not reach each other either.
    let meeting = format!("{name}-meeting");
    let listen = format!("python3 scripts/meet.py {meeting} 300");
    let mut listening = fixture
        .command(&["run", "probe", "--timeout", "300", "--", &listen])
        .spawn();
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "listening");
    let connect = fixture.run_shell(&format!(
        "for i in 1 2 3; do python3 scripts/connect.py abstract {meeting}; done"
    ));
    assert!(connect.stdout().lines().all(is_refusal), "{}", connect.describe());
    kill_and_reap(&mut listening);
    assert!(lines.next().is_none(), "the two runs reached each other");
    // Processes of one sandbox reach each other by the same name.
    let both = format!(
        "python3 scripts/meet.py {meeting} 60 & until python3 scripts/connect.py abstract {meeting} | grep allowed; do sleep 0.1; done; wait"
    );
    assert!(fixture.run_shell(&both).stdout().contains("met"));
}

#[test]
pub fn h100_sockets_in_the_hosts_directories_are_absent() {
    let fixture = Fixture::new();
    let path = fixture.path("host/agent.sock");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(fixture.control_probe("connect.py", &["unix", path]), "allowed");
    assert!(listener.accept().is_ok());
    let places = [
        path,
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/tmp/.X11-unix/X0",
        "/run/user/0/bus",
        "/run/snapd.socket",
    ];
    let args: Vec<[&str; 2]> = places.iter().map(|place| ["unix", *place]).collect();
    let probes: Vec<(&str, &[&str])> = args.iter().map(|args| ("connect.py", &args[..])).collect();
    fixture.assert_refused_inside(&probes);
    assert!(listener.accept().is_err());
    let sockets =
        fixture.run_shell("find / -xdev -type s 2>/dev/null; find /run /var /tmp /workspace -type s 2>/dev/null");
    assert_eq!(sockets.stdout(), "");
    // A socket is refused as a linked input: inputs are files and directories.
    let request = json!({
        "command": "python3 scripts/connect.py unix work/inputs/agent.sock",
        "inputs": [{"from": format!("host://{path}"), "mode": "link"}],
    });
    let answer = fixture.request(request).allow_host_inputs().run();
    assert!(answer.is_refused() || is_refusal(&answer.expect_word()));
    assert!(
        listener.accept().is_err(),
        "a socket of the host was reached through an input"
    );
}

#[test]
fn h101_interfaces_cannot_be_changed() {
    let fixture = Fixture::new();
    if need_root() {
        for way in ["up", "address"] {
            assert_eq!(
                fixture.control_probe_with(&["unshare", "--net"], "interfaces.py", &[way]),
                "allowed",
                "{way}"
            );
        }
    }
    for profile in ["default", "loopback"] {
        for way in ["address", "up"] {
            let request = json!({"argv": ["python3", "scripts/interfaces.py", way], "profile": profile});
            let word = fixture.request(request).run().expect_word();
            assert!(is_refusal(&word), "{profile}, {way}: {word}");
        }
        let tun = fixture
            .request(json!({"argv": ["python3", "scripts/open_for_writing.py", "/dev/net/tun"], "profile": profile}))
            .run()
            .expect_word();
        assert!(is_refusal(&tun));
    }
    let serve = |profile: &str| {
        fixture
            .request(json!({"argv": ["python3", "scripts/local_server.py"], "profile": profile}))
            .run()
            .expect_word()
    };
    assert_eq!(fixture.control_probe("local_server.py", &[]), "allowed");
    assert_eq!(
        serve("loopback"),
        "allowed",
        "this profile has a loopback interface of its own"
    );
    assert!(is_refusal(&serve("default")));
    let interfaces = fixture
        .request(json!({"command": "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | xargs", "profile": "loopback"}))
        .run();
    assert_eq!(interfaces.expect_report().stdout().trim(), "lo");
}
