//! BM25F: rare words count for more, repeated ones for less and less, long fields for less than short ones.

/// How soon further occurrences of a word stop to matter.
const SATURATION: f64 = 1.2;
/// How much the length of a field matters.
const LENGTH: f64 = 0.75;

/// The terms of a query as one field of one skill has them.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    weights: Vec<f64>,
    words: usize,
    first_match: Option<usize>,
}

impl Counts {
    pub(super) fn new(terms: usize) -> Self {
        Self {
            weights: vec![0.0; terms],
            words: 0,
            first_match: None,
        }
    }

    /// Notes that a term was met at an offset; a weight of nothing notes nothing.
    pub(super) fn matched(&mut self, term: usize, weight: f64, at: usize) {
        if weight > 0.0 {
            self.weights[term] += weight;
            self.first_match.get_or_insert(at);
        }
    }

    /// Notes how many words there were more.
    pub(super) fn words(&mut self, more: usize) {
        self.words += more;
    }

    pub(super) fn weight(&self, term: usize) -> f64 {
        self.weights[term]
    }

    pub(super) fn any(&self) -> bool {
        self.first_match.is_some()
    }

    pub(super) fn first_match(&self) -> Option<usize> {
        self.first_match
    }
}

/// What is known of all skills together.
pub(super) struct Scorer {
    /// How rare each term is.
    rarity: Vec<f64>,
    mean_words: Vec<f64>,
    field_weights: &'static [f64],
}

impl Scorer {
    pub(super) fn new<'c>(
        terms: usize,
        skills: impl Iterator<Item = &'c [Counts]>,
        field_weights: &'static [f64],
    ) -> Self {
        let mut total = 0.0;
        let mut holders = vec![0.0; terms];
        let mut words = vec![0.0; field_weights.len()];
        for fields in skills {
            total += 1.0;
            for (term, holders) in holders.iter_mut().enumerate() {
                *holders += f64::from(u8::from(fields.iter().any(|field| field.weights[term] > 0.0)));
            }
            for (sum, field) in words.iter_mut().zip(fields) {
                *sum += field.words as f64;
            }
        }
        let rarity = holders
            .iter()
            .map(|holders: &f64| ((total - holders + 0.5) / (holders + 0.5) + 1.0).ln());
        Self {
            rarity: rarity.collect(),
            mean_words: words.iter().map(|sum| (sum / f64::max(total, 1.0)).max(1.0)).collect(),
            field_weights,
        }
    }

    /// How well the fields of one skill answer.
    pub(super) fn score(&self, fields: &[Counts]) -> f64 {
        let by_term = self.rarity.iter().enumerate().map(|(term, rarity)| {
            let mut occurrences = 0.0;
            for ((field, weight), mean) in fields.iter().zip(self.field_weights).zip(&self.mean_words) {
                let length = 1.0 - LENGTH + LENGTH * field.words as f64 / mean;
                occurrences += weight * field.weights[term] / length;
            }
            rarity * occurrences / (SATURATION + occurrences)
        });
        by_term.sum()
    }
}
