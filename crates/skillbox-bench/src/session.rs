//! `session`: later runs of one session, which find the workspace as the one before left it.

use crate::contest::Contest;
use crate::peers;
use crate::ready::{Ready, Slots, Wish};
use crate::report::{How, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub rounds: usize,
    #[command(flatten)]
    pub how: How,
}

const BARE: &str = "bare bash -c true";
const PARKED: &str = "n-th run of a session, parked";
const ON_DEMAND: &str = "n-th run of a session, on demand";

pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let (parked, on_demand) = (Ready::new(Slots::Parked)?, Ready::new(Slots::OnDemand)?);
    let later = |ready: &Ready| {
        let wish = Wish {
            command: "true",
            session: Some("measured"),
            ..Wish::default()
        };
        ready.report(wish).map(drop)
    };
    let mut contest = Contest::new("later runs of one session");
    contest.way(BARE, || peers::bare("true"));
    contest.way(PARKED, || later(&parked));
    contest.way(ON_DEMAND, || later(&on_demand));
    let times = contest.hold(arguments.rounds)?;
    Ok(Report {
        claims: vec![times.claim(PARKED, BARE, 1.3), times.claim(ON_DEMAND, BARE, 1.7)],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
