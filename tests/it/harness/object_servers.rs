//! Object store servers for single tests: moto for S3, from PyPI, and Azurite for Azure, from npm. `tests/run peers`
//! installs them and exports where they are.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use skillbox_artifacts::{BucketOptions, Location, Store};

use super::host::need;
use super::machine_load::CONDITION_TIMEOUT;
use super::process::{program, spawn_tracked, wait_with_deadline};
use crate::workspace::root;

/// Names a Python with the package `moto`; `tests/run` installs one and sets this.
const MOTO_PYTHON: &str = "SKILLBOX_MOTO_PYTHON";
/// Names the `node_modules` with `azurite` and `node`; `tests/run` installs them and sets this.
const AZURITE_MODULES: &str = "SKILLBOX_AZURITE_MODULES";

/// A server that is ready. It ends when this value is dropped, or with the test.
struct Server {
    child: Child,
    /// The line of JSON that the server prints when it is ready.
    ready: Value,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn_tracked(command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready = serde_json::from_str(&line).expect("a server prints one line when it is ready");
        Self { child, ready }
    }

    fn field(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server ends, with what it started, at the end of its standard input.
        drop(self.child.stdin.take());
        let ended = wait_with_deadline(&mut self.child, Instant::now(), CONDITION_TIMEOUT);
        assert!(ended.is_some() || std::thread::panicking(), "a server does not end");
    }
}

#[expect(clippy::disallowed_methods, reason = "tests/run exports which peers there are")]
fn peer_path(variable: &str) -> Option<OsString> {
    let peer = std::env::var_os(variable);
    let what = format!("a server: `tests/run peers` installs it and sets {variable}");
    need(peer.is_some(), &what).then_some(peer).flatten()
}

/// An S3 server with one bucket and one user.
pub struct S3Server(Server);

impl S3Server {
    /// Starts one; `None` where it is not installed.
    pub fn start() -> Option<Self> {
        let mut command = program(peer_path(MOTO_PYTHON)?);
        command.arg(root().join("tests/object_store/server.py"));
        Some(Self(Server::start(&mut command)))
    }

    /// One field of the line that the server printed when it was ready.
    pub fn field(&self, key: &str) -> &str {
        self.0.field(key)
    }

    /// The environment variables that give access to the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.field("endpoint").to_owned()),
            ("AWS_ACCESS_KEY_ID", self.field("access_key_id").to_owned()),
            ("AWS_SECRET_ACCESS_KEY", self.field("secret_access_key").to_owned()),
        ]
    }

    /// The URL of a prefix in its bucket.
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", self.field("bucket"))
    }

    /// A store in its bucket.
    pub fn store(&self, prefix: &str, scratch: &Path) -> Store {
        store_at(&self.url(prefix), &self.variables(), scratch)
    }

    /// Calls a control of the server: it breaks something, or returns a number.
    pub fn control(&self, what: &str) -> String {
        let address = self.field("endpoint").strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(CONDITION_TIMEOUT)).unwrap();
        write!(stream, "GET /_control/{what} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{what}: {answer}");
        body.to_owned()
    }
}

/// An Azure Blob server with one container.
pub struct AzuriteServer(Server);

impl AzuriteServer {
    /// Starts one; `None` where it is not installed.
    pub fn start() -> Option<Self> {
        let modules = PathBuf::from(peer_path(AZURITE_MODULES)?);
        let mut command = program(modules.join(".bin/node"));
        command.arg(root().join("tests/object_store/azurite.mjs")).arg(&modules);
        Some(Self(Server::start(&mut command)))
    }

    /// A store in its container.
    pub fn store(&self, prefix: &str, scratch: &Path) -> Store {
        let variables = [
            ("AZURE_STORAGE_ENDPOINT", self.0.field("endpoint").to_owned()),
            ("AZURE_STORAGE_ACCOUNT_NAME", self.0.field("account").to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", self.0.field("key").to_owned()),
        ];
        store_at(
            &format!("az://{}/{prefix}", self.0.field("container")),
            &variables,
            scratch,
        )
    }
}

/// A store in a bucket.
pub fn store_at(url: &str, variables: &[(&str, String)], scratch: &Path) -> Store {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.clone()));
    let options = BucketOptions {
        variables: variables.collect(),
        request_timeout: CONDITION_TIMEOUT,
        ..BucketOptions::new(scratch)
    };
    Store::at(Location::parse(url, Path::new("")).unwrap(), options)
}
