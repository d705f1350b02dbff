//! Removes credentials from a URL before it is shown.

/// The text without whatever may be a user name or password.
///
/// The text may not be a valid URL: a password can contain a slash, a colon or another `@`. So everything between the
/// scheme and the last `@` is removed, wherever that is, and everything after a colon in the authority.
pub(crate) fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('@') => (format!("{scheme}://"), rest),
        _ => (String::new(), text),
    };
    if let Some((_, after)) = rest.rsplit_once('@') {
        return format!("{scheme}***@{after}");
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.split_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{scheme}{host}:{port}{path}")
        }
        Some((name, _)) => format!("{scheme}{name}:***"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        let check = |text: &str, shown: &str| assert_eq!(without_credentials(text), shown, "{text}");
        check("s3://bucket/x", "s3://bucket/x");
        check("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x");
        check("s3://key:SECRET@bucket/x", "s3://***@bucket/x");
        check("s3://key:SEC/RET@bucket/x", "s3://***@bucket/x");
        check("s3://key:SEC/R@T@bucket/x", "s3://***@bucket/x");
        check("s3://key:SEC://RET@bucket", "s3://***@bucket");
        check("s3://key:SEC/RET", "s3://key:***");
        check("key:SECRET@host", "***@host");
    }
}
