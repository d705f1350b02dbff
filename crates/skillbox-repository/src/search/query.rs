//! Splits queries and texts into words and compares them.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::score::TermCounts;

/// Words of English that are in nearly every text and say nothing about what is searched for.
const STOP_WORDS: [&str; 40] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "into",
    "is", "it", "me", "my", "of", "on", "or", "our", "some", "that", "the", "their", "them", "these", "this", "to",
    "using", "was", "what", "which", "with", "you", "your",
];

/// The maximum number of terms. More terms do not make a query more precise.
const MAX_TERMS: usize = 32;
/// The minimum length of a term that matches every word that begins with it. Shorter terms would match too many words.
const MIN_PREFIX_CHARS: usize = 3;
/// The weight of a match between a singular and its plural.
const PLURAL_WEIGHT: f64 = 0.8;
/// The weight of a word that begins with the term.
const PREFIX_WEIGHT: f64 = 0.5;

/// A parsed query.
pub(super) struct Query {
    /// The query as typed, and with hyphens between the words, as in names.
    spellings: Vec<String>,
    terms: Vec<Term>,
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let typed = normalize_text(text.trim()).into_owned();
        let parts = typed.split([' ', '_', '\t']).filter(|part| !part.is_empty());
        let hyphenated = parts.collect::<Vec<_>>().join("-");
        let mut spellings = vec![typed, hyphenated];
        spellings.dedup();
        spellings.retain(|spelling| !spelling.is_empty());
        let mut terms: Vec<Term> = Vec::new();
        let mut add = |term: Term| {
            if terms.len() < MAX_TERMS && terms.iter().all(|known| known.text != term.text) {
                terms.push(term);
            }
        };
        // A query of nothing else means these words.
        let is_only_stop_words = words_of(text).all(is_stop_word);
        for run in split_into_runs(text) {
            match run.script {
                Script::Spaced if !is_only_stop_words && is_stop_word(run.text) => {}
                Script::Spaced => add(Term::word(normalize_text(run.text).into_owned())),
                // A single character is a term only if it has no neighbor; pairs are more precise.
                Script::Unspaced => match char_pairs(&normalize_text(run.text)) {
                    pairs if pairs.is_empty() => add(Term::fragment(normalize_text(run.text).into_owned())),
                    pairs => pairs.into_iter().map(Term::fragment).for_each(&mut add),
                },
            }
        }
        Self { spellings, terms }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.spellings.is_empty()
    }

    pub(super) fn spellings(&self) -> impl Iterator<Item = &str> {
        self.spellings.iter().map(String::as_str)
    }

    /// The number of distinct terms.
    pub(super) fn term_count(&self) -> usize {
        self.terms.len()
    }

    /// Counts the terms in a text.
    pub(super) fn count_terms(&self, text: &str) -> TermCounts {
        let mut counts = TermCounts::new(self.terms.len());
        for run in split_into_runs(text) {
            let normalized = normalize_text(run.text);
            let mut add_matches = |weigh: &dyn Fn(&Term) -> f64| {
                for (index, term) in self.terms.iter().enumerate() {
                    counts.add_match(index, weigh(term), run.offset);
                }
            };
            match run.script {
                Script::Spaced => add_matches(&|term| term.weight_in_word(&normalized)),
                Script::Unspaced => add_matches(&|term| term.weight_in_run(&normalized)),
            }
            counts.add_words(match run.script {
                Script::Spaced => 1,
                Script::Unspaced => normalized.chars().count(),
            });
        }
        counts
    }
}

/// One term of a query.
struct Term {
    text: String,
    script: Script,
    /// Whether words that begin with the term match.
    matches_prefixes: bool,
    /// The term without its final `s`, in case it is a plural.
    singular: Option<String>,
}

impl Term {
    fn word(text: String) -> Self {
        let matches_prefixes = text.chars().count() >= MIN_PREFIX_CHARS;
        let singular = text.strip_suffix('s').filter(|stem| stem.len() >= MIN_PREFIX_CHARS);
        Self {
            singular: singular.map(str::to_owned),
            matches_prefixes,
            script: Script::Spaced,
            text,
        }
    }

    /// One or two characters of a script without blanks.
    fn fragment(text: String) -> Self {
        Self {
            text,
            script: Script::Unspaced,
            matches_prefixes: false,
            singular: None,
        }
    }

    fn weight_in_word(&self, word: &str) -> f64 {
        if self.script != Script::Spaced {
            0.0
        } else if word == self.text {
            1.0
        } else if self.singular.as_deref() == Some(word) || word.strip_suffix('s') == Some(&self.text) {
            PLURAL_WEIGHT
        } else if self.matches_prefixes && word.starts_with(&self.text) {
            PREFIX_WEIGHT
        } else {
            0.0
        }
    }

