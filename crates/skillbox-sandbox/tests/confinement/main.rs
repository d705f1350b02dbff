//! Confinement on a real kernel: plans, profiles, launches, each layer alone, ordinary users, the spawner's life.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on says so and ends"
)]

mod launch;
mod layers;
mod ordinary_user;
mod plans;
mod profiles;
mod slots;
mod spawner_life;
mod trial;
