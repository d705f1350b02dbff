//! Fits the list of skills into its budget: first it shortens descriptions, then it drops them and lists names only, then
//! it counts the skills that do not fit. Loaded skills are never dropped.

use std::borrow::Cow;
use std::fmt;

use super::list_entry::ListEntry;
use crate::sanitize::{Markup, truncate_chars};

/// A shorter description is useless, so the list then shows names only.
const MIN_DESCRIPTION_CHARS: usize = 20;

/// How a dialect writes an entry.
pub(crate) struct EntryStyle<'w> {
    /// The markup that descriptions are escaped for.
    pub(crate) markup: Markup,
    /// Writes an entry without a final line break; without a description, only the name.
    pub(crate) write: &'w WriteEntry<'w>,
}

/// Writes one entry.
pub(crate) type WriteEntry<'w> = dyn Fn(&mut dyn fmt::Write, &ListEntry<'_>, Option<&str>) -> fmt::Result + 'w;

/// A list that fits into its budget.
pub(crate) struct FittedList<'l> {
    entries: Vec<MeasuredEntry<'l>>,
    /// Maximum length of a description; `None` if the list shows names only.
    max_description_chars: Option<usize>,
    /// Indexes of the entries that the list shows.
    shown: Vec<usize>,
    /// How many entries the list omits.
    pub(crate) omitted: usize,
}

struct MeasuredEntry<'l> {
    list_entry: ListEntry<'l>,
    description: Cow<'l, str>,
    description_chars: usize,
    /// Length of the entry without its description, with its line break.
    fixed_chars: usize,
}

/// Fits the entries into `budget` characters. A list that omits entries needs `note_chars` of them for its note.
pub(crate) fn fit_list<'l>(
    list_entries: &[ListEntry<'l>],
    budget: usize,
    note_chars: usize,
    style: &EntryStyle<'_>,
) -> FittedList<'l> {
    let entries: Vec<MeasuredEntry<'l>> = list_entries
        .iter()
        .map(|list_entry| measure(*list_entry, style))
        .collect();
    let all = (0..entries.len()).collect();
    if let Some(max_chars) = max_description_chars(&entries, budget) {
        return FittedList {
            entries,
            max_description_chars: Some(max_chars),
            shown: all,
            omitted: 0,
        };
    }
    let count_name = |entry: &MeasuredEntry<'_>| count_chars(|out| (style.write)(out, &entry.list_entry, None)) + 1;
    let name_chars: Vec<usize> = entries.iter().map(count_name).collect();
    let shown = if name_chars.iter().sum::<usize>() <= budget {
        all
    } else {
        select_names(&entries, &name_chars, budget.saturating_sub(note_chars))
    };
    FittedList {
        omitted: entries.len() - shown.len(),
        entries,
        max_description_chars: None,
        shown,
    }
}

impl<'l> FittedList<'l> {
    /// The entries that the list shows.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &ListEntry<'l>> {
        self.shown.iter().map(|index| &self.entries[*index].list_entry)
    }

    /// Writes the entries that `is_wanted` accepts, each with a line break.
    pub(crate) fn write(
        &self,
        out: &mut String,
        style: &EntryStyle<'_>,
        is_wanted: impl Fn(&ListEntry<'l>) -> bool,
    ) -> fmt::Result {
        // Most texts are ASCII, so reserving one byte per character avoids reallocations.
        let entry_chars = |entry: &MeasuredEntry<'_>| {
            let max_chars = self.max_description_chars.unwrap_or(0);
            entry.fixed_chars + entry.description_chars.min(max_chars)
        };
        out.reserve(self.shown.iter().map(|index| entry_chars(&self.entries[*index])).sum());
        for index in &self.shown {
            let entry = &self.entries[*index];
            if !is_wanted(&entry.list_entry) {
                continue;
            }
            let description = self
                .max_description_chars
                .map(|max_chars| truncate_chars(&entry.description, max_chars));
            (style.write)(out, &entry.list_entry, description.as_deref())?;
            out.push('\n');
        }
        Ok(())
    }
}

fn measure<'l>(list_entry: ListEntry<'l>, style: &EntryStyle<'_>) -> MeasuredEntry<'l> {
    let description = list_entry.skill.description_line(style.markup);
    MeasuredEntry {
        description_chars: description.chars().count(),
        description,
        fixed_chars: count_chars(|out| (style.write)(out, &list_entry, Some(""))) + 1,
        list_entry,
    }
}

/// Finds the greatest length to which all descriptions can be truncated so that the list fits, unless it is too short.
fn max_description_chars(entries: &[MeasuredEntry<'_>], budget: usize) -> Option<usize> {
    let fixed: usize = entries.iter().map(|entry| entry.fixed_chars).sum();
    let longest = entries.iter().map(|entry| entry.description_chars).max().unwrap_or(0);
    let fits = |max_chars: usize| {
        let truncated = entries.iter().map(|entry| entry.description_chars.min(max_chars));
        fixed + truncated.sum::<usize>() <= budget
    };
    if fits(longest) {
        return Some(longest);
    }
    let (mut good, mut bad) = (MIN_DESCRIPTION_CHARS, longest);
    if good >= bad || !fits(good) {
        return None;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// Selects the loaded skills, and as many of the others as fit, from the front.
fn select_names(entries: &[MeasuredEntry<'_>], name_chars: &[usize], budget: usize) -> Vec<usize> {
    let is_loaded = |index: &usize| entries[*index].list_entry.is_loaded;
    let mut used: usize = (0..entries.len())
        .filter(is_loaded)
        .map(|index| name_chars[index])
        .sum();
    let mut is_full = false;
    let is_selected = |index: &usize| {
        if is_loaded(index) {
            return true;
        }
        // The first entry that does not fit ends the list, so that the list has no gaps.
        is_full |= used + name_chars[*index] > budget;
        if !is_full {
            used += name_chars[*index];
        }
        !is_full
    };
    (0..entries.len()).filter(is_selected).collect()
}

/// Counts the characters that a function writes.
fn count_chars(write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> usize {
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
