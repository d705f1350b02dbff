//! Forwards the audit log to a syslog server or an HTTP collector.
//!
//! The log on disk is the queue: records are read behind a durable cursor, delivered in order, and the cursor moves only
//! when the receiver has them. A server forwards in a thread of its own; `skillbox audit forward` does for one command.

mod collector;
mod delivery;
mod forwarder;
mod receiver;
mod syslog_message;
mod syslog_stream;

pub use forwarder::{ForwardEvent, ForwardPass, Forwarder, StopSignal};
pub use receiver::Receiver;
