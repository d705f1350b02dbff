//! Brings the inputs of a run into its workspace.

use skillbox_executor::job::JobSpec;
use skillbox_executor::workspace::{OpenInput, StagedInputs, StagingLimits, Workspace, stage_inputs};
use skillbox_model::{ExecutorKind, InputMode};
use tracing::info_span;

use super::accept::RunSetup;
use crate::inputs::InputSources;
use crate::request_checks::{input_staging_error, refuse_links_to_sockets};
use crate::run_records::CheckedRequest;
use crate::session::Pins;
use crate::{RunError, Runtime};

/// The file of a session that stores its pinned artifact versions.
const PINS_FILE: &str = "pins.json";

impl Runtime {
    pub(super) fn stage(
        &self,
        spec: &JobSpec,
        setup: &RunSetup<'_>,
        checked: &CheckedRequest<'_>,
        workspace: &Workspace,
    ) -> Result<StagedInputs, RunError> {
        let _span = info_span!("workspace.stage.inputs", inputs = spec.inputs.len()).entered();
        if spec.inputs.is_empty() {
            return Ok(StagedInputs::default());
        }
        let session = setup.session.as_ref().map(|locked| &locked.session);
        let stored_pins = session
            .map(|session| session.read_file::<Pins>(PINS_FILE))
            .transpose()?;
        let mut pins = stored_pins.flatten().unwrap_or_default();
        let opened = InputSources {
            artifacts: &self.artifacts,
            scope: &setup.scope,
            pins: &mut pins,
            host: &self.settings.host_directories,
            workspace,
            freeze: &|name, field| {
                let snapshot = self.freeze(checked.catalog, name, field, &setup.cancel)?;
                self.decide_skill(checked, name, &snapshot)?;
                Ok(snapshot)
            },
        }
        .open_all(spec)?;
        let (ready, link_warnings) = match setup.executor.kind() {
            ExecutorKind::Docker => replace_links_by_copies(opened),
            ExecutorKind::Local => (opened, Vec::new()),
        };
        refuse_links_to_sockets(spec, &ready)?;
        let staging_limits = StagingLimits::new(&spec.limits, workspace, &setup.cancel);
        let staged = stage_inputs(workspace, ready, staging_limits)
            .map_err(|error| input_staging_error(error.index, &error.source))?;
        if let Some(session) = session {
            session.update_file(PINS_FILE, |stored| *stored = Some(pins))?;
        }
        Ok(StagedInputs {
            warnings: [link_warnings, staged.warnings].concat(),
            ..staged
        })
    }
}

/// Turns links into copies, with a warning for each. Containers are created before their run, and directories of the host
/// cannot be mounted into an existing container.
fn replace_links_by_copies(inputs: Vec<OpenInput>) -> (Vec<OpenInput>, Vec<String>) {
    let mut warnings = Vec::new();
    let inputs = inputs.into_iter().enumerate().map(|(index, input)| {
        if input.mode == InputMode::Link {
            warnings.push(format!(
                "inputs[{index}]: {} is copied, because containers do not support links",
                input.from
            ));
        }
        OpenInput {
            mode: InputMode::Copy,
            ..input
        }
    });
    (inputs.collect(), warnings)
}
