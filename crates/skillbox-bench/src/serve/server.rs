//! A server as a process of its own, ended with the measurement.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::ready::Ready;

pub(crate) struct Server {
    process: Child,
    /// Host and port.
    pub place: String,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a measuring program starts things")]
    pub(crate) fn start(program: &Path, ready: &Ready, words: &[&str]) -> anyhow::Result<Self> {
        let mut process = Command::new(program)
            .args(words)
            .arg("--skills")
            .arg(ready.directory().join("skills"))
            .arg("--state-dir")
            .arg(ready.directory().join(format!("state-{}", words[0])))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let told = process.stderr.take().context("its words")?;
        let mut told = BufReader::new(told);
        let mut line = String::new();
        told.read_line(&mut line)?;
        let place = line.trim().strip_prefix("serving http://");
        let place = place.with_context(|| format!("the server said {line:?}"))?;
        let place = place.trim_end_matches("/mcp").to_owned();
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Ok(Self { process, place })
    }

    /// What it holds in memory now.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = line
            .and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
            .context("a resident set")?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
