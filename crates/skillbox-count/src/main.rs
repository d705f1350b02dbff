//! Fixed pieces of the hot path, for callgrind to count: instructions do not depend on how busy a machine is.
//!
//! `tests/counts/run` starts one case under callgrind, which counts inside the functions named `counted_…` alone, and
//! compares with what is recorded. What comes before is the scenery.

mod catalogue;
mod plan;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let case = std::env::args().nth(1).unwrap_or_default();
    match case.as_str() {
        "profile" => plan::profile(),
        "plan" => plan::plan(),
        "catalogue" => catalogue::catalogue(),
        "digest" => catalogue::digest(),
        other => bail!("no case is called {other:?}; there are profile, plan, catalogue and digest"),
    }
}
