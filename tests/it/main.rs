//! Integration tests of the whole workspace, in one program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

// What the tests stand on.
mod program;
mod workspace;

// The command line, seen from outside.
mod catalogue_commands;
mod create_command;
mod guided_tour;
mod help_texts;
mod output_streams;
mod settings_layers;
mod validate_command;

// The reference tool, equalled byte for byte.
mod parity;

// The project itself: directions, sizes, names, documents.
mod tidy;
