//! Integration tests of the whole workspace, in one program.
