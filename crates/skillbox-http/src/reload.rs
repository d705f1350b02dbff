//! Replaces tokens, limits and secrets while the server runs, at each SIGHUP.

use std::io;
use std::sync::Arc;

use skillbox_runtime::ConfiguredSecrets;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::limits::Limits;
use crate::tenant::Tenants;
use crate::token::TokenHash;

/// The settings that a server takes over without a restart.
#[derive(Clone, Debug)]
pub struct ReloadedSettings {
    /// The accepted tokens.
    pub tokens: Vec<TokenHash>,
    /// The limits. Those of connections and of memory stay as they are until a restart.
    pub limits: Limits,
    /// The configured secrets. Runs that have started keep theirs.
    pub secrets: ConfiguredSecrets,
}

/// Reads the settings again. An error is the reason why they cannot be used.
pub(crate) type ReadSettings = Box<dyn Fn() -> Result<ReloadedSettings, String> + Send + Sync>;

/// Reloads the settings at each SIGHUP. Settings that cannot be used change nothing: SIGHUP never stops the server.
pub(crate) fn reload_on_signal(app: Arc<App>, read_settings: Option<ReadSettings>) -> io::Result<()> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let read_settings = read_settings.map(Arc::new);
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            let Some(read_settings) = read_settings.clone() else {
                continue;
            };
            let app = app.clone();
            // Reading files may block. A panic in it must not end the loop.
            let reloaded = tokio::task::spawn_blocking(move || read_settings()).await;
            match reloaded
                .unwrap_or_else(|panic| Err(panic.to_string()))
                .and_then(|settings| apply_settings(&app, settings))
            {
                Ok(tenants) => tracing::info!(tenants, "settings reloaded"),
                Err(reason) => tracing::error!(reason, "settings not reloaded; those before stay in force"),
            }
        }
    });
    Ok(())
}

/// Takes over the settings and returns the number of tenants.
fn apply_settings(app: &Arc<App>, settings: ReloadedSettings) -> Result<usize, String> {
    let ReloadedSettings {
        tokens,
        limits,
        secrets,
    } = settings;
    let current = app.tenants.get();
    let tenants = match (&*current, tokens.is_empty()) {
        // Every client is the host's own user, before and after.
        (Tenants::Local(_), true) => None,
        (Tenants::ByToken(..), false) => {
            let results_ttl = limits.results_ttl;
            Some(Tenants::new(
                &app.runtime,
                tokens,
                &app.body_budget,
                results_ttl,
                &current.all(),
            ))
        }
        (Tenants::Local(_), false) => return Err("the first token takes effect only after a restart".to_owned()),
        (Tenants::ByToken(..), true) => {
            return Err(
                "without any token, everyone would have access; restart the server if you want that".to_owned(),
            );
        }
    };
    app.runtime.replace_secrets(secrets);
    app.run_queue.resize(limits.max_runs, limits.max_queued);
    app.limits.replace(limits);
    if let Some(tenants) = tenants {
        app.tenants.replace(tenants);
    }
    Ok(app.tenants.get().all().len())
}
