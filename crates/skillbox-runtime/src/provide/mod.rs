//! The packages of a run: found in the skill, built if the host allows that, and mounted.

mod skill_environments;
mod step;

pub use skill_environments::SkillEnvironment;
pub(crate) use step::ProvidedEnvironment;
