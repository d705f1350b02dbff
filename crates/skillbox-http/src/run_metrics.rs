//! Counts the runs of all tenants, whatever started them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use skillbox_runtime::{EndedRun, PhaseDurations};

use crate::histogram::{Histogram, write_header, write_sample};
use crate::lock::lock;

/// The number of skills with a label of their own. Runs of further skills are counted as [`OTHER_SKILLS`].
const MAX_SKILL_LABELS: usize = 200;
/// Not a valid name of a skill.
const OTHER_SKILLS: &str = ":other";

/// Counters of runs.
#[derive(Debug, Default)]
pub(crate) struct RunMetrics {
    counts: Mutex<RunCounts>,
    durations: Histogram,
    queue_waits: Histogram,
    phases: [Histogram; 6],
    degraded: AtomicU64,
}

#[derive(Debug, Default)]
struct RunCounts {
    skills: BTreeSet<String>,
    /// By skill, profile and reason of the end.
    runs: BTreeMap<(String, String, &'static str), u64>,
}

impl RunMetrics {
    /// Counts a run. A run without a report was refused: it counts without skill and profile, which its request may have
    /// invented.
    pub(crate) fn record(&self, run: &EndedRun<'_>) {
        self.queue_waits.observe(run.origin.queue_wait);
        let Ok((report, phases)) = &run.outcome else {
            lock(&self.counts).count("", "", "refused");
            return;
        };
        lock(&self.counts).count(&report.skill, &report.profile, report.ended_by.as_str());
        self.durations.observe(phases.run);
        for (histogram, (_, duration)) in self.phases.iter().zip(phases.by_name()) {
            histogram.observe(duration);
        }
        if report.enforcement.shortfall().is_some() {
            self.degraded.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        let name = "skillbox_runs_total";
        write_header(
            out,
            name,
            "counter",
            "Number of ended runs, by skill, profile and reason of the end.",
        );
        for ((skill, profile, ended_by), count) in &lock(&self.counts).runs {
            let (skill, profile) = (escape_label(skill), escape_label(profile));
            let labels = format!("skill=\"{skill}\",profile=\"{profile}\",ended_by=\"{ended_by}\"");
            write_sample(out, name, &labels, count);
        }
        let name = "skillbox_runs_degraded_total";
        write_header(
            out,
            name,
            "counter",
            "Number of runs with less isolation than tier T0, or than their profile prefers.",
        );
        write_sample(out, name, "", self.degraded.load(Ordering::Relaxed));
        self.durations.write(
            out,
            "skillbox_run_duration_seconds",
            "Duration of runs, without waiting in the queue.",
        );
        self.queue_waits
            .write(out, "skillbox_run_queue_seconds", "Time that runs waited in the queue.");
        let name = "skillbox_run_phase_seconds";
        write_header(out, name, "histogram", "Duration of the phases of runs.");
        for (histogram, (phase, _)) in self.phases.iter().zip(PhaseDurations::default().by_name()) {
            histogram.write_samples(out, name, &format!("phase=\"{phase}\""));
        }
    }
}

impl RunCounts {
    fn count(&mut self, skill: &str, profile: &str, ended_by: &'static str) {
        if self.skills.len() < MAX_SKILL_LABELS && !self.skills.contains(skill) {
            self.skills.insert(skill.to_owned());
        }
        let skill = if self.skills.contains(skill) {
            skill
        } else {
            OTHER_SKILLS
        };
        let key = (skill.to_owned(), profile.to_owned(), ended_by);
        *self.runs.entry(key).or_default() += 1;
    }
}

/// Escapes what would end a label. Lenient names may contain it.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_labels_is_bounded() {
        let mut counts = RunCounts::default();
        for index in 0..MAX_SKILL_LABELS + 50 {
            counts.count(&format!("s{index}"), "default", "exit");
            counts.count("s0", "default", "exit");
        }
        assert_eq!(counts.runs.len(), MAX_SKILL_LABELS + 1);
        let of = |skill: &str| counts.runs[&(skill.to_owned(), "default".to_owned(), "exit")];
        assert_eq!(of("s0"), MAX_SKILL_LABELS as u64 + 51);
        assert_eq!(of(OTHER_SKILLS), 50);
    }

    #[test]
    fn a_name_cannot_end_its_label() {
        assert_eq!(escape_label("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
