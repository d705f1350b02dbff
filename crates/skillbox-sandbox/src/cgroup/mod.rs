//! Control groups, versions 1 and 2: where they are, one group per run, and what is left of dead owners.

mod group;
mod layout;
mod meters;
mod sweep;

pub(crate) use group::{Group, Groups};
pub(crate) use layout::Layout;
pub(crate) use meters::Meters;
