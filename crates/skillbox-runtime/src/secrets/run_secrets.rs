//! The secrets of one run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use skillbox_executor::Redactor;
use skillbox_model::{ExecutorKind, GrantedSecret, RunRequest, SecretInjection, SecretName};

use super::configured::ConfiguredSecrets;
use super::error::SecretError;

/// The secrets of a run, with their values, and what removes the values from everything that leaves the run.
#[derive(Debug, Default)]
pub(crate) struct RunSecrets {
    pub(crate) granted: Vec<GrantedSecret>,
    pub(crate) redactor: Redactor,
}

impl RunSecrets {
    /// Reads the values of the granted secrets. A secret that has no value, or that cannot be injected as the operator
    /// configured it, refuses the run: a run never gets less than it was granted, and no other form of it.
    pub(crate) fn read(
        configured: &ConfiguredSecrets,
        granted: &BTreeSet<SecretName>,
        request: &RunRequest,
        executor: ExecutorKind,
    ) -> Result<Self, SecretError> {
        refuse_values_in_request(configured, request)?;
        let secrets = granted.iter().map(|name| {
            let Some(secret) = configured.secrets.get(name) else {
                return Err(SecretError::NotConfigured(name.clone()));
            };
            if request.env.contains_key(name.as_str()) {
                return Err(SecretError::VariableTaken {
                    name: name.clone(),
                    field: format!("env.{name}"),
                });
            }
            check_injection(name, secret.injection, executor)?;
            let value = (secret.read)().map_err(|source| SecretError::Unreadable {
                name: name.clone(),
                source,
            })?;
            Ok(GrantedSecret {
                name: name.clone(),
                value,
                hosts: secret.hosts.clone(),
                injection: secret.injection,
            })
        });
        let granted: Vec<GrantedSecret> = secrets.collect::<Result<_, _>>()?;
        let redactor = Redactor::new(granted.iter().map(|secret| (&secret.name, &secret.value)))?;
        Ok(Self { granted, redactor })
    }

    /// How the run gets each secret, for its report and its audit record.
    pub(crate) fn injections(&self) -> BTreeMap<SecretName, SecretInjection> {
        let secrets = self.granted.iter();
        secrets.map(|secret| (secret.name.clone(), secret.injection)).collect()
    }

    /// The variables that hold values themselves.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let secrets = self
            .granted
            .iter()
            .filter(|secret| secret.injection == SecretInjection::Env);
        secrets
            .map(|secret| (secret.name.as_str().into(), secret.value.expose().into()))
            .collect()
    }

    /// One line for each value that the script holds.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let secrets = self
            .granted
            .iter()
            .filter(|secret| secret.injection == SecretInjection::Env);
        secrets
            .map(|secret| {
                let name = &secret.name;
                format!(
                    "the script holds the value of the secret {name} in its environment, because the host configured \
                     `inject = \"env\"`; it can send it to every host that it reaches"
                )
            })
            .collect()
    }
}

/// Refuses what cannot be injected, instead of injecting it in another way.
fn check_injection(name: &SecretName, injection: SecretInjection, executor: ExecutorKind) -> Result<(), SecretError> {
    match (injection, executor) {
        (SecretInjection::Env, _) | (SecretInjection::Header, ExecutorKind::Local) => Ok(()),
        (SecretInjection::Header, ExecutorKind::Docker) => Err(SecretError::NotInjectable {
            name: name.clone(),
            reason: "the docker executor cannot add a value to requests outside the container",
            hint: "run with `--executor local`, or configure `inject = \"env\"`, with which the script holds the value",
        }),
    }
}

/// Refuses a request whose variables contain the value of any configured secret: the caller would bring a value into the
/// sandbox, which only the operator can. A source without a value cannot be compared.
fn refuse_values_in_request(configured: &ConfiguredSecrets, request: &RunRequest) -> Result<(), SecretError> {
    if request.env.is_empty() {
        return Ok(());
    }
    for (name, secret) in &configured.secrets {
        let Ok(value) = (secret.read)() else { continue };
        let redactor = Redactor::new([(name, &value)])?;
        for (variable, text) in &request.env {
            if matches!(redactor.redact_text(text), std::borrow::Cow::Owned(_)) {
                return Err(SecretError::ValueInRequest {
                    name: name.clone(),
                    field: format!("env.{variable}"),
                });
            }
        }
    }
    Ok(())
}
