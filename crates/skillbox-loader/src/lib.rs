//! x
#![allow(missing_docs, dead_code)]
mod one_line;
mod policy;
