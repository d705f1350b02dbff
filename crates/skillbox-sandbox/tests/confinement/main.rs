//! Confinement on a real kernel: plans, profiles, launches, each layer alone, ordinary users, the spawner process.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue reports why and ends"
)]

mod fixture;
mod launch;
mod layers;
mod ordinary_user;
mod parked_sandboxes;
mod plans;
mod profiles;
mod spawner_process;
mod writable_skill;
