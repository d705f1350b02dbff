//! What the decision about a skill gives to its run: hosts and secrets.

use skillbox_executor::job::{JobSpec, ProfileBounds};
use skillbox_model::{ExecutorKind, Grants, RunRequest};
use skillbox_repository::{Scope, SkillEntry};
use skillbox_trust::Decision;

use super::accept::{RunSetup, refuse_network_in_container};
use crate::network::{network_access, unreachable_secret_warnings, unused_grant_warning};
use crate::secrets::RunSecrets;
use crate::{RunError, Runtime};

/// An accepted request with everything that was granted to it.
pub(super) struct GrantedRun<'a> {
    pub(super) spec: JobSpec,
    pub(super) setup: RunSetup<'a>,
    pub(super) secrets: RunSecrets,
    pub(super) warnings: Vec<String>,
}

impl Runtime {
    /// What the configuration grants to a skill.
    pub(crate) fn configured_grants(&self, entry: &SkillEntry, digest: &skillbox_model::Digest) -> Grants {
        let policy = &self.trust.settings().policy;
        let secrets = self.secrets.get();
        let is_name_proof = entry.scope() == Scope::BuiltIn || !policy.accepts_every_version();
        Grants {
            network: self.settings.granted_hosts.clone(),
            secrets: secrets.granted_to(entry.name(), digest, entry.dir(), is_name_proof),
            ..Grants::default()
        }
        .union(&self.trust.settings().configured_grants)
    }

    /// What the operator grants on the command line of this process.
    pub(crate) fn call_grants(&self) -> Grants {
        Grants {
            secrets: (*self.call_secrets).clone(),
            ..Grants::default()
        }
    }

    /// Gives a run the hosts and the secrets that the decision grants, and reads the values of the secrets.
    pub(super) fn grant_access<'r>(
        &'r self,
        request: &RunRequest,
        spec: JobSpec,
        setup: RunSetup<'r>,
        decision: &Decision,
    ) -> Result<GrantedRun<'r>, RunError> {
        let hosts = &decision.grants.network;
        // An approval can grant the first host of a run, which then needs a profile with a network.
        let profile = self.resolve_profile_for(request.profile.as_deref(), hosts)?;
        let network = network_access(profile, hosts)?;
        refuse_network_in_container(setup.executor, &network)?;
        let spec = if profile.name == setup.profile.name {
            spec
        } else {
            let bounds = ProfileBounds {
                limits: profile.limits.default.clone(),
                max_wall: profile.limits.wall_max,
                caps: self.settings.request_caps,
            };
            JobSpec::parse(request, spec.run_id, &bounds)?
        };
        let configured = self.secrets.get();
        let executor: ExecutorKind = setup.executor.kind();
        let secrets = RunSecrets::read(&configured, &decision.grants.secrets, request, executor)?;
        let mut warnings = secrets.warnings();
        warnings.extend(unused_grant_warning(profile, hosts));
        warnings.extend(unreachable_secret_warnings(&secrets.granted, &network));
        Ok(GrantedRun {
            spec,
            setup: RunSetup {
                profile,
                network: network.with_secrets(secrets.granted.clone()),
                ..setup
            },
            secrets,
            warnings,
        })
    }
}
