//! A skillbox server in a separate process, which ends with the measurement.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::bench_runtime::BenchRuntime;

pub(crate) struct ServerProcess {
    process: Child,
    /// The host and port that the server listens on.
    pub address: String,
}

impl ServerProcess {
    #[expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]
    pub(crate) fn start(program: &Path, runtime: &BenchRuntime, args: &[&str]) -> anyhow::Result<Self> {
        let mut process = Command::new(program)
            .args(args)
            .arg("--skills")
            .arg(runtime.directory().join("skills"))
            .arg("--state-dir")
            .arg(runtime.directory().join(format!("state-{}", args[0])))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stderr = process.stderr.take().context("the server has no stderr pipe")?;
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        let address = line.trim().strip_prefix("serving http://");
        let address = address.with_context(|| format!("the server printed {line:?}"))?;
        let address = address.trim_end_matches("/mcp").to_owned();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Ok(Self { process, address })
    }

    /// The resident memory of the server.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = line
            .and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
            .context("the server has no VmRSS in /proc")?;
        Ok(kib / 1024.0)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
