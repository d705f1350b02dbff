//! Measures several candidates, which do the same work, in turns, so that a busy machine slows all of them.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::target::{Bound, Target};

/// The number of unmeasured rounds before the measurement.
const WARM_UP_ROUNDS: usize = 10;

/// The pause before each candidate, as between the requests of an agent. In this time the previous candidate finishes
/// its clean-up and prepares its next run.
const PAUSE_BEFORE_CANDIDATE: Duration = Duration::from_millis(4);

/// One candidate with its times.
struct Candidate<'a> {
    name: String,
    work: Box<dyn FnMut() -> anyhow::Result<()> + 'a>,
    times: Vec<Duration>,
}

/// Candidates to be measured.
pub(crate) struct Comparison<'a> {
    title: String,
    candidates: Vec<Candidate<'a>>,
}

/// The times of each candidate.
#[derive(Clone, Debug)]
pub(crate) struct Timings {
    title: String,
    /// Names with their sorted times.
    candidates: Vec<(String, Vec<Duration>)>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            candidates: Vec::new(),
        }
    }

    /// Adds a candidate.
    pub(crate) fn add(&mut self, name: &str, work: impl FnMut() -> anyhow::Result<()> + 'a) {
        self.candidates.push(Candidate {
            name: name.to_owned(),
            work: Box::new(work),
            times: Vec::new(),
        });
    }

    /// Measures the candidates in turns, for this number of rounds.
    pub(crate) fn measure(mut self, rounds: usize) -> anyhow::Result<Timings> {
        let warm_up = WARM_UP_ROUNDS.min(rounds);
        for round in 0..rounds + warm_up {
            for candidate in &mut self.candidates {
                std::thread::sleep(PAUSE_BEFORE_CANDIDATE);
                let begin = Instant::now();
                (candidate.work)()?;
                if round >= warm_up {
                    candidate.times.push(begin.elapsed());
                }
            }
        }
        let sorted = |mut candidate: Candidate<'a>| {
            candidate.times.sort_unstable();
            (candidate.name, candidate.times)
        };
        Ok(Timings {
            title: self.title,
            candidates: self.candidates.into_iter().map(sorted).collect(),
        })
    }
}

impl Timings {
    /// A percentile of the times of a candidate.
    pub(crate) fn percentile(&self, name: &str, percent: usize) -> Option<Duration> {
        let (_, times) = self.candidates.iter().find(|(candidate, _)| candidate == name)?;
        times.get(times.len() * percent / 100).copied()
    }

    /// The ratio of the median of a candidate to that of a reference.
    pub(crate) fn ratio(&self, name: &str, reference: &str) -> Option<f64> {
        Some(self.percentile(name, 50)?.as_secs_f64() / self.percentile(reference, 50)?.as_secs_f64())
    }

    /// The target that the median of a candidate is at most this multiple of the median of a reference.
    pub(crate) fn target(&self, name: &str, reference: &str, at_most: f64) -> Target {
        Target {
            subject: name.to_owned(),
            reference: reference.to_owned(),
            measured: self.ratio(name, reference),
            bound: Bound::RatioAtMost(at_most),
        }
    }

    /// The title and the medians, for a chart.
    pub(crate) fn medians(&self) -> (&str, Vec<(&str, Duration)>) {
        let medians = self
            .candidates
            .iter()
            .filter_map(|(name, times)| Some((name.as_str(), *times.get(times.len() / 2)?)));
        (&self.title, medians.collect())
    }

    /// Prints the times as a table.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        println!("  {:<42}{:>11}{:>11}{:>11}{:>9}", "", "p50", "p95", "p99", "× first");
        let first = self
            .candidates
            .first()
            .map(|(name, _)| name.as_str())
            .unwrap_or_default();
        for (name, _) in &self.candidates {
            let format_percentile = |percent| {
                self.percentile(name, percent)
                    .map_or_else(String::new, |time| format!("{:.3} ms", time.as_secs_f64() * 1e3))
            };
            let ratio = self
                .ratio(name, first)
                .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            println!(
                "  {name:<42}{:>11}{:>11}{:>11}{ratio:>9}",
                format_percentile(50),
                format_percentile(95),
                format_percentile(99)
            );
        }
    }

    /// The times as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let candidates = self.candidates.iter().map(|(name, times)| {
            let micros = |percent| self.percentile(name, percent).map(|time| time.as_secs_f64() * 1e6);
            json!({"name": name, "rounds": times.len(), "p50_us": micros(50), "p95_us": micros(95), "p99_us": micros(99)})
        });
        json!({"title": self.title, "ways": candidates.collect::<Vec<_>>()})
    }
}
