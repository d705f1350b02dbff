//! Names like a misspelt one.

/// The `count` names nearest to `wanted`, best first. Something is always named, however far off it is: the
/// caller asked for a thing that is not there, and wants to know what is.
pub fn nearest<'a, N: AsRef<str> + ?Sized>(
    wanted: &str,
    names: impl Iterator<Item = &'a N>,
    count: usize,
) -> Vec<&'a N> {
    let wanted = wanted.trim().to_lowercase();
    let mut scored: Vec<(f64, &N)> = names.map(|name| (likeness(&wanted, name.as_ref()), name)).collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.as_ref().cmp(y.as_ref())));
    scored.into_iter().take(count).map(|(_, name)| name).collect()
}

/// From 0 to 1. A name that contains what was asked for counts above one that merely looks like it.
fn likeness(wanted: &str, name: &str) -> f64 {
    let name = name.to_lowercase();
    let contained = !wanted.is_empty() && (name.contains(wanted) || wanted.contains(&name));
    let spelt = strsim::jaro_winkler(wanted, &name);
    if contained { 0.9 + spelt / 10.0 } else { spelt * 0.9 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_fragments_find_their_name() {
        let names = ["python-math", "csv-report", "text-stats", "log-triage"];
        for (wanted, best) in [
            ("math", "python-math"),
            ("csv_report", "csv-report"),
            ("CSV-Reprot", "csv-report"),
            ("textstats", "text-stats"),
            ("lgo-triage", "log-triage"),
        ] {
            assert_eq!(nearest(wanted, names.into_iter(), 1), [best], "{wanted}");
        }
        assert_eq!(nearest("zzz", names.into_iter(), 3).len(), 3);
        assert_eq!(nearest("", names.into_iter(), 9).len(), 4);
    }
}
