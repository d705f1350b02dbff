//! The fixed forms in which a value can occur in text.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{GeneralPurpose, general_purpose::NO_PAD};

/// All texts to search for. Percent and backslash escapes are not among them: each byte may be escaped or not, so they
/// are decoded before the search.
pub(super) fn encodings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![
        value.to_vec(),
        hex(value, b"0123456789abcdef"),
        hex(value, b"0123456789ABCDEF"),
    ];
    if value.contains(&b' ') {
        // A form of a web page has `+` for a blank.
        forms.push(
            value
                .iter()
                .map(|&byte| if byte == b' ' { b'+' } else { byte })
                .collect(),
        );
    }
    for alphabet in [&STANDARD, &URL_SAFE] {
        for bytes_before in 0..3 {
            let text = base64_core(value, bytes_before, alphabet);
            // A line of base64 may break after the first character, which is too little for the search across lines.
            forms.push(text[1..].to_vec());
            forms.push(text);
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let digit = |index: u8| digits[usize::from(index)];
    value
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The characters of base64 text that depend on the value only, if `bytes_before` more bytes (modulo three) stand before
/// the value and any number after it.
fn base64_core(value: &[u8], bytes_before: usize, alphabet: &Alphabet) -> Vec<u8> {
    let padded = [vec![0; bytes_before], value.to_vec()].concat();
    let text = GeneralPurpose::new(alphabet, NO_PAD).encode(&padded).into_bytes();
    let first = (bytes_before * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    text[first..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_at_each_alignment() {
        let value = b"canary-\xc3\xbf\xfe-value";
        for before in 0..7 {
            for after in 0..4 {
                let whole = [vec![0xfb; before], value.to_vec(), vec![0xbf; after]].concat();
                for alphabet in [&STANDARD, &URL_SAFE] {
                    let text = GeneralPurpose::new(alphabet, NO_PAD).encode(&whole);
                    let is_found = encodings(value)
                        .iter()
                        .any(|form| text.as_bytes().windows(form.len()).any(|window| window == form));
                    assert!(is_found, "{before} before, {after} after: {text}");
                }
            }
        }
    }
}
