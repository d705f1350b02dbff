//! Confinement on a real kernel: plans, profiles, launches, each layer alone, ordinary users, the spawner's life.

mod launch;
mod layers;
mod ordinary_user;
mod plans;
mod profiles;
mod spawner_life;
mod trial;
