//! Fixed pieces of the hot path, whose instructions callgrind counts. The counts do not depend on the load of a machine.
//!
//! `tests/counts/run` starts one case under callgrind, which counts only in functions named `counted_…`, and compares
//! the count with the recorded one. The rest of a case is preparation.

mod catalog;
mod plan;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let case = std::env::args().nth(1).unwrap_or_default();
    match case.as_str() {
        "profile" => plan::profile(),
        "plan" => plan::plan(),
        "catalog" => catalog::catalog(),
        "digest" => catalog::digest(),
        other => bail!("unknown case {other:?}; the cases are profile, plan, catalog and digest"),
    }
}
