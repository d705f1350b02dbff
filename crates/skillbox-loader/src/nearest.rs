//! Names like the one that was asked for.

/// The `most` nearest of the names, best first; of equals the earlier one.
pub(crate) fn nearest<'n>(asked: &str, names: impl Iterator<Item = &'n str>, most: usize) -> Vec<String> {
    let asked = asked.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let contains = !asked.is_empty() && (name.contains(&asked) || asked.contains(&name));
        strsim::jaro_winkler(&asked, &name) + if contains { 0.5 } else { 0.0 }
    };
    let mut scored: Vec<(f64, &str)> = names.map(|name| (likeness(name), name)).collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let names = ["csv-report", "pdf", "pdf-forms", "xlsx"];
        assert_eq!(nearest("PDF_form", names.into_iter(), 2), ["pdf", "pdf-forms"]);
        assert_eq!(nearest("csv-repot", names.into_iter(), 1), ["csv-report"]);
        assert_eq!(nearest("", names.into_iter(), 3).len(), 3);
    }
}
