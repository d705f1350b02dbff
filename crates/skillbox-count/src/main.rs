//! Runs one fixed case of the hot path, so that callgrind can count its instructions. Unlike times, the counts do not
//! depend on the load of the machine.
//!
//! `tests/counts/run` runs each case under callgrind and compares the count with the recorded one. Callgrind counts only
//! inside functions named `counted_…`, with the functions they call; the rest of a case prepares and checks.

mod catalog;
mod sandbox;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let case = std::env::args().nth(1).unwrap_or_default();
    match case.as_str() {
        "profile" => sandbox::run_profile_case(),
        "plan" => sandbox::run_plan_case(),
        "catalog" => catalog::run_catalog_case(),
        "digest" => catalog::run_digest_case(),
        other => bail!("unknown case {other:?}; the cases are profile, plan, catalog and digest"),
    }
}
