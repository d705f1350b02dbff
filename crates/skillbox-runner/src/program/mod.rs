//! The program, in the order of its conversation.

mod conversation;
mod facts;
mod line;
mod meters;
mod receive;
mod send;
mod supervise;

pub use conversation::converse;
