//! `trust`: what deciding, recording and keeping a run costs, and the speed of a verification of the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use skillbox_model::{Digest, Grants, RelPath, SkillName};
use skillbox_runtime::{RuntimeSettings, TrustSettings};
use skillbox_trust::{
    Approval, ApprovalStore, AuditEvent, AuditLog, AuditMode, AuditSettings, Caller, DecisionInput, FileKind, HostKey,
    ManagedEntity, ManagementActivity, ManifestFile, SignatureStatus, SkillManifest, TrustMode, TrustPolicy, decide,
    verify_log,
};

use crate::bench_runtime::{BenchRuntime, SandboxMode};
use crate::comparison::Comparison;
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub rounds: usize,
    /// Number of records that are verified
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pub records: usize,
    /// Number of stored approvals
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub approvals: usize,
    #[command(flatten)]
    pub output: OutputOptions,
}

const OFF: &str = "audit off, no history";
const ON: &str = "audit on, history";
const SYNC: &str = "audit sync, history";

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let with_audit = |mode: AuditMode, history_runs: usize| {
        BenchRuntime::with_settings(SandboxMode::Parked, |settings: &mut RuntimeSettings| {
            let trust: &mut TrustSettings = &mut settings.trust;
            trust.audit.mode = mode;
            settings.history.runs = history_runs;
        })
    };
    let off = with_audit(AuditMode::Off, 0)?;
    let on = with_audit(AuditMode::On, 10_000)?;
    let sync = with_audit(AuditMode::Sync, 10_000)?;
    let mut comparison = Comparison::new("one run of `true` in a parked sandbox, recorded and kept");
    comparison.add(OFF, || off.run("true"));
    comparison.add(ON, || on.run("true"));
    comparison.add(SYNC, || sync.run("true"));
    let times = comparison.measure(arguments.rounds)?;
    let decision = measure_decision(arguments.approvals)?;
    let verified = measure_verification(arguments.records)?;
    Ok(Report {
        targets: vec![
            times.target(ON, OFF, 1.03),
            Target {
                subject: format!("decision, {} approvals", arguments.approvals),
                reference: "a limit".to_owned(),
                measured: Some(decision.as_secs_f64() * 1e6),
                bound: Bound::MicrosecondsAtMost(20.0),
            },
            Target {
                subject: "audit verify, records a second".to_owned(),
                reference: "a limit".to_owned(),
                measured: Some(verified),
                bound: Bound::PerSecondAtLeast(200_000.0),
            },
        ],
        tables: vec![times],
        remarks: vec![
            format!(
                "deciding about a skill with {} approvals: {:.1} µs",
                arguments.approvals,
                decision.as_secs_f64() * 1e6
            ),
            format!("audit verify: {verified:.0} records a second"),
        ],
    })
}

/// The median time to look an approval up and decide.
fn measure_decision(count: usize) -> anyhow::Result<Duration> {
    let directory = tempfile::tempdir()?;
    let store = ApprovalStore::new(directory.path(), Arc::new(HostKey::open(directory.path())?));
    let name = SkillName::parse("measured")?;
    let mut digests: Vec<Digest> = Vec::new();
    for number in 0..count {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
        let files = SkillManifest::new([ManifestFile {
            path: RelPath::parse("SKILL.md")?,
            kind: FileKind::File,
            sha256: Digest::from_sha256(bytes),
        }])?;
        let approval = Approval::new(name.clone(), files, Grants::default(), "bench", 1);
        digests.push(approval.digest);
        store.insert(&approval)?;
    }
    let policy = TrustPolicy {
        mode: TrustMode::Approved,
        ..TrustPolicy::default()
    };
    let none = Grants::default();
    let mut times = Vec::new();
    // Every approval is read once before, as in a server that has run all of these skills.
    for round in 0..2 {
        for digest in &digests {
            let begin = Instant::now();
            let approval = store.find(digest)?;
            let input = DecisionInput {
                skill: &name,
                digest,
                requested: &none,
                declared: &none,
                configured: &none,
                one_call: &none,
                approval: approval.as_deref(),
                lock: None,
                signature: &SignatureStatus::Unsigned,
                now_ms: 2,
            };
            ensure!(decide(&policy, &input).is_ok(), "an approved skill is refused");
            if round == 1 {
                times.push(begin.elapsed());
            }
        }
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().context("no approvals")
}

/// The number of records that are verified in a second.
fn measure_verification(count: usize) -> anyhow::Result<f64> {
    let directory = tempfile::tempdir()?;
    let key = Arc::new(HostKey::open(directory.path())?);
    let log = AuditLog::open(directory.path(), key.clone(), AuditSettings::default())?;
    let caller = Caller {
        user: "bench".to_owned(),
        ..Caller::default()
    };
    let entity = ManagedEntity {
        kind: "secret",
        name: "EXAMPLE".to_owned(),
        uid: None,
    };
    for _ in 0..count {
        log.append(&caller, &AuditEvent::Managed(ManagementActivity::Read, &entity, "used"))?;
    }
    let begin = Instant::now();
    let report = verify_log(directory.path(), &key)?;
    ensure!(report.bad.is_none() && report.records == count as u64, "{report:?}");
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
