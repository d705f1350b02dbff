//! Fits the list of skills into its budget: descriptions shorten first, then names stand alone, then some are
//! only counted. Loaded skills are never dropped.

use std::borrow::Cow;
use std::fmt;

use super::listed::Listed;
use crate::one_line::{Markup, cut_chars};

/// Shorter than this a description says nothing any more, and the names stand alone.
const SHORTEST_DESCRIPTION: usize = 20;

/// How a dialect writes one entry.
pub(crate) struct EntryStyle<'w> {
    /// What a description must not carry as it is.
    pub(crate) markup: Markup,
    /// Writes the entry without a line break at its end; without a description, the name alone.
    pub(crate) write: &'w WriteEntry<'w>,
}

/// Writes one entry.
pub(crate) type WriteEntry<'w> = dyn Fn(&mut dyn fmt::Write, &Listed<'_>, Option<&str>) -> fmt::Result + 'w;

/// A list that fits.
pub(crate) struct Fit<'l> {
    entries: Vec<Measured<'l>>,
    /// Characters of a description; none where names stand alone.
    description: Option<usize>,
    /// Which entries are written.
    shown: Vec<usize>,
    /// How many are only counted.
    pub(crate) omitted: usize,
}

struct Measured<'l> {
    listed: Listed<'l>,
    description: Cow<'l, str>,
    description_chars: usize,
    /// The entry without its description, with its line break.
    fixed_chars: usize,
}

/// Fits the entries into `budget` characters, of which `note_chars` are needed once some are only counted.
pub(crate) fn fit<'l>(listed: &[Listed<'l>], budget: usize, note_chars: usize, style: &EntryStyle<'_>) -> Fit<'l> {
    let entries: Vec<Measured<'l>> = listed.iter().map(|listed| measure(*listed, style)).collect();
    let all = (0..entries.len()).collect();
    if let Some(description) = longest_descriptions(&entries, budget) {
        return Fit {
            entries,
            description: Some(description),
            shown: all,
            omitted: 0,
        };
    }
    let name_chars = |entry: &Measured<'_>| count(|out| (style.write)(out, &entry.listed, None)) + 1;
    let names: Vec<usize> = entries.iter().map(name_chars).collect();
    let shown = if names.iter().sum::<usize>() <= budget {
        all
    } else {
        names_within(&entries, &names, budget.saturating_sub(note_chars))
    };
    Fit {
        omitted: entries.len() - shown.len(),
        entries,
        description: None,
        shown,
    }
}

impl<'l> Fit<'l> {
    /// The entries that are written.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Listed<'l>> {
        self.shown.iter().map(|at| &self.entries[*at].listed)
    }

    /// Writes the entries that `is_wanted` takes, each with its line break.
    pub(crate) fn write(
        &self,
        out: &mut String,
        style: &EntryStyle<'_>,
        is_wanted: impl Fn(&Listed<'l>) -> bool,
    ) -> fmt::Result {
        // Most texts are ASCII: with room for that many bytes the list does not move while it grows.
        let entry_chars = |entry: &Measured<'_>| {
            let most = self.description.unwrap_or(0);
            entry.fixed_chars + entry.description_chars.min(most)
        };
        out.reserve(self.shown.iter().map(|at| entry_chars(&self.entries[*at])).sum());
        for at in &self.shown {
            let entry = &self.entries[*at];
            if !is_wanted(&entry.listed) {
                continue;
            }
            let description = self.description.map(|most| cut_chars(&entry.description, most));
            (style.write)(out, &entry.listed, description.as_deref())?;
            out.push('\n');
        }
        Ok(())
    }
}

fn measure<'l>(listed: Listed<'l>, style: &EntryStyle<'_>) -> Measured<'l> {
    let description = listed.skill.description_line(style.markup);
    Measured {
        description_chars: description.chars().count(),
        description,
        fixed_chars: count(|out| (style.write)(out, &listed, Some(""))) + 1,
        listed,
    }
}

/// The greatest length to which all descriptions can be cut so that the list fits; none where that is too short.
fn longest_descriptions(entries: &[Measured<'_>], budget: usize) -> Option<usize> {
    let fixed: usize = entries.iter().map(|entry| entry.fixed_chars).sum();
    let longest = entries.iter().map(|entry| entry.description_chars).max().unwrap_or(0);
    let fits = |most: usize| {
        let cut = entries.iter().map(|entry| entry.description_chars.min(most));
        fixed + cut.sum::<usize>() <= budget
    };
    if fits(longest) {
        return Some(longest);
    }
    let (mut good, mut bad) = (SHORTEST_DESCRIPTION, longest);
    if good >= bad || !fits(good) {
        return None;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// Loaded skills, and of the others as many as fit, from the front.
fn names_within(entries: &[Measured<'_>], names: &[usize], budget: usize) -> Vec<usize> {
    let loaded = |at: &usize| entries[*at].listed.loaded;
    let mut used: usize = (0..entries.len()).filter(loaded).map(|at| names[at]).sum();
    let mut full = false;
    let takes = |at: &usize| {
        if loaded(at) {
            return true;
        }
        // The first that does not fit ends the list: what is missing is then one stretch, not holes.
        full |= used + names[*at] > budget;
        if !full {
            used += names[*at];
        }
        !full
    };
    (0..entries.len()).filter(takes).collect()
}

/// Counts the characters that would be written.
pub(crate) fn count(write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> usize {
    struct Count(usize);

    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = write(&mut count);
    count.0
}
