//! BM25F scores: rare words count more, repeated words count less and less, and long fields count less.

/// The BM25 parameter k1: how fast further occurrences of a word lose weight.
const TERM_SATURATION: f64 = 1.2;
/// The BM25 parameter b: how much the length of a field matters.
const LENGTH_NORMALIZATION: f64 = 0.75;

/// The occurrences of the terms of a query in one field of one skill.
#[derive(Clone, Debug)]
pub(super) struct TermCounts {
    /// The total weight of the matches of each term.
    weights: Vec<f64>,
    word_count: usize,
    /// The offset of the first match.
    first_match: Option<usize>,
}

impl TermCounts {
    pub(super) fn new(terms: usize) -> Self {
        Self {
            weights: vec![0.0; terms],
            word_count: 0,
            first_match: None,
        }
    }

    /// Adds an occurrence of a term at an offset, unless its weight is zero.
    pub(super) fn add_match(&mut self, term: usize, weight: f64, at: usize) {
        if weight > 0.0 {
            self.weights[term] += weight;
            self.first_match.get_or_insert(at);
        }
    }

    /// Adds to the number of words of the field.
    pub(super) fn add_words(&mut self, count: usize) {
        self.word_count += count;
    }

    pub(super) fn weight(&self, term: usize) -> f64 {
        self.weights[term]
    }

    pub(super) fn has_match(&self) -> bool {
        self.first_match.is_some()
    }

    pub(super) fn first_match(&self) -> Option<usize> {
        self.first_match
    }
}

/// Statistics about all skills, from which scores are computed.
pub(super) struct Scorer {
    /// The inverse document frequency of each term.
    idf: Vec<f64>,
    /// The mean number of words in each field.
    mean_field_words: Vec<f64>,
    field_weights: &'static [f64],
}

impl Scorer {
    pub(super) fn new<'c>(
        terms: usize,
        skills: impl Iterator<Item = &'c [TermCounts]>,
        field_weights: &'static [f64],
    ) -> Self {
        let mut total = 0.0;
        let mut matching_skills = vec![0.0; terms];
        let mut words = vec![0.0; field_weights.len()];
        for fields in skills {
            total += 1.0;
            for (term, matching) in matching_skills.iter_mut().enumerate() {
                *matching += f64::from(u8::from(fields.iter().any(|field| field.weights[term] > 0.0)));
            }
            for (sum, field) in words.iter_mut().zip(fields) {
                *sum += field.word_count as f64;
            }
        }
        let idf = matching_skills
            .iter()
            .map(|matching: &f64| ((total - matching + 0.5) / (matching + 0.5) + 1.0).ln());
        Self {
            idf: idf.collect(),
            mean_field_words: words.iter().map(|sum| (sum / f64::max(total, 1.0)).max(1.0)).collect(),
            field_weights,
        }
    }

    /// Scores the fields of one skill.
    pub(super) fn score(&self, fields: &[TermCounts]) -> f64 {
        let by_term = self.idf.iter().enumerate().map(|(term, idf)| {
            let mut occurrences = 0.0;
            for ((field, weight), mean) in fields.iter().zip(self.field_weights).zip(&self.mean_field_words) {
                let length_factor = 1.0 - LENGTH_NORMALIZATION + LENGTH_NORMALIZATION * field.word_count as f64 / mean;
                occurrences += weight * field.weights[term] / length_factor;
            }
            idf * occurrences / (TERM_SATURATION + occurrences)
        });
        by_term.sum()
    }
}
