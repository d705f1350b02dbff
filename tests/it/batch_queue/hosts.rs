//! The hosts of a test: a submitter that has skills and files, and workers that have nothing but the queue and the store.

use std::fs;
use std::process::Child;

use crate::harness::{Answer, Fixture, Invocation, kill_and_reap};

/// The words that every command about a queue needs.
pub struct QueueWords {
    address: String,
    store: String,
}

impl QueueWords {
    pub fn new(address: &str, store: &str) -> Self {
        Self {
            address: address.to_owned(),
            store: store.to_owned(),
        }
    }

    /// A store in a directory of the fixture, which all hosts of the test share.
    pub fn with_directory(fixture: &Fixture, address: &str) -> Self {
        Self::new(address, &fixture.path_str("shared-store"))
    }

    pub fn words(&self) -> [&str; 4] {
        ["--queue", &self.address, "--artifacts", &self.store]
    }

    pub fn store(&self) -> &str {
        &self.store
    }
}

/// A command of the submitter.
pub fn submitter<'f>(fixture: &'f Fixture, queue: &QueueWords, args: &[&str]) -> Invocation<'f> {
    let args: Vec<&str> = args
        .iter()
        .copied()
        .take_while(|word| *word != "--")
        .chain(queue.words())
        .chain(args.iter().copied().skip_while(|word| *word != "--"))
        .collect();
    fixture.command(&args)
}

/// A command of a host that has no skills and a state directory of its own.
pub fn other_host<'f>(fixture: &'f Fixture, queue: &QueueWords, host: &str, args: &[&str]) -> Invocation<'f> {
    let (state, skills) = (fixture.path_str(host), fixture.path_str("no-skills"));
    fs::create_dir_all(&skills).unwrap();
    let args: Vec<&str> = ["--state-dir", &state, "--skills", &skills]
        .into_iter()
        .chain(args.iter().copied())
        .chain(queue.words())
        .collect();
    fixture.plain_command(&args)
}

/// A worker, which is killed when this value is dropped.
pub struct Worker(Option<Child>);

impl Worker {
    pub fn start(fixture: &Fixture, queue: &QueueWords, host: &str, args: &[&str]) -> Self {
        let args: Vec<&str> = ["worker"].iter().chain(args).copied().collect();
        Self(Some(other_host(fixture, queue, host, &args).spawn()))
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            kill_and_reap(&mut child);
        }
    }

    /// Ends it as an operator does, with SIGTERM, and returns its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        let mut child = self.0.take()?;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let begin = std::time::Instant::now();
        let ended = crate::harness::wait_with_deadline(&mut child, begin, std::time::Duration::from_secs(60));
        ended.and_then(|(status, ..)| status.code())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The code of the error that a command printed.
#[track_caller]
pub fn error_code(answer: &Answer) -> String {
    answer.expect_refusal().0.to_owned()
}
