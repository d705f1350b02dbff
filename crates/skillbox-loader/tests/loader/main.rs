//! What a host sees of the loader, through its public interface and on real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod agent_scope; // agents of one session: isolated, inheriting, limited to some skills
mod allowed_tools; // the policy in a session, by the modes of `allowed-tools`
mod budget; // twenty long descriptions in a small budget, in every dialect
mod compatibility; // old skills, default settings, other ways to read a skill
mod dialect_prompt; // snapshots of every dialect's prompt section
mod dialect_tools; // definitions, their schemas, and what each dialect calls its tools
mod documents; // listing, choosing and reading documents
mod injection; // foreign text that tries to break out of its line
mod library; // skills on disk, and a host that uses them
mod load; // loading, and every way in which it is refused
mod modes; // how long a loaded skill stays, and what makes room
mod parallel; // any order of parallel calls gives the same state
mod resources; // which files count as resources
mod skills_list; // the list of skills in a prompt
mod steering; // arguments, manual-only skills, models, contexts and hooks
mod together; // several parts at work: the six scenarios of integration
mod turn; // the start of a turn, and changes on disk
