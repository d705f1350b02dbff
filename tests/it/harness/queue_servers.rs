//! Servers of NATS JetStream for single tests: one, or a cluster on the loopback interface. `tests/run peers` installs them
//! and exports where they are.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use super::host::need;
use super::machine_load::wait_until;
use super::process::{kill_and_reap, program, spawn_tracked};

/// Which version of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatsVersion {
    /// The newest.
    New,
    /// The oldest that is supported.
    Old,
}

impl NatsVersion {
    /// The program; `None` where it is not installed.
    #[expect(clippy::disallowed_methods, reason = "tests/run exports which peers there are")]
    pub fn program(self) -> Option<OsString> {
        let variable = match self {
            Self::New => "SKILLBOX_NATS_SERVER",
            Self::Old => "SKILLBOX_OLD_NATS_SERVER",
        };
        let found = std::env::var_os(variable);
        let what = format!("nats-server: `tests/run peers` installs it and sets {variable}");
        need(found.is_some(), &what).then_some(found).flatten()
    }
}

/// The servers of one test. They end with this value.
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

struct NatsServer {
    program: OsString,
    config: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl NatsCluster {
    /// Starts `count` servers with their data below `directory`; `None` where they are not installed.
    pub fn start(version: NatsVersion, count: usize, directory: &Path) -> Option<Self> {
        Self::start_with(version, count, directory, "")
    }

    /// Starts servers with further lines of configuration.
    pub fn start_with(version: NatsVersion, count: usize, directory: &Path, lines: &str) -> Option<Self> {
        let program = version.program()?;
        let ports = free_ports(2 * count);
        let (clients, routes) = ports.split_at(count);
        let all_routes: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let servers = (0..count).map(|index| {
            let data = directory.join(format!("nats-{index}"));
            fs::create_dir_all(&data).unwrap();
            let cluster = match count {
                1 => String::new(),
                _ => format!(
                    "cluster {{ name: tests, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
                    routes[index],
                    all_routes.join(", ")
                ),
            };
            let config = format!(
                "server_name: n{index}\nlisten: \"127.0.0.1:{}\"\njetstream {{ store_dir: {data:?} }}\n{cluster}{lines}\n",
                clients[index]
            );
            let path = directory.join(format!("nats-{index}.conf"));
            fs::write(&path, config).unwrap();
            NatsServer {
                program: program.clone(),
                config: path,
                port: clients[index],
                child: None,
            }
        });
        let mut cluster = Self {
            servers: servers.collect(),
        };
        for index in 0..count {
            cluster.restart(index);
        }
        for server in &cluster.servers {
            wait_until("a NATS server answers", || server.is_ready());
        }
        Some(cluster)
    }

    /// The addresses for `--queue`.
    pub fn address(&self) -> String {
        self.address_with("nats")
    }

    /// The addresses with another scheme.
    pub fn address_with(&self, scheme: &str) -> String {
        let all = self
            .servers
            .iter()
            .map(|server| format!("{scheme}://127.0.0.1:{}", server.port));
        all.collect::<Vec<_>>().join(",")
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Kills one server with SIGKILL.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.servers[index].child.take() {
            kill_and_reap(&mut child);
        }
    }

    /// Starts one server, with the data that it has.
    pub fn restart(&mut self, index: usize) {
        self.kill(index);
        let server = &mut self.servers[index];
        let mut command = program(&server.program);
        let log = fs::File::create(server.config.with_extension("log")).unwrap();
        command.arg("-c").arg(&server.config).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        server.child = Some(spawn_tracked(&mut command));
    }
}

impl NatsServer {
    /// A server greets every client with a line about itself.
    fn is_ready(&self) -> bool {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
    }
}

impl Drop for NatsCluster {
    fn drop(&mut self) {
        for index in 0..self.servers.len() {
            self.kill(index);
        }
    }
}

/// Ports that are free now. All are bound at the same time, so they differ.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap())
        .collect();
    listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap().port())
        .collect()
}
