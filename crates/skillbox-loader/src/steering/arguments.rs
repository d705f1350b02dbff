//! Puts the caller's arguments into a skill's instructions.

use std::borrow::Cow;

/// Replaces `$ARGUMENTS` by the whole text and `$1`, `$2`, … by its words.
///
/// Without arguments nothing is replaced: instructions are full of shell and awk, where `$1` means something
/// else. For the same reason a number beyond the words given stays as it is. Instructions that name no
/// placeholder get the arguments at their end, so that they are never lost.
pub(crate) fn with_arguments<'t>(instructions: &'t str, arguments: Option<&str>) -> Cow<'t, str> {
    let Some(arguments) = arguments else {
        return Cow::Borrowed(instructions);
    };
    let words = words(arguments);
    let mut text = String::with_capacity(instructions.len() + arguments.len());
    let mut replaced = false;
    let mut rest = instructions;
    // One pass: a `$1` inside an argument is text, not a placeholder.
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (value, length) = placeholder(rest, arguments, &words).unwrap_or(("$", 1));
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

/// The value of the placeholder that `text` begins with, and its length.
fn placeholder<'v>(text: &str, arguments: &'v str, words: &'v [String]) -> Option<(&'v str, usize)> {
    const WHOLE: &str = "$ARGUMENTS";
    if let Some(rest) = text.strip_prefix(WHOLE) {
        let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return (!goes_on).then_some((arguments, WHOLE.len()));
    }
    let digits = text[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 1);
    let number: usize = text[1..1 + digits].parse().ok()?;
    let word = words.get(number.checked_sub(1)?)?;
    Some((word, 1 + digits))
}

/// The words of the arguments; quotes keep blanks, and a quote that is not closed is a character.
fn words(arguments: &str) -> Vec<String> {
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
    fn placeholders_take_what_was_given() {
        let check = |text: &str, arguments: Option<&str>, expected: &str| {
            assert_eq!(with_arguments(text, arguments), expected, "{text:?} {arguments:?}");
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
