//! Finds the names most similar to a misspelled one.

/// Returns the `count` names most similar to `wanted`, best first. There is no minimum similarity: `wanted` does not
/// exist, and any existing name helps the caller.
pub fn nearest_names<'a, N: AsRef<str> + ?Sized>(
    wanted: &str,
    names: impl Iterator<Item = &'a N>,
    count: usize,
) -> Vec<&'a N> {
    let wanted = wanted.trim().to_lowercase();
    let mut scored: Vec<(f64, &N)> = names.map(|name| (similarity(&wanted, name.as_ref()), name)).collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.as_ref().cmp(y.as_ref())));
    scored.into_iter().take(count).map(|(_, name)| name).collect()
}

/// The similarity from 0 to 1. A name that contains the wanted text is more similar than one with a similar spelling.
fn similarity(wanted: &str, name: &str) -> f64 {
    let name = name.to_lowercase();
    let is_contained = !wanted.is_empty() && (name.contains(wanted) || wanted.contains(&name));
    let spelling = strsim::jaro_winkler(wanted, &name);
    if is_contained {
        0.9 + spelling / 10.0
    } else {
        spelling * 0.9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_and_partial_names_find_the_name() {
        let names = ["python-math", "csv-report", "text-stats", "log-triage"];
        for (wanted, best) in [
            ("math", "python-math"),
            ("csv_report", "csv-report"),
            ("CSV-Reprot", "csv-report"),
            ("textstats", "text-stats"),
            ("lgo-triage", "log-triage"),
        ] {
            assert_eq!(nearest_names(wanted, names.into_iter(), 1), [best], "{wanted}");
        }
        assert_eq!(nearest_names("zzz", names.into_iter(), 3).len(), 3);
        assert_eq!(nearest_names("", names.into_iter(), 9).len(), 4);
    }
}
