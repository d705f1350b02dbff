//! Whether the frozen skills of a run may run, and the records of the runs that started.

mod decide_skill;
mod describe_run;
mod input_digests;
mod lock_cache;
mod settings;
mod skill_files;
mod trust_directory;

pub use decide_skill::declared_needs;
pub(crate) use decide_skill::{HostGrants, SkillDecision};
pub(crate) use describe_run::{RunParts, describe_denied_run, describe_end, describe_run};
pub(crate) use input_digests::digest_inputs;
pub use settings::TrustSettings;
pub use skill_files::{SkillFiles, read_skill_files};
pub use trust_directory::Trust;
