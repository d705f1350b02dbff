//! A server in a separate process that makes one run for each line of its input. This way servers under different
//! conditions can be measured in turns.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]
#![expect(clippy::print_stdout, reason = "the two processes communicate through pipes")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Additional resident memory of the server
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    ballast: usize,
    /// The skill to run
    #[arg(long, default_value = "small")]
    skill: String,
}

/// Makes one run for each line of stdin and prints a line after each.
pub(crate) fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    let ballast = vec![1_u8; arguments.ballast];
    let runtime = BenchRuntime::new(SandboxMode::Parked)?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let spec = RunSpec {
            command: "true",
            skill: Some(&arguments.skill),
            ..RunSpec::default()
        };
        runtime.run_spec(spec)?;
        println!("{}", ballast.len());
    }
    Ok(())
}

/// A stepped server as a child process.
pub(crate) struct SteppedServer {
    child: Child,
    requests: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
}

impl SteppedServer {
    /// Starts a server and makes a first run. The arguments are those of the subcommand, or only `--mounts N` for N
    /// more mounts in the mount namespace of the server.
    pub(crate) fn start(args: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = match args {
            ["--mounts", count] => {
                let script = format!(
                    "d=$(mktemp -d) && mount -t tmpfs tmpfs $d && for i in $(seq {count}); do \
                     mkdir $d/$i && mount -t tmpfs -o size=4k tmpfs $d/$i || exit 1; done && exec \"$0\" stepped-server"
                );
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", &script]).arg(program);
                command
            }
            args => {
                let mut command = Command::new(program);
                command.arg("stepped-server").args(args);
                command
            }
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take();
        let responses = BufReader::new(child.stdout.take().context("the server has no stdout pipe")?);
        let mut server = Self {
            child,
            requests,
            responses,
        };
        server.run_once()?;
        Ok(server)
    }

    /// Makes one run.
    pub(crate) fn run_once(&mut self) -> anyhow::Result<()> {
        let requests = self.requests.as_mut().context("the input of the server is closed")?;
        requests.write_all(b"\n")?;
        let mut response = String::new();
        self.responses.read_line(&mut response)?;
        ensure!(!response.is_empty(), "the server ended without a response");
        Ok(())
    }
}

impl Drop for SteppedServer {
    fn drop(&mut self) {
        // Closing its input ends the server.
        self.requests = None;
        let _ended = self.child.wait();
    }
}
