//! An S3 server of a test's own. It is moto, from PyPI; `tests/run peers` installs it and says where.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use skillbox_artifacts::{BucketOptions, Location, Store};

use super::host::need;
use super::process::{program, start};
use crate::workspace::root;

/// Names a Python that has the package `moto`; `tests/run` makes one and sets this.
const PYTHON_VARIABLE: &str = "SKILLBOX_MOTO_PYTHON";

/// A server with one bucket and one user. It ends with this value, or with the test.
pub struct S3 {
    child: Child,
    ready: Value,
}

impl S3 {
    /// Starts one, or says why not.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test learns from tests/run what peers there are"
    )]
    pub fn start() -> Option<Self> {
        let python = std::env::var_os(PYTHON_VARIABLE);
        let reason = format!("a Python with moto: `tests/run peers` makes one, {PYTHON_VARIABLE} names it");
        need(python.is_some(), &reason).then_some(())?;
        let mut command = program(python?);
        command
            .arg(root().join("tests/object_store/server.py"))
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = start(&mut command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready = serde_json::from_str(&line).expect("the server tells when it is ready");
        Some(Self { child, ready })
    }

    /// What the server said of itself.
    pub fn told(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap()
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

/// A store in a bucket, which gives up early.
pub fn store_at(url: &str, variables: &[(&str, String)], scratch: &Path) -> Store {
    let options = BucketOptions {
        variables: variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect(),
        patience: Duration::from_secs(20),
        ..BucketOptions::new(scratch)
    };
    Store::at(Location::parse(url, Path::new("")).unwrap(), options)
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
