//! Tests of the loader through its public interface, with skills on disk.

#![expect(clippy::unwrap_used, reason = "a failed setup step should fail the test")]

mod agent_scope; // agents of one session: isolated, inheriting, limited to some skills
mod allowed_tools; // the policy for `allowed-tools` in a session
mod budget; // twenty long descriptions in a small budget, in every dialect
mod compatibility; // old skills, default settings, other ways to read a skill
mod dialect_prompt; // snapshots of every dialect's prompt section
mod dialect_tools; // tool definitions and schemas, and the tools of each dialect
mod documents; // listing, selecting and reading documents
mod injection; // untrusted text that tries to break out of its line
mod invocation; // arguments, manual-only skills, models, contexts and hooks
mod library; // fixture: skills on disk, and a host that uses them
mod load; // loading, and every reason to refuse it
mod modes; // how long a skill stays loaded, and where its text appears
mod parallel; // parallel calls give the same state in any order
mod resources; // which files count as resources
mod scenarios; // the six integration scenarios
mod skills_list; // the list of skills in a prompt
mod turn; // the start of a turn, and changes on disk
