//! One GiB of output: how much the server grows.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use std::time::Instant;

use serde_json::{Value, json};

use super::Ready;

const AT_MOST_KIB: u64 = 4 << 10;

pub(crate) struct Flood {
    grown_kib: u64,
    seconds: f64,
}

pub(crate) fn measure(ready: &Ready) -> anyhow::Result<Flood> {
    // The first run pays for buffers that stay.
    ready.run("head -c 1000000 /dev/zero")?;
    let before = peak_kib()?;
    let begin = Instant::now();
    let report = ready.report("small", "head -c 1073741824 /dev/zero", &[])?;
    anyhow::ensure!(report.stdout_bytes == 1 << 30, "{} bytes came", report.stdout_bytes);
    Ok(Flood {
        grown_kib: peak_kib()?.saturating_sub(before),
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// The most memory this process has ever had resident, which only grows: what the flood added is in it.
fn peak_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits: String = line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

impl Flood {
    pub(crate) fn is_met(&self) -> bool {
        self.grown_kib <= AT_MOST_KIB
    }

    pub(crate) fn print(&self) {
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        println!("\n1 GiB of stdout");
        println!(
            "  the server grew by {} KiB (at most {AT_MOST_KIB}): {verdict}; {:.2} s",
            self.grown_kib, self.seconds
        );
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"grown_kib": self.grown_kib, "at_most_kib": AT_MOST_KIB, "seconds": self.seconds})
    }
}
