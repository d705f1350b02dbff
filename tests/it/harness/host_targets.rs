//! Processes, listeners and sockets of the host that a script must not reach.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::process::{Child, Stdio};

use super::fixture::Fixture;
use super::process::{kill_and_reap, kill_orphan, orphans, spawn_tracked};

/// A process of the host with the canary in its arguments and its environment.
pub struct CanaryProcess {
    child: Child,
}

impl CanaryProcess {
    /// Starts the process.
    pub fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.unconfined_command("bash");
        // A second command follows the sleep, so that bash does not replace itself by it.
        command.args(["-c", "sleep 1000; true", fixture.canary()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self {
            child: spawn_tracked(&mut command),
        }
    }

    /// Its pid on the host.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Whether it still runs and is not stopped.
    pub fn is_running(&mut self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        self.child.try_wait().unwrap().is_none() && matches!(state, Some('S' | 'R'))
    }
}

impl Drop for CanaryProcess {
    fn drop(&mut self) {
        kill_and_reap(&mut self.child);
        // Its sleep is an orphan now.
        for pid in orphans() {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if line == b"sleep\x001000\x00" {
                kill_orphan(pid);
            }
        }
    }
}

/// Listeners on every address of the host that a script might try.
pub struct TcpListeners {
    listeners: Vec<(SocketAddr, TcpListener)>,
}

impl TcpListeners {
    /// Opens the listeners, without the families and interfaces that the host lacks.
    pub fn open() -> Self {
        let mut addresses = vec!["127.0.0.1:0".to_owned(), "[::1]:0".to_owned()];
        addresses.extend(own_address().map(|address| format!("{address}:0")));
        let open = addresses.iter().filter_map(|address| {
            let listener = TcpListener::bind(address).ok()?;
            listener.set_nonblocking(true).unwrap();
            Some((listener.local_addr().unwrap(), listener))
        });
        Self {
            listeners: open.collect(),
        }
    }

    /// Addresses and ports.
    pub fn addresses(&self) -> Vec<(String, String)> {
        let split = |address: &SocketAddr| (address.ip().to_string(), address.port().to_string());
        self.listeners.iter().map(|(address, _)| split(address)).collect()
    }

    /// Accepts the waiting connections and counts them.
    pub fn count_connections(&self) -> usize {
        let count = |listener: &TcpListener| std::iter::from_fn(|| listener.accept().ok()).count();
        self.listeners.iter().map(|(_, listener)| count(listener)).sum()
    }
}

/// An address of this host that is not loopback. No packet is sent to find it.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// A listener on an abstract Unix socket of the host.
pub struct AbstractListener {
    listener: UnixListener,
}

impl AbstractListener {
    /// Opens the listener under a name.
    pub fn open(name: &str) -> Self {
        let address = UnixAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    /// Accepts the waiting connections and counts them.
    pub fn count_connections(&self) -> usize {
        std::iter::from_fn(|| self.listener.accept().ok()).count()
    }
}
