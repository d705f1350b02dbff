//! One automaton for all forms of all values of a run.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use skillbox_model::SecretName;

use super::encodings::encodings;

/// The compiled search.
pub(super) struct PatternSet {
    automaton: NFA,
    start: StateID,
    /// The number of bytes that each state has matched of a form.
    depths: HashMap<StateID, usize>,
    /// The index of the secret of each form.
    secrets: Vec<usize>,
    names: Vec<SecretName>,
}

/// A form that ends at the byte read last.
pub(super) struct FoundForm {
    pub(super) length: usize,
    pub(super) secret: usize,
}

impl PatternSet {
    pub(super) fn build(values: &[(SecretName, &str)]) -> Result<Self, aho_corasick::BuildError> {
        // Two secrets may have the same value; the first one names it.
        let mut forms: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for (secret, (_, value)) in values.iter().enumerate() {
            for form in encodings(value.as_bytes()) {
                forms.entry(form).or_insert(secret);
            }
        }
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(forms.keys())?;
        let start = automaton
            .start_state(Anchored::No)
            .expect("an automaton of standard semantics supports unanchored searches");
        let mut depths = HashMap::new();
        for form in forms.keys() {
            let mut state = start;
            for (index, &byte) in form.iter().enumerate() {
                // A state stands for one prefix of a form, and reading this prefix from the start leads to it.
                state = automaton.next_state(Anchored::No, state, byte);
                depths.insert(state, index + 1);
            }
        }
        Ok(Self {
            automaton,
            start,
            depths,
            secrets: forms.into_values().collect(),
            names: values.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    pub(super) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// How many of the bytes read last may be the beginning of a form.
    pub(super) fn depth(&self, state: StateID) -> usize {
        self.depths.get(&state).copied().unwrap_or(0)
    }

    pub(super) fn found(&self, state: StateID) -> impl Iterator<Item = FoundForm> {
        let count = if self.automaton.is_match(state) {
            self.automaton.match_len(state)
        } else {
            0
        };
        (0..count).map(move |index| {
            let pattern = self.automaton.match_pattern(state, index);
            FoundForm {
                length: self.automaton.pattern_len(pattern),
                secret: self.secrets[pattern.as_usize()],
            }
        })
    }

    /// The length of the longest form.
    pub(super) fn max_length(&self) -> usize {
        self.automaton.max_pattern_len()
    }

    pub(super) fn names(&self) -> &[SecretName] {
        &self.names
    }
}
