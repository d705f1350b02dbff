//! Formats an error with all its causes in one line.

use std::error::Error;

/// The message of an error, followed by those of its causes.
pub fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors already include the message of their source.
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Sample {
        #[error("cannot read the list")]
        Outer(#[source] Box<Sample>),
        #[error("cannot open it: {0}")]
        Repeating(#[source] Box<Sample>),
        #[error("no such file")]
        Innermost,
    }

    #[test]
    fn every_cause_appears_once() {
        let outer = |source| Sample::Outer(Box::new(source));
        let repeating = |source| Sample::Repeating(Box::new(source));
        assert_eq!(with_causes(&Sample::Innermost), "no such file");
        assert_eq!(
            with_causes(&outer(Sample::Innermost)),
            "cannot read the list: no such file"
        );
        let all = outer(repeating(Sample::Innermost));
        assert_eq!(with_causes(&all), "cannot read the list: cannot open it: no such file");
    }
}
