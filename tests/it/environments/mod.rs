//! Packages of skills: declared, installed in the sandbox, and found by every script without being activated.

mod attacks;
mod bad_declarations;
mod local_registry;
mod public_registries;
mod running;
mod store;
