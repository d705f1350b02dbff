//! x
#![allow(dead_code, unused_imports)]
mod agent;
mod delta;
#[cfg(test)]
mod fixture;
mod one_line;
mod policy;
mod skill_view;
mod snapshot;
mod state;
mod steering;
