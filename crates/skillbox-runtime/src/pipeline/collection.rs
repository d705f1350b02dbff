//! Which files of the workspace are collected after a run.

use skillbox_executor::job::{CollectionSpec, ExcessFileReporting, OutputGlobs};
use skillbox_executor::workspace::{Baseline, Outputs, Workspace, collect};
use skillbox_model::SkillName;
use tracing::info_span;

use crate::RunError;

/// Maximum number of files that are listed when the request names no globs.
const DEFAULT_LISTED_FILES: usize = 20;

/// Completes what the request asks to collect. A request without globs collects all of `out/` for an export, and otherwise
/// lists the first files of `out/` and of the skill's directory without their content.
pub(super) fn apply_collection_defaults(
    requested: CollectionSpec,
    skill: &SkillName,
    is_exported: bool,
) -> CollectionSpec {
    match (requested.globs.is_empty(), is_exported) {
        (false, false) => requested,
        (false, true) => CollectionSpec {
            keep_open: true,
            ..requested
        },
        (true, true) => CollectionSpec {
            globs: OutputGlobs::everything_in("out"),
            keep_open: true,
            ..requested
        },
        (true, false) => CollectionSpec {
            globs: OutputGlobs::results_in(&["out", &format!("skills/{skill}")]),
            inline: false,
            inline_binary: false,
            save: false,
            keep_open: false,
            excess_files: ExcessFileReporting::CountOnly,
            max_files: DEFAULT_LISTED_FILES,
            ..requested
        },
    }
}

pub(super) fn collect_outputs(
    workspace: &Workspace,
    collection: &CollectionSpec,
    baseline: &Baseline,
) -> Result<Outputs, RunError> {
    let _span = info_span!("workspace.collect").entered();
    collect(workspace, collection, baseline).map_err(|error| RunError::Collect(error.into()))
}
