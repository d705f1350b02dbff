//! Batches on a queue: several workers, one store, real servers of NATS JetStream.

mod bad_input;
mod cancel;
mod cluster;
mod faults;
mod hosts;
mod one_server;
mod permissions;
mod priorities;
mod trust;
