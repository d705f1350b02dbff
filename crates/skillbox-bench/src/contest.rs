//! Several ways of doing the same, taken in turns, so that a busy moment of the machine meets all of them.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::claim::{Bound, Claim};

/// Rounds that warm everything up and do not count.
const WARM_UP: usize = 10;

/// Between two ways: what the one before leaves to be tidied up, or prepares for its next time, is not in this one's
/// time, as it is not between the requests of an agent.
const PAUSE: Duration = Duration::from_millis(4);

/// One way, with what it took.
struct Contender<'a> {
    name: String,
    work: Box<dyn FnMut() -> anyhow::Result<()> + 'a>,
    times: Vec<Duration>,
}

/// Ways that are about to be taken.
pub(crate) struct Contest<'a> {
    title: String,
    contenders: Vec<Contender<'a>>,
}

/// What each way took.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    title: String,
    /// Names with their sorted times.
    ways: Vec<(String, Vec<Duration>)>,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            contenders: Vec::new(),
        }
    }

    /// Adds a way.
    pub(crate) fn way(&mut self, name: &str, work: impl FnMut() -> anyhow::Result<()> + 'a) {
        self.contenders.push(Contender {
            name: name.to_owned(),
            work: Box::new(work),
            times: Vec::new(),
        });
    }

    /// Takes every way in turns, so many times.
    pub(crate) fn hold(mut self, rounds: usize) -> anyhow::Result<Times> {
        let warm_up = WARM_UP.min(rounds);
        for round in 0..rounds + warm_up {
            for contender in &mut self.contenders {
                std::thread::sleep(PAUSE);
                let begin = Instant::now();
                (contender.work)()?;
                if round >= warm_up {
                    contender.times.push(begin.elapsed());
                }
            }
        }
        let sorted = |mut contender: Contender<'a>| {
            contender.times.sort_unstable();
            (contender.name, contender.times)
        };
        Ok(Times {
            title: self.title,
            ways: self.contenders.into_iter().map(sorted).collect(),
        })
    }
}

impl Times {
    /// The time that so many percent of the rounds stay below.
    pub(crate) fn percentile(&self, name: &str, percent: usize) -> Option<Duration> {
        let (_, times) = self.ways.iter().find(|(known, _)| known == name)?;
        times.get(times.len() * percent / 100).copied()
    }

    /// How the median of one relates to another's.
    pub(crate) fn ratio(&self, name: &str, against: &str) -> Option<f64> {
        Some(self.percentile(name, 50)?.as_secs_f64() / self.percentile(against, 50)?.as_secs_f64())
    }

    /// The claim that one takes at most so many times the other's median.
    pub(crate) fn claim(&self, name: &str, against: &str, at_most: f64) -> Claim {
        Claim {
            what: name.to_owned(),
            against: against.to_owned(),
            measured: self.ratio(name, against),
            bound: Bound::AtMost(at_most),
        }
    }

    /// The title and the medians, for a chart.
    pub(crate) fn medians(&self) -> (&str, Vec<(&str, Duration)>) {
        let medians = self
            .ways
            .iter()
            .filter_map(|(name, times)| Some((name.as_str(), *times.get(times.len() / 2)?)));
        (&self.title, medians.collect())
    }

    /// For people.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        println!("  {:<42}{:>11}{:>11}{:>11}{:>9}", "", "p50", "p95", "p99", "× first");
        let first = self.ways.first().map(|(name, _)| name.as_str()).unwrap_or_default();
        for (name, _) in &self.ways {
            let shown = |percent| {
                self.percentile(name, percent)
                    .map_or_else(String::new, |time| format!("{:.3} ms", time.as_secs_f64() * 1e3))
            };
            let ratio = self
                .ratio(name, first)
                .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            println!(
                "  {name:<42}{:>11}{:>11}{:>11}{ratio:>9}",
                shown(50),
                shown(95),
                shown(99)
            );
        }
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let ways = self.ways.iter().map(|(name, times)| {
            let micros = |percent| self.percentile(name, percent).map(|time| time.as_secs_f64() * 1e6);
            json!({"name": name, "rounds": times.len(), "p50_us": micros(50), "p95_us": micros(95), "p99_us": micros(99)})
        });
        json!({"title": self.title, "ways": ways.collect::<Vec<_>>()})
    }
}
