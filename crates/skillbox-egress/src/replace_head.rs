//! Replaces placeholders in the URL and the headers of a request.

use std::collections::BTreeSet;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use skillbox_model::SecretName;

use crate::denial::{Denial, Target};
use crate::placeholder::PlaceholderSet;

/// All but the unreserved characters (RFC 3986, 2.3), so that a value is one part of a path or a query.
const URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Headers that carry credentials. One without a placeholder beside a secret means two identities in one request: the
/// owner of the other one could receive the secret. Cookies are not among them, because servers set them unasked.
const CREDENTIAL_HEADERS: [&str; 7] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "private-token",
    "x-goog-api-key",
    "x-access-token",
];

/// What was replaced in the head of a request.
#[derive(Debug, Default)]
pub(crate) struct ReplacedHead {
    /// The secrets.
    pub used: BTreeSet<SecretName>,
    /// The first header with credentials of the client's own.
    pub own_credentials: Option<&'static str>,
}

impl ReplacedHead {
    /// Refuses credentials of the client's own beside a secret.
    pub fn check_conflict(&self) -> Result<(), Denial> {
        match (self.used.first(), self.own_credentials) {
            (Some(secret), Some(header)) => Err(Denial::CredentialConflict {
                secret: secret.clone(),
                header,
            }),
            _ => Ok(()),
        }
    }
}

/// Replaces the placeholders in the URL and the headers of a request. Its host was checked before.
pub(crate) fn replace_head(
    placeholders: &PlaceholderSet,
    target: &Target,
    request: &mut Parts,
) -> Result<ReplacedHead, Denial> {
    let mut replaced = ReplacedHead::default();
    replace_url(placeholders, target, request, &mut replaced.used)?;
    for (name, value) in &mut request.headers {
        let new = replace_value(placeholders, target, (name, value.as_bytes()), &mut replaced.used)?;
        match new {
            Some(new) => {
                let mut new =
                    HeaderValue::from_bytes(&new).map_err(|_| Denial::ValueNotAllowedHere(name.to_string()))?;
                // HTTP/2 keeps it out of its table of headers, which later requests refer to.
                new.set_sensitive(true);
                *value = new;
            }
            None => {
                let own = CREDENTIAL_HEADERS.iter().find(|header| name == **header);
                replaced.own_credentials = replaced.own_credentials.or(own.copied());
            }
        }
    }
    Ok(replaced)
}

fn replace_url(
    placeholders: &PlaceholderSet,
    target: &Target,
    request: &mut Parts,
    used: &mut BTreeSet<SecretName>,
) -> Result<(), Denial> {
    let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let Some(new) = placeholders.replace(target, path.as_bytes(), percent_encode, used)? else {
        return Ok(());
    };
    let not_allowed = || Denial::ValueNotAllowedHere("the URL".to_owned());
    let mut uri = request.uri.clone().into_parts();
    uri.path_and_query = Some(PathAndQuery::from_maybe_shared(new).map_err(|_| not_allowed())?);
    request.uri = uri.try_into().map_err(|_| not_allowed())?;
    Ok(())
}

/// Replaces placeholders in the value of a header, in Basic credentials also in the encoded text.
fn replace_value(
    placeholders: &PlaceholderSet,
    target: &Target,
    (name, value): (&HeaderName, &[u8]),
    used: &mut BTreeSet<SecretName>,
) -> Result<Option<Vec<u8>>, Denial> {
    if let Some(basic) = basic_credentials(name, value) {
        let replaced = placeholders.replace(target, &basic, str::to_owned, used)?;
        if let Some(replaced) = replaced {
            return Ok(Some(format!("Basic {}", BASE64_STANDARD.encode(replaced)).into_bytes()));
        }
    }
    placeholders.replace(target, value, str::to_owned, used)
}

/// The user and the password of Basic credentials (RFC 7617).
fn basic_credentials(name: &HeaderName, value: &[u8]) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let (scheme, rest) = value.split_at_checked(6)?;
    let is_basic = *name == AUTHORIZATION && scheme.eq_ignore_ascii_case(b"basic ");
    if !is_basic {
        return None;
    }
    LENIENT.decode(rest.trim_ascii()).ok()
}

/// A value as a part of a URL or a form.
pub(crate) fn percent_encode(value: &str) -> String {
    utf8_percent_encode(value, URL).to_string()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::placeholder::tests::{placeholders, target};

    fn replace(host: &str, uri: &str, headers: &[(&str, String)]) -> Result<(Parts, ReplacedHead), Denial> {
        let set = placeholders();
        let token = &set.iter().next().unwrap().placeholder;
        let mut request = Request::builder().uri(uri.replace("TOKEN", token));
        for (name, value) in headers {
            let value = match value.strip_prefix("b64:") {
                Some(plain) => format!("Basic {}", BASE64_STANDARD.encode(plain.replace("TOKEN", token))),
                None => value.replace("TOKEN", token),
            };
            request = request.header(*name, value);
        }
        let mut parts = request.body(()).unwrap().into_parts().0;
        let replaced = replace_head(&set, &target(host), &mut parts)?;
        Ok((parts, replaced))
    }

    #[test]
    fn the_url_the_headers_and_basic_credentials_are_replaced() {
        let headers = [
            ("x-key", "key TOKEN!".to_owned()),
            ("authorization", "b64:me:TOKEN".to_owned()),
        ];
        let (parts, replaced) = replace("a.example", "https://a.example/x/TOKEN?k=TOKEN&l=1", &headers).unwrap();
        assert_eq!(
            parts.uri.to_string(),
            "https://a.example/x/va%2Flue%22%26%2B%20x?k=va%2Flue%22%26%2B%20x&l=1"
        );
        assert_eq!(parts.headers["x-key"].as_bytes(), b"key va/lue\"&+ x!");
        assert!(parts.headers["x-key"].is_sensitive());
        let basic = format!("Basic {}", BASE64_STANDARD.encode("me:va/lue\"&+ x"));
        assert_eq!(parts.headers["authorization"], basic);
        assert_eq!(replaced.used.len(), 1);
        assert_eq!(replaced.own_credentials, None);
    }

    #[test]
    fn other_hosts_and_own_credentials_are_noticed() {
        for headers in [
            [("x-key", "TOKEN".to_owned())],
            [("authorization", "b64:me:TOKEN".to_owned())],
        ] {
            let denied = replace("b.example", "https://b.example/", &headers);
            assert!(matches!(denied, Err(Denial::SecretNotGranted(_))));
        }
        assert!(replace("b.example", "https://b.example/?TOKEN", &[]).is_err());
        let headers = [
            ("x-key", "TOKEN".to_owned()),
            ("authorization", "Bearer mine".to_owned()),
        ];
        let (_, replaced) = replace("a.example", "/", &headers).unwrap();
        assert_eq!(replaced.own_credentials, Some("authorization"));
        // A second header of the same name is one too.
        let headers = [
            ("authorization", "Bearer TOKEN".to_owned()),
            ("authorization", "Bearer mine".to_owned()),
        ];
        let (_, replaced) = replace("a.example", "/", &headers).unwrap();
        assert_eq!(replaced.own_credentials, Some("authorization"));
    }
}
