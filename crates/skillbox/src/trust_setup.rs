//! Builds the trust settings of a runtime from the settings.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use skillbox_model::ErrorCode;
use skillbox_runtime::{HistoryLimits, SkillDirKeep, Trust, TrustSettings};
use skillbox_trust::{AuditSettings, Publisher, TrustError, TrustMode, TrustPolicy};

use crate::context::Context;
use crate::failure::Failure;
use crate::settings::Environment;

/// A public key or a chain of certificates is smaller.
const MAX_KEY_BYTES: u64 = 1 << 20;

/// The directory of the host key, the approvals and the audit log.
fn trust_directory(context: &Context<'_>) -> PathBuf {
    match &context.trust.trust_dir {
        Some(directory) => directory.clone(),
        None => context.settings.state_dir.join("trust"),
    }
}

/// Whether this host has ever approved a skill.
pub fn has_approvals(context: &Context<'_>) -> bool {
    trust_directory(context).join("approvals").exists()
}

/// The trust settings of this invocation.
pub fn trust_settings(context: &Context<'_>) -> Result<TrustSettings, Failure> {
    let settings = context.trust;
    let defaults = TrustSettings::in_directory(trust_directory(context));
    let publishers = read_publishers(context)?;
    if let Some(name) = settings
        .require_signature
        .iter()
        .find(|name| !publishers.iter().any(|publisher| publisher.name == **name))
    {
        let message = format!("require_signature: the publisher {name} has no key");
        return Err(Failure::new(ErrorCode::InvalidRequest, message)
            .with_hint(format!("add `{name}=FILE` with its public key to `publishers`")));
    }
    let max_file_bytes = defaults.audit.max_file_bytes;
    Ok(TrustSettings {
        policy: TrustPolicy {
            mode: settings.trust,
            deny: settings.deny.clone(),
            required_publishers: settings.require_signature.clone(),
        },
        publishers,
        lock_file: Some(settings.lock_file.clone()),
        audit: AuditSettings {
            mode: settings.audit,
            max_files: usize::try_from(settings.audit_bytes as u64 / max_file_bytes)
                .unwrap_or(usize::MAX)
                .max(1),
            is_forwarded: settings.audit_forward.is_some(),
            ..defaults.audit
        },
        user: user_name(context.layers.environment()),
        ..defaults
    })
}

/// The trust directory of this invocation.
pub fn open_trust(context: &Context<'_>) -> Result<Trust, Failure> {
    trust_settings(context).map(Trust::new)
}

/// How long changes to the directory of a skill stay. Kept changes are files that nobody approved, so they are refused
/// where skills need an approval.
pub fn skill_dir_keep(context: &Context<'_>, keep: SkillDirKeep) -> Result<SkillDirKeep, Failure> {
    if keep == SkillDirKeep::Session && context.trust.trust != TrustMode::Open {
        let message = "skill_dir_keep: `session` needs the trust mode `open`, because a later run would execute files that \
                       nobody approved";
        return Err(Failure::new(ErrorCode::InvalidRequest, message.to_owned())
            .with_hint("set `skill_dir_keep` to `run`, or `trust` to `open`"));
    }
    Ok(keep)
}

/// How much of the history is kept.
pub fn history_limits(context: &Context<'_>) -> HistoryLimits {
    HistoryLimits {
        runs: context.trust.history_runs,
        age: Duration::from_secs(context.trust.history_days as u64 * 24 * 3600),
        bytes: context.trust.history_bytes as u64,
    }
}

/// The failure for an unusable approval, lock file, key or log.
pub fn trust_failure(error: TrustError) -> Failure {
    Failure::from_error(error.code(), &error)
}

fn read_publishers(context: &Context<'_>) -> Result<Vec<Publisher>, Failure> {
    let mut publishers = BTreeMap::new();
    for key in &context.trust.publishers {
        let text = read_key_file(&key.file)?;
        let name = &key.publisher;
        let publisher = publishers
            .entry(name.as_str())
            .or_insert_with(|| Publisher::new(name.clone()));
        publisher.add_key(&text).map_err(|error| {
            let message = format!("publishers: {}: {error}", key.file.display());
            Failure::new(ErrorCode::SignatureInvalid, message)
        })?;
    }
    Ok(publishers.into_values().collect())
}

/// The text of a key file.
pub fn read_key_file(path: &Path) -> Result<String, Failure> {
    let unreadable = |error| {
        let message = format!("cannot read the key {}: {error}", path.display());
        Failure::new(ErrorCode::SignatureInvalid, message)
    };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_KEY_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// The name of the effective user. With sudo, records also name the user who called it.
pub fn user_name(environment: &Environment) -> String {
    let uid = rustix::process::geteuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let name = name.unwrap_or_else(|| format!("uid {uid}"));
    match environment.get("SUDO_USER").and_then(|user| user.to_str()) {
        Some(caller) if uid == 0 && caller != name => format!("{name} (sudo by {caller})"),
        _ => name,
    }
}
