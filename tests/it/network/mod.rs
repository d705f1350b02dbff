//! Runs with access to allowed hosts: real servers play the outside world, and real clients try to reach them.

mod allowed;
mod authority_parsers;
mod denied;
mod grants;
mod outside_world;
mod restricted;

pub use outside_world::OutsideWorld;
