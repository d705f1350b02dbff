//! Advice about the instructions themselves.

use super::Findings;
use crate::parse_code::ParseCode;

const ADVISED_LINES: usize = 500;
const ADVISED_TOKENS: usize = 5_000;

/// Says where the instructions are longer than the specification advises.
pub(crate) fn advise(body: &str, offset: usize, findings: &mut Findings<'_>) {
    let body = body.trim_end();
    let lines = body.lines().count();
    let tokens = estimated_tokens(body);
    if lines > ADVISED_LINES || tokens > ADVISED_TOKENS {
        findings.add(
            ParseCode::LongBody,
            offset,
            format!("the instructions have {lines} lines and about {tokens} tokens"),
            format!(
                "keep them under {ADVISED_LINES} lines and {ADVISED_TOKENS} tokens, and move details to `references/`"
            ),
        );
    }
}

/// Four characters of an alphabet make about one token; an ideograph or a syllable is about one by itself.
fn estimated_tokens(text: &str) -> usize {
    let (letters, signs) = text.chars().fold((0, 0), |(letters, signs), c| match c {
        ..'\u{1100}' => (letters + 1, signs),
        _ => (letters, signs + 1),
    });
    letters / 4 + signs
}

#[cfg(test)]
mod tests {
    use super::estimated_tokens;

    #[test]
    fn tokens_are_estimated_by_script() {
        assert_eq!(estimated_tokens(&"word ".repeat(400)), 500);
        assert_eq!(estimated_tokens(&"навык ".repeat(400)), 600);
        assert_eq!(estimated_tokens(&"技能".repeat(500)), 1000);
    }
}
