//! The steps of a plan under construction.

use std::sync::Arc;

use skillbox_model::Layer;

use super::error::PlanError;
use super::op::Op;
use super::step::Step;
use crate::profile::{Need, Profile};

/// The steps of a plan under construction.
pub(super) struct StepList<'a> {
    profile: &'a Profile,
    steps: Vec<UnnumberedStep>,
}

struct UnnumberedStep {
    layers: Vec<Layer>,
    need: Need,
    op: Op,
}

impl<'a> StepList<'a> {
    /// An empty list.
    pub fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            steps: Vec::new(),
        }
    }

    /// Adds a step that must succeed.
    pub fn push_required(&mut self, layers: &[Layer], op: impl Into<Op>) {
        self.push(layers, Need::Required, op);
    }

    /// Adds a step that is required if the profile requires one of its layers, and preferred otherwise.
    pub fn push_with_profile_need(&mut self, layers: &[Layer], op: impl Into<Op>) {
        self.push_with_profile_need_for(layers, layers, op);
    }

    /// Adds a step that is required if the profile requires one of the layers in `needed_by`, and preferred otherwise.
    pub fn push_with_profile_need_for(&mut self, needed_by: &[Layer], layers: &[Layer], op: impl Into<Op>) {
        let is_required = needed_by
            .iter()
            .any(|layer| self.profile.need(*layer) == Need::Required);
        let need = if is_required { Need::Required } else { Need::Preferred };
        self.push(layers, need, op);
    }

    fn push(&mut self, layers: &[Layer], need: Need, op: impl Into<Op>) {
        self.steps.push(UnnumberedStep {
            layers: layers.to_vec(),
            need,
            op: op.into(),
        });
    }

    /// Numbers the steps from 1.
    pub fn into_steps(self) -> Result<Arc<[Step]>, PlanError> {
        let count = self.steps.len();
        if u16::try_from(count).is_err() {
            return Err(PlanError::TooManySteps(count));
        }
        let numbered = (1..=u16::MAX).zip(self.steps).map(|(number, step)| Step {
            number,
            layers: step.layers,
            need: step.need,
            op: step.op,
        });
        Ok(numbered.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::RunOp;
    use super::*;
    use crate::profile::Profiles;

    #[test]
    fn steps_that_cannot_be_numbered_are_an_error() {
        let profiles = Profiles::shipped();
        let list_of = |count: usize| {
            let mut list = StepList::new(profiles.get("default").unwrap());
            for _ in 0..count {
                list.push_required(&[], RunOp::Exec);
            }
            list.into_steps()
        };
        let most = usize::from(u16::MAX);
        assert_eq!(list_of(most).unwrap().last().unwrap().number, u16::MAX);
        assert_eq!(list_of(most + 1), Err(PlanError::TooManySteps(most + 1)));
    }
}
