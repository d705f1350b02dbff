//! 3.8: the network, of which there is none.

use std::net::UdpSocket;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::json;

use crate::lab::{AbstractListener, Scene, TcpListeners, is_refusal, need_root};

#[test]
pub fn h096_no_packet_leaves() {
    let scene = Scene::new();
    let listeners = TcpListeners::open();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    assert_eq!(scene.control("connect.py", &["udp", "127.0.0.1", &port]), "allowed");
    assert!(udp.recv(&mut [0; 8]).is_ok(), "the control's packet arrives");
    for profile in ["default", "loopback", "strict"] {
        // Most daemons map no ids, and then the strictest profile has nothing to run in.
        if scene.docker().is_some_and(|docker| !docker.maps_ids()) && profile == "strict" {
            let refused = scene.ask(json!({"command": "true", "profile": profile})).go();
            assert_eq!(refused.refused().0, "isolation_unavailable");
            continue;
        }
        let command = format!(
            "for a in 1.1.1.1 8.8.8.8 2606:4700:4700::1111 255.255.255.255 224.0.0.1; do \
             python3 scripts/connect.py tcp $a 53; python3 scripts/connect.py udp $a 53; done; \
             python3 scripts/connect.py udp 127.0.0.1 {port}; python3 scripts/connect.py name example.org; \
             python3 scripts/socket_family.py 2 raw 1; python3 scripts/connect.py name localhost.localdomain"
        );
        let answer = scene
            .ask(json!({"command": command, "profile": profile, "timeout": 30}))
            .go()
            .reported();
        let words: Vec<&str> = answer.stdout().lines().collect();
        assert_eq!(words.len(), 14, "{profile}: {}", answer.told());
        for (at, word) in words.iter().enumerate() {
            // A private loopback takes a packet to itself; it still reaches nobody.
            assert!(
                is_refusal(word) || (at == 10 && profile == "loopback"),
                "{profile}, {at}: {word}"
            );
        }
        assert!(
            answer.finished.wall < Duration::from_secs(10),
            "refused at once, not by waiting: {:?}",
            answer.finished.wall
        );
    }
    assert!(udp.recv(&mut [0; 8]).is_err(), "a packet reached the host");
    assert_eq!(listeners.arrivals(), 0);
}

#[test]
pub fn h097_listeners_of_the_host_are_out_of_reach() {
    let scene = Scene::new();
    let listeners = TcpListeners::open();
    let addresses = listeners.addresses();
    for (address, port) in &addresses {
        assert_eq!(
            scene.control("connect.py", &["tcp", address, port]),
            "allowed",
            "{address}"
        );
    }
    assert_eq!(listeners.arrivals(), addresses.len());
    for profile in ["default", "loopback"] {
        for (address, port) in &addresses {
            for target in [address.as_str(), "0.0.0.0", "localhost"] {
                let request =
                    json!({"argv": ["python3", "scripts/connect.py", "tcp", target, port], "profile": profile});
                let word = scene.ask(request).go().word();
                assert!(is_refusal(&word), "{profile}: {target}:{port}: {word}");
            }
        }
    }
    assert_eq!(listeners.arrivals(), 0);
}

#[test]
pub fn h098_metadata_services_are_out_of_reach() {
    let scene = Scene::new();
    let begin = std::time::Instant::now();
    for profile in ["default", "loopback"] {
        let command = "for a in 169.254.169.254 fd00:ec2::254 100.100.100.200 168.63.129.16; do python3 scripts/connect.py tcp $a 80; done; \
                       for n in metadata.google.internal metadata instance-data; do python3 scripts/connect.py name $n; done";
        let answer = scene
            .ask(json!({"command": command, "profile": profile, "timeout": 20}))
            .go()
            .reported();
        assert_eq!(answer.stdout().lines().count(), 7, "{}", answer.told());
        assert!(answer.stdout().lines().all(is_refusal), "{profile}: {}", answer.told());
    }
    assert!(begin.elapsed() < Duration::from_secs(12), "refused at once");
    if need_root() {
        // In a namespace where the address exists, the probe does reach it.
        let serve = "ip link set lo up && ip addr add 169.254.169.254/32 dev lo && \
                     (python3 -c 'import socket; s=socket.create_server((\"169.254.169.254\", 80)); s.accept()' & sleep 0.3; \
                     python3 scripts/connect.py tcp 169.254.169.254 80)";
        assert_eq!(
            scene.control_sh(&format!("unshare --net bash -c '{}'", serve.replace('\'', "'\\''"))),
            "allowed"
        );
    }
}

