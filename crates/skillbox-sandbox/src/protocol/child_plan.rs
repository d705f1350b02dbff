//! The part of a launch plan that the spawner and the child apply.

use std::borrow::Cow;

use crate::plan::{Command, Step};

/// The part of a launch plan that the spawner and the child apply.
#[derive(Debug)]
pub(crate) struct ChildPlan<'a> {
    pub steps: Cow<'a, [Step]>,
    pub command: Cow<'a, Command>,
}
