//! Statements of the documents that the dialects follow, one test for each, named by document and section.

// deepagents: documents 000 and 001.
mod deepagents_built_ins;
mod deepagents_errors;
mod deepagents_forks;
mod deepagents_hooks;
mod deepagents_order;
mod deepagents_overview;
mod deepagents_resources;
mod deepagents_transcription;

// Specification, Spring AI Alibaba, trpc-agent-go: documents 002, 003 and 004.
pub mod mcp_text_client;
mod saa_dynamic_tools;
mod saa_reload;
mod saa_templates;
mod saa_tools;
mod skill_dir;
mod trpc_containers;
mod trpc_mcp_walk;
mod trpc_turns;

// The contract: when changes on disk enter a session.
mod turn_changes;
