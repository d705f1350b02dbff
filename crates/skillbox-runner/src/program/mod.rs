//! The runner: the program that is pid 1 of a container.

mod cgroup_files;
mod connection;
mod container_run;
mod facts;
mod receive_job;
mod send_outputs;
mod sent_skills;
mod supervise;
mod workspace;

pub use container_run::run_container;
