//! Integration tests of the whole workspace, in one program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

// What the tests stand on.
mod lab;
mod program;
mod workspace;

// The command line, seen from outside.
mod catalogue_commands;
mod create_command;
mod guided_tour;
mod help_texts;
mod log_lines;
mod output_streams;
mod run_command_line;
mod settings_layers;
mod validate_command;

// What agents are shown of skills, and what they may do with them.
mod agent_loop;
mod disclosure;

// Front doors, opened by the clients that people use.
mod mcp_server;

// The reference tool, equalled byte for byte.
mod parity;

// Skills that run: the contract on every executor, bad requests, the built-in skills, the promises, the hostile cases.
mod builtin_skills;
mod conformance;
mod docker;
mod must_show;
mod parked_runs;
mod request_errors;
mod security;

// The project itself: directions, sizes, names, documents.
mod tidy;