    fn weight_in_run(&self, run: &str) -> f64 {
        match self.script {
            Script::Spaced => 0.0,
            Script::Unspaced => run.matches(&self.text).count() as f64,
        }
    }
}

/// Whether a script has blanks between words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Spaced,
    Unspaced,
}

/// A part of a text in one kind of script, without blanks and punctuation.
struct TextRun<'t> {
    text: &'t str,
    offset: usize,
    script: Script,
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.iter().any(|stop_word| stop_word.eq_ignore_ascii_case(word))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    split_into_runs(text).map(|run| run.text)
}

fn split_into_runs(text: &str) -> impl Iterator<Item = TextRun<'_>> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(|c| script_of(c).is_some())?;
        let script = text[start..].chars().next().and_then(script_of)?;
        let end = text[start..].find(|c| script_of(c) != Some(script));
        let end = end.map_or(text.len(), |length| start + length);
        rest = end;
        Some(TextRun {
            text: &text[start..end],
            offset: start,
            script,
        })
    })
}

fn script_of(c: char) -> Option<Script> {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric().then_some(Script::Spaced);
    }
    if is_unspaced(c) {
        Some(Script::Unspaced)
    } else if c.is_alphanumeric() || is_combining_mark(c) {
        Some(Script::Spaced)
    } else {
        None
    }
}

/// Whether a character belongs to a script without blanks between words, or, as in Korean, with blanks only between
/// phrases.
fn is_unspaced(c: char) -> bool {
    let letter = c.is_alphanumeric() || is_combining_mark(c) || c == '々';
    letter
        && matches!(u32::from(c),
            0x0e00..=0x0eff // Thai, Lao
            | 0x1000..=0x109f // Burmese
            | 0x1100..=0x11ff // Korean letters
            | 0x1780..=0x17ff // Khmer
            | 0x2e80..=0x2fdf // radicals
            | 0x3005..=0x30ff // Japanese syllables
            | 0x3100..=0x318f // Bopomofo, Korean letters
            | 0x31f0..=0x31ff // Katakana extensions
            | 0x3400..=0x9fff // Chinese characters
            | 0xac00..=0xd7ff // Korean syllables
            | 0xf900..=0xfaff // compatibility ideographs
            | 0xff66..=0xffdc // half-width forms
            | 0x2_0000..=0x3_ffff) // rare Chinese characters
}

/// Every pair of adjacent characters in a run.
fn char_pairs(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Normalizes a text for comparison: lower case and NFKC.
pub(super) fn normalize_text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => text.to_ascii_lowercase().into(),
            false => text.into(),
        }
    } else {
        text.nfkc().flat_map(char::to_lowercase).collect::<String>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(query: &str) -> Vec<String> {
        Query::parse(query).terms.into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn queries_are_split_into_words_and_pairs() {
        assert_eq!(terms("Extract PDF-forms, v2!"), ["extract", "pdf", "forms", "v2"]);
        assert_eq!(terms("報表分析"), ["報表", "表分", "分析"]);
        assert_eq!(terms("表"), ["表"]);
        assert_eq!(terms("CSV報表 を作る"), ["csv", "報表", "を作", "作る"]);
        assert_eq!(terms("ＣＳＶ ｶﾞ"), ["csv", "ガ"]);
        assert_eq!(terms("Caf\u{e9} cafe\u{301}"), ["caf\u{e9}"]);
        assert!(terms("  --- ").is_empty());
        assert_eq!(terms(&"k b c d ".repeat(50)).len(), 4);
    }

    #[test]
    fn stop_words_are_ignored_unless_there_are_no_others() {
        assert_eq!(terms("make a chart of the table"), ["make", "chart", "table"]);
        assert_eq!(terms("The Chart"), ["chart"]);
        assert_eq!(terms("to do"), ["to", "do"]);
    }

    #[test]
    fn weights_depend_on_the_kind_of_match() {
        let weight = |query: &str, text: &str| Query::parse(query).count_terms(text).weight(0);
        assert_eq!(weight("report", "A Report, a report."), 2.0);
        assert_eq!(weight("report", "reports"), PLURAL_WEIGHT);
        assert_eq!(weight("reports", "report"), PLURAL_WEIGHT);
        assert_eq!(weight("report", "reporting"), PREFIX_WEIGHT);
        assert_eq!(weight("re", "report"), 0.0);
        assert_eq!(weight("分析", "資料分析與分析"), 2.0);
        assert_eq!(weight("分析", "分 析"), 0.0);
    }
}
