//! Object stores of a test's own: moto for S3, from PyPI, and Azurite for Azure, from npm. `tests/run peers` installs
//! them and says where.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use skillbox_artifacts::{BucketOptions, Location, Store};

use super::host::need;
use super::process::{finish, program, start};
use crate::workspace::root;

/// Names a Python that has the package `moto`; `tests/run` makes one and sets this.
const MOTO_PYTHON: &str = "SKILLBOX_MOTO_PYTHON";
/// Names the `node_modules` with `azurite` and `node` in it; `tests/run` makes them and sets this.
const AZURITE_MODULES: &str = "SKILLBOX_AZURITE_MODULES";

/// A server that is ready. It ends with this value, or with the test.
struct Server {
    child: Child,
    ready: Value,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = start(command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready = serde_json::from_str(&line).expect("a server tells when it is ready");
        Self { child, ready }
    }

    fn told(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its standard input is its end, and that of what it started.
        drop(self.child.stdin.take());
        let ended = finish(&mut self.child, Instant::now(), Duration::from_secs(10));
        assert!(ended.is_some() || std::thread::panicking(), "a server does not end");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test learns from tests/run what peers there are"
)]
fn peer(variable: &str) -> Option<OsString> {
    let peer = std::env::var_os(variable);
    let what = format!("a server: `tests/run peers` installs it, {variable} says where");
    need(peer.is_some(), &what).then_some(peer).flatten()
}

/// An S3 server with one bucket and one user.
pub struct S3(Server);

impl S3 {
    /// Starts one, or says why not.
    pub fn start() -> Option<Self> {
        let mut command = program(peer(MOTO_PYTHON)?);
        command.arg(root().join("tests/object_store/server.py"));
        Some(Self(Server::start(&mut command)))
    }

    /// What the server said of itself.
    pub fn told(&self, key: &str) -> &str {
        self.0.told(key)
    }

    /// The variables with which everything works.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.told("endpoint").to_owned()),
            ("AWS_ACCESS_KEY_ID", self.told("access_key_id").to_owned()),
            ("AWS_SECRET_ACCESS_KEY", self.told("secret_access_key").to_owned()),
        ]
    }

    /// A place in its bucket.
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", self.told("bucket"))
    }

    /// A store in its bucket.
    pub fn store(&self, prefix: &str, scratch: &Path) -> Store {
        store_at(&self.url(prefix), &self.variables(), scratch)
    }

    /// Asks the server to break something, or how things are.
    pub fn control(&self, what: &str) -> String {
        let address = self.told("endpoint").strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET /_control/{what} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{what}: {answer}");
        body.to_owned()
    }
}

/// An Azure Blob server with one container.
pub struct Azurite(Server);

impl Azurite {
    /// Starts one, or says why not.
    pub fn start() -> Option<Self> {
        let modules = PathBuf::from(peer(AZURITE_MODULES)?);
        let mut command = program(modules.join(".bin/node"));
        command.arg(root().join("tests/object_store/azurite.mjs")).arg(&modules);
        Some(Self(Server::start(&mut command)))
    }

    /// A store in its container.
    pub fn store(&self, prefix: &str, scratch: &Path) -> Store {
        let variables = [
            ("AZURE_STORAGE_ENDPOINT", self.0.told("endpoint").to_owned()),
            ("AZURE_STORAGE_ACCOUNT_NAME", self.0.told("account").to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", self.0.told("key").to_owned()),
        ];
        store_at(
            &format!("az://{}/{prefix}", self.0.told("container")),
            &variables,
            scratch,
        )
    }
}

/// A store in a bucket, which gives up early.
pub fn store_at(url: &str, variables: &[(&str, String)], scratch: &Path) -> Store {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.clone()));
    let options = BucketOptions {
        variables: variables.collect(),
        patience: Duration::from_secs(20),
        ..BucketOptions::new(scratch)
    };
    Store::at(Location::parse(url, Path::new("")).unwrap(), options)
}
