//! A server in a process of its own that makes one run for each line it reads, so that servers in different
//! circumstances can be taken in turns.
#![expect(clippy::disallowed_methods, reason = "a measuring program starts things")]
#![expect(clippy::print_stdout, reason = "the two processes speak through pipes")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::ready::{Ready, Slots, Wish};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Bytes that the server holds resident
    #[arg(long, default_value_t = 0)]
    ballast: usize,
    /// The skill that is run
    #[arg(long, default_value = "small")]
    skill: String,
}

/// Serves until its input ends.
pub(crate) fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    let ballast = vec![1_u8; arguments.ballast];
    let ready = Ready::new(Slots::Parked)?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let wish = Wish {
            command: "true",
            skill: Some(&arguments.skill),
            ..Wish::default()
        };
        ready.report(wish)?;
        println!("{}", ballast.len());
    }
    Ok(())
}

/// Such a server, seen from outside.
pub(crate) struct Pacer {
    child: Child,
    steps: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Pacer {
    /// Starts one. `--mounts N` among the words gives it a view of the host with so many more mounts.
    pub(crate) fn start(words: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = match words {
            ["--mounts", count] => {
                let script = format!(
                    "d=$(mktemp -d) && mount -t tmpfs tmpfs $d && for i in $(seq {count}); do \
                     mkdir $d/$i && mount -t tmpfs -o size=4k tmpfs $d/$i || exit 1; done && exec \"$0\" pace"
                );
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", &script]).arg(program);
                command
            }
            words => {
                let mut command = Command::new(program);
                command.arg("pace").args(words);
                command
            }
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let steps = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut pacer = Self { child, steps, answers };
        pacer.step()?;
        Ok(pacer)
    }

    /// Has one run made.
    pub(crate) fn step(&mut self) -> anyhow::Result<()> {
        let steps = self.steps.as_mut().context("it has ended")?;
        steps.write_all(b"\n")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(!answer.is_empty(), "the server in another process ended");
        Ok(())
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        // The end of its input is its sign.
        self.steps = None;
        let _ended = self.child.wait();
    }
}
