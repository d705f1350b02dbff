//! Several ways of doing the same, taken in turns, so that a busy moment of the machine meets all of them.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Rounds that warm everything up and do not count.
const WARM_UP: usize = 20;

/// One way, with what it took.
pub(crate) struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut() -> anyhow::Result<()> + 'a>,
    times: Vec<Duration>,
}

/// What a contender must not exceed: so many times another one's median.
pub(crate) struct Target {
    pub name: &'static str,
    pub against: &'static str,
    pub at_most: f64,
}

/// What one way costs beyond another, against a third.
struct Difference {
    of: &'static str,
    without: &'static str,
    against: &'static str,
    at_most: f64,
}

/// The times of all contenders.
pub(crate) struct Contest<'a> {
    title: &'static str,
    difference: Option<Difference>,
    contenders: Vec<Contender<'a>>,
    targets: Vec<Target>,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(title: &'static str) -> Self {
        Self {
            title,
            difference: None,
            contenders: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Adds a way.
    pub(crate) fn way(&mut self, name: &'static str, work: impl FnMut() -> anyhow::Result<()> + 'a) {
        self.contenders.push(Contender {
            name,
            work: Box::new(work),
            times: Vec::new(),
        });
    }

    /// Adds a target.
    pub(crate) fn target(&mut self, name: &'static str, against: &'static str, at_most: f64) {
        self.targets.push(Target { name, against, at_most });
    }

    /// Adds a target for what one way costs beyond another.
    pub(crate) fn difference(&mut self, of: &'static str, without: &'static str, against: &'static str, at_most: f64) {
        self.difference = Some(Difference {
            of,
            without,
            against,
            at_most,
        });
    }

    fn difference_ratio(&self) -> Option<(f64, &Difference)> {
        let difference = self.difference.as_ref()?;
        let cost = self
            .percentile(difference.of, 50)?
            .saturating_sub(self.percentile(difference.without, 50)?);
        Some((
            cost.as_secs_f64() / self.percentile(difference.against, 50)?.as_secs_f64(),
            difference,
        ))
    }

    /// Takes every way in turns, so many times.
    pub(crate) fn hold(&mut self, rounds: usize) -> anyhow::Result<()> {
        for round in 0..rounds + WARM_UP {
            for contender in &mut self.contenders {
                let begin = Instant::now();
                (contender.work)()?;
                if round >= WARM_UP {
                    contender.times.push(begin.elapsed());
                }
            }
        }
        for contender in &mut self.contenders {
            contender.times.sort_unstable();
        }
        Ok(())
    }

    fn percentile(&self, name: &str, percent: usize) -> Option<Duration> {
        let times = &self.contenders.iter().find(|contender| contender.name == name)?.times;
        times.get(times.len() * percent / 100).copied()
    }

    /// How the median of one relates to another's.
    pub(crate) fn ratio(&self, name: &str, against: &str) -> Option<f64> {
        Some(self.percentile(name, 50)?.as_secs_f64() / self.percentile(against, 50)?.as_secs_f64())
    }

    /// Whether every target that could be measured is met.
    pub(crate) fn is_met(&self) -> bool {
        let mut ratios = self
            .targets
            .iter()
            .filter_map(|target| Some((self.ratio(target.name, target.against)?, target)));
        let difference_met = self
            .difference_ratio()
            .is_none_or(|(ratio, difference)| ratio <= difference.at_most);
        difference_met && ratios.all(|(ratio, target)| ratio <= target.at_most)
    }

    /// For people.
    pub(crate) fn print(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{}", self.title)?;
        writeln!(out, "  {:<34}{:>11}{:>11}{:>11}", "", "p50", "p95", "p99")?;
        for Contender { name, .. } in &self.contenders {
            let shown = |percent| {
                self.percentile(name, percent)
                    .map_or_else(String::new, |time| format!("{:.3} ms", time.as_secs_f64() * 1e3))
            };
            writeln!(out, "  {name:<34}{:>11}{:>11}{:>11}", shown(50), shown(95), shown(99))?;
        }
        for Target { name, against, at_most } in &self.targets {
            match self.ratio(name, against) {
                None => writeln!(out, "  {name} against {against}: not measured here")?,
                Some(ratio) => {
                    let verdict = if ratio <= *at_most { "met" } else { "MISSED" };
                    writeln!(
                        out,
                        "  {name} is {ratio:.2}x {against} (at most {at_most:.2}x): {verdict}"
                    )?;
                }
            }
        }
        if let Some((ratio, difference)) = self.difference_ratio() {
            let verdict = if ratio <= difference.at_most { "met" } else { "MISSED" };
            writeln!(
                out,
                "  the difference is {ratio:.2}x {} (at most {:.2}x): {verdict}",
                difference.against, difference.at_most
            )?;
        }
        Ok(())
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let ways = self.contenders.iter().map(|contender| {
            let micros = |percent| {
                self.percentile(contender.name, percent)
                    .map(|time| time.as_secs_f64() * 1e6)
            };
            json!({"name": contender.name, "p50_us": micros(50), "p95_us": micros(95), "p99_us": micros(99)})
        });
        let targets = self.targets.iter().map(|target| {
            let ratio = self.ratio(target.name, target.against);
            json!({"name": target.name, "against": target.against, "at_most": target.at_most, "ratio": ratio})
        });
        json!({"title": self.title, "ways": ways.collect::<Vec<_>>(), "targets": targets.collect::<Vec<_>>(), "difference_ratio": self.difference_ratio().map(|(ratio, _)| ratio)})
    }
}
