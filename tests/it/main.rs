//! Integration tests of the whole workspace, in one program.

// What the tests stand on.
mod lab;
mod workspace;

// Running skills in the sandbox.
mod security;