#[test]
pub fn h099_abstract_sockets_do_not_cross() {
    let scene = Scene::new();
    let name = scene.canary().to_owned();
    let listener = AbstractListener::open(&name);
    assert_eq!(scene.control("connect.py", &["abstract", &name]), "allowed");
    assert_eq!(listener.arrivals(), 1);
    for profile in ["default", "loopback"] {
        let request = json!({"argv": ["python3", "scripts/connect.py", "abstract", name], "profile": profile});
        let word = scene.ask(request).go().word();
        assert!(is_refusal(&word), "{profile}: {word}");
    }
    assert_eq!(listener.arrivals(), 0);
    // Two runs at the same time do not meet either.
    let meeting = format!("{name}-meeting");
    let (first, second) = std::thread::scope(|scope| {
        let listening = scope.spawn(|| scene.probe("meet.py", &[&meeting, "1.0"]));
        let connecting = scope.spawn(|| {
            let tries =
                format!("for i in 1 2 3 4 5 6; do python3 scripts/connect.py abstract {meeting}; sleep 0.1; done");
            scene.sh(&tries).stdout().to_owned()
        });
        (listening.join().unwrap(), connecting.join().unwrap())
    });
    assert_eq!(first.lines().last(), Some("alone"));
    assert!(second.lines().all(is_refusal), "{second}");
    // Inside one sandbox the same name works.
    let both =
        format!("python3 scripts/meet.py {meeting} 5 & sleep 0.3; python3 scripts/connect.py abstract {meeting}; wait");
    assert!(scene.sh(&both).stdout().contains("met"));
}

#[test]
pub fn h100_sockets_in_the_hosts_directories_are_absent() {
    let scene = Scene::new();
    let path = scene.path("host/agent.sock");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(scene.control("connect.py", &["unix", path]), "allowed");
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
    scene.refuses_inside(&probes);
    assert!(listener.accept().is_err());
    let sockets = scene.sh("find / -xdev -type s 2>/dev/null; find /run /var /tmp /workspace -type s 2>/dev/null");
    assert_eq!(sockets.stdout(), "");
    // Handing the socket in as a linked input is refused: only files and directories are inputs.
    let request = json!({
        "command": "python3 scripts/connect.py unix work/inputs/agent.sock",
        "inputs": [{"from": format!("host://{path}"), "mode": "link"}],
    });
    let answer = scene.ask(request).host_allowed().go();
    assert!(answer.json().get("error").is_some() || is_refusal(&answer.word()));
    assert!(
        listener.accept().is_err(),
        "a socket of the host was reached through an input"
    );
}

#[test]
fn h101_interfaces_cannot_be_changed() {
    let scene = Scene::new();
    if need_root() {
        for way in ["up", "address"] {
            assert_eq!(
                scene.control_behind(&["unshare", "--net"], "interfaces.py", &[way]),
                "allowed",
                "{way}"
            );
        }
    }
    for profile in ["default", "loopback"] {
        for way in ["address", "up"] {
            let request = json!({"argv": ["python3", "scripts/interfaces.py", way], "profile": profile});
            let word = scene.ask(request).go().word();
            assert!(is_refusal(&word), "{profile}, {way}: {word}");
        }
        let tun = scene
            .ask(json!({"argv": ["python3", "scripts/open_for_writing.py", "/dev/net/tun"], "profile": profile}))
            .go()
            .word();
        assert!(is_refusal(&tun));
    }
    let serve = |profile: &str| {
        scene
            .ask(json!({"argv": ["python3", "scripts/local_server.py"], "profile": profile}))
            .go()
            .word()
    };
    assert_eq!(scene.control("local_server.py", &[]), "allowed");
    assert_eq!(
        serve("loopback"),
        "allowed",
        "a loopback of its own is what this profile is for"
    );
    assert!(is_refusal(&serve("default")));
    let interfaces = scene
        .ask(json!({"command": "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | xargs", "profile": "loopback"}))
        .go();
    assert_eq!(interfaces.reported().stdout().trim(), "lo");
}
