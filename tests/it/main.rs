//! Integration tests of the whole workspace, in one program.

// What the tests stand on.
mod workspace;

// The project itself: directions, sizes, names, documents.
mod tidy;
