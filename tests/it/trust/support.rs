//! Support for the tests of trust: sizes, random numbers, and the audit log.

use serde_json::Value;

use crate::harness::Fixture;

/// How often a test repeats its case: few times, or as the variable says. CONTRIBUTING.md has the full sizes.
#[expect(clippy::disallowed_methods, reason = "the size of a test is a setting of the tests")]
pub fn repetitions(variable: &str, default: usize) -> usize {
    let value = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    value.unwrap_or(default)
}

/// The seed of a test's random numbers, printed when the test fails.
#[expect(clippy::print_stdout, reason = "a failing test says how to repeat it")]
pub fn seed() -> u64 {
    let seed = repetitions("SKILLBOX_TRUST_SEED", 20_261_118) as u64;
    println!("SKILLBOX_TRUST_SEED={seed}");
    seed
}

/// A small generator of random numbers (xorshift64*), the same on every machine.
pub struct RandomNumbers(u64);

impl RandomNumbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % end
    }
}

/// The records of the fixture's log, after a verification of the log.
#[track_caller]
pub fn verified_records(fixture: &Fixture) -> Vec<Value> {
    let verified = fixture.command(&["audit", "verify", "--json"]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.describe());
    let exported = fixture.command(&["audit", "export"]).run();
    assert_eq!(exported.code, Some(0), "{}", exported.describe());
    let text = String::from_utf8(exported.process.stdout).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verified.json()["records"], records.len());
    records
}

/// The ids of runs with a record of this kind: `started`, `denied` or `ended`.
pub fn run_ids(records: &[Value], kind: &str) -> Vec<String> {
    let is_of_kind = |record: &&Value| {
        let is_denied = record["disposition_id"] == 2;
        match kind {
            "started" => record["type_uid"] == 100_701 && !is_denied,
            "denied" => record["type_uid"] == 100_701 && is_denied,
            _ => record["type_uid"] == 100_702,
        }
    };
    let id = |record: &Value| record["process"]["uid"].as_str().unwrap().to_owned();
    records.iter().filter(is_of_kind).map(id).collect()
}
