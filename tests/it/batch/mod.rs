//! `skillbox batch`: jobs from files and from lines, durable results, retries, halt rules, bad input, crashes.

mod each;
mod full_disk;
mod lists;
mod outcomes;
pub mod results;
mod resume;
