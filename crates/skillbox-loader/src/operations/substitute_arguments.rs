//! Substitutes the caller's arguments in a skill's instructions.

use std::borrow::Cow;

/// Replaces `$ARGUMENTS` with the whole text and `$1`, `$2`, … with its words.
///
/// Without arguments nothing is replaced: instructions often contain shell and awk code, where `$1` has another meaning.
/// For the same reason, a number greater than the number of words stays as it is. If the instructions contain no
/// placeholder, the arguments are appended, so that they are never lost.
pub(crate) fn substitute_arguments<'t>(instructions: &'t str, arguments: Option<&str>) -> Cow<'t, str> {
    let Some(arguments) = arguments else {
        return Cow::Borrowed(instructions);
    };
    let words = split_words(arguments);
    let mut text = String::with_capacity(instructions.len() + arguments.len());
    let mut replaced = false;
    let mut rest = instructions;
    // A single pass, so that a `$1` inside an argument is not replaced.
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (value, length) = find_placeholder(rest, arguments, &words).unwrap_or(("$", 1));
        replaced |= length > 1;
        text.push_str(value);
        rest = &rest[length..];
    }
    text.push_str(rest);
    if !replaced && !arguments.trim().is_empty() {
        text.push_str("\n\nARGUMENTS: ");
        text.push_str(arguments);
        text.push('\n');
    }
    Cow::Owned(text)
}

/// Returns the value and the length of the placeholder at the start of `text`.
fn find_placeholder<'v>(text: &str, arguments: &'v str, words: &'v [String]) -> Option<(&'v str, usize)> {
    const ALL_ARGUMENTS: &str = "$ARGUMENTS";
    if let Some(rest) = text.strip_prefix(ALL_ARGUMENTS) {
        let continues = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return (!continues).then_some((arguments, ALL_ARGUMENTS.len()));
    }
    let digits = text[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 1);
    let number: usize = text[1..1 + digits].parse().ok()?;
    let word = words.get(number.checked_sub(1)?)?;
    Some((word, 1 + digits))
}

/// Splits arguments into words. Quotes preserve blanks; if a quote is not closed, all quotes are literal.
fn split_words(arguments: &str) -> Vec<String> {
    split_quoted(arguments).unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect())
}

fn split_quoted(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced() {
        let check = |text: &str, arguments: Option<&str>, expected: &str| {
            assert_eq!(
                substitute_arguments(text, arguments),
                expected,
                "{text:?} {arguments:?}"
            );
        };
        check("Deploy $1 to $2.", Some("app staging"), "Deploy app to staging.");
        check(
            "Deploy $1 to $2.",
            Some("'my app' \"the stage\""),
            "Deploy my app to the stage.",
        );
        check("Do: $ARGUMENTS!", Some("a  \"b\""), "Do: a  \"b\"!");
        check("awk '{print $1}'", None, "awk '{print $1}'");
        check("$1 costs $100, $0 and $3", Some("it"), "it costs $100, $0 and $3");
        check("$ARGUMENTS_X $ARGUMENTS", Some("y"), "$ARGUMENTS_X y");
        check("$1", Some("$2 $1"), "$2");
        check("No place.", Some("but words"), "No place.\n\nARGUMENTS: but words\n");
        check("No place.", Some(" "), "No place.");
        check("$1", Some("it's"), "it's");
        check("cost: 5$", Some("x"), "cost: 5$\n\nARGUMENTS: x\n");
        check("$10", Some("a b c d e f g h i j"), "j");
    }
}
