//! Integration tests of the whole workspace, in one program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

// What the tests stand on.
mod cli;
mod harness;
mod workspace;

// The command line, seen from outside.
mod catalog_commands;
mod create_command;
mod demo_command;
mod help_texts;
mod log_lines;
mod output_streams;
mod profile_errors;
mod run_arguments;
mod run_command_line;
mod run_outcome_on_terminal;
mod settings_layers;
mod unloaded_skills;
mod untrusted_directory;
mod validate_command;

// What agents are shown of skills, and what they may do with them.
mod agent_loop;
mod disclosure;
mod seeds;

// What is kept: one list for every kind of store, what object stores do wrong, and the commands on one.
mod artifact_stores;
mod artifacts_in_a_bucket;
mod artifacts_on_disk;
mod object_store_failures;

// Front doors, opened by the clients that people use.
mod http_api;
mod http_limits;

mod http_runs;
mod http_tenants;
mod mcp;
mod operating;
mod tool_results;

// The reference tool, equalled byte for byte.
mod parity;

// Skills that run: the contract on every executor, bad requests, the built-in skills, the promises, the hostile cases,
// what scripts find around them, and why they failed.
mod batch;
mod batch_queue;
mod builtin_skills;
mod conformance;
mod docker;
mod environments;
mod freshness;
mod interruption;
mod network;
mod parked_runs;
mod readme_promises;
mod request_errors;
mod run_hints;
mod sandbox_differences;
mod security;
mod surroundings;
mod writable_skills;

// What was approved is what runs, and the records prove it.
mod trust;

// What a run may hold, and what may never leave it.
mod secrets;

// The project itself: directions, sizes, names, and its documents, whose commands are run as printed.
mod documents;
mod tidy;
