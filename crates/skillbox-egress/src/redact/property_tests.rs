//! Properties of the whole redactor, with encoders that it does not use itself.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use skillbox_model::{SecretName, SecretValue};

use super::Redactor;

fn redactor(values: &[(&str, &str)]) -> Redactor {
    let secrets: Vec<(SecretName, SecretValue)> = values
        .iter()
        .map(|(name, value)| {
            (
                SecretName::parse(name).unwrap(),
                SecretValue::parse((*value).to_owned()).unwrap(),
            )
        })
        .collect();
    Redactor::new(secrets.iter().map(|(name, value)| (name, value))).unwrap()
}

/// Redacts in chunks of these sizes, in a cycle.
fn redact_in_chunks(redactor: &Redactor, text: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut output = Vec::new();
    let mut rest = text;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at(size.clamp(1, rest.len()));
        stream.push(chunk, &mut output);
        rest = after;
    }
    stream.finish(&mut output);
    assert!(stream.is_idle());
    output
}

/// A way to write a value.
#[derive(Clone, Debug)]
enum Form {
    Raw,
    Hex {
        upper: bool,
        separator: &'static str,
    },
    Base64 {
        engine: usize,
        before: usize,
        after: usize,
        columns: usize,
    },
    /// Each byte is escaped if its bit is set.
    Percent {
        mask: u64,
        upper: bool,
    },
    /// Each character is escaped if its bit is set.
    Json {
        mask: u64,
        upper: bool,
        is_hex: bool,
    },
}

fn write_form(value: &str, form: &Form) -> String {
    let is_set = |mask: u64, index: usize| mask >> (index % 64) & 1 == 1;
    match form {
        Form::Raw => value.to_owned(),
        Form::Hex { upper, separator } => {
            let octet = |byte: u8| {
                if *upper {
                    format!("{byte:02X}")
                } else {
                    format!("{byte:02x}")
                }
            };
            value.bytes().map(octet).collect::<Vec<_>>().join(separator)
        }
        Form::Base64 {
            engine,
            before,
            after,
            columns,
        } => {
            let data = [vec![0x5a; *before], value.as_bytes().to_vec(), vec![0xa5; *after]].concat();
            let text = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD][*engine].encode(data);
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(*columns)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            lines.join("\n")
        }
        Form::Percent { mask, upper } => value
            .bytes()
            .enumerate()
            .map(|(index, byte)| match byte {
                b'%' => "%25".to_owned(),
                b if b.is_ascii() && !is_set(*mask, index) => char::from(b).to_string(),
                b if *upper => format!("%{b:02X}"),
                b => format!("%{b:02x}"),
            })
            .collect(),
        Form::Json { mask, upper, is_hex } => value
            .chars()
            .enumerate()
            .map(|(index, character)| match character {
                '"' | '\\' => format!("\\{character}"),
                c if !is_set(*mask, index) => c.to_string(),
                c if *is_hex && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
                c => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| {
                        if *upper {
                            format!("\\u{unit:04X}")
                        } else {
                            format!("\\u{unit:04x}")
                        }
                    })
                    .collect(),
            })
            .collect(),
    }
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Raw),
        (any::<bool>(), prop_oneof![Just(""), Just(" "), Just(":"), Just("\n")])
            .prop_map(|(upper, separator)| Form::Hex { upper, separator }),
        (0..4_usize, 0..4_usize, 0..4_usize, 8..80_usize).prop_map(|(engine, before, after, columns)| Form::Base64 {
            engine,
            before,
            after,
            columns
        }),
        (any::<u64>(), any::<bool>()).prop_map(|(mask, upper)| Form::Percent { mask, upper }),
        (any::<u64>(), any::<bool>(), any::<bool>()).prop_map(|(mask, upper, is_hex)| Form::Json {
            mask,
            upper,
            is_hex
        }),
    ]
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{8,12}", "[!-~]{8,40}", "[a-zA-Z0-9_-]{20,60}", "[!-~äß€😀]{10,20}"]
}

/// The texts that no redacted output may contain, whatever stands around the value.
fn forbidden(value: &str) -> Vec<String> {
    let mut texts = vec![value.to_owned()];
    for upper in [false, true] {
        texts.push(write_form(value, &Form::Hex { upper, separator: "" }));
        texts.push(write_form(value, &Form::Percent { mask: u64::MAX, upper }));
        texts.push(write_form(
            value,
            &Form::Json {
                mask: u64::MAX,
                upper,
                is_hex: false,
            },
        ));
    }
    texts.push(serde_json::to_string(value).unwrap().trim_matches('"').to_owned());
    for before in 0..3 {
        // Without the characters that depend on the bytes around the value.
        for engine in [1, 3] {
            let text = write_form(
                value,
                &Form::Base64 {
                    engine,
                    before,
                    after: 0,
                    columns: usize::MAX,
                },
            );
            texts.push(text[(before * 8_usize).div_ceil(6)..(before + value.len()) * 8 / 6].to_owned());
        }
    }
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn chunks_do_not_matter(
        value in values(),
        other in values(),
        parts in prop::collection::vec((forms(), "[ab%\\\\u0-9: \n]{0,20}"), 0..6),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let redactor = redactor(&[("ONE", &value), ("TWO", &other)]);
        let text: String = parts.iter().map(|(form, filler)| write_form(&value, form) + filler).collect();
        let whole = redactor.redact_bytes(text.as_bytes());
        let in_chunks = redact_in_chunks(&redactor, text.as_bytes(), &sizes);
        prop_assert_eq!(String::from_utf8_lossy(&in_chunks), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn every_form_is_replaced_and_everything_else_is_kept(
        value in values(),
        parts in prop::collection::vec((forms(), "<[x-z]{0,9}>"), 1..6),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let redactor = redactor(&[("ONE", &value)]);
        let text: String = parts.iter().map(|(form, filler)| write_form(&value, form) + filler).collect();
        let output = redact_in_chunks(&redactor, text.as_bytes(), &sizes);
        let output = String::from_utf8(output).unwrap();
        prop_assert!(output.matches("[secret ONE]").count() >= parts.len(), "{} -> {}", text, output);
        for form in forbidden(&value) {
            prop_assert!(!output.contains(&form), "{} is left of {} in {}", form, text, output);
        }
        for (_, filler) in &parts {
            prop_assert!(output.contains(filler.as_str()), "{} -> {}", text, output);
        }
    }

    #[test]
    fn text_without_the_value_is_not_changed(
        text in prop::collection::vec(any::<u8>(), 0..400),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let redactor = redactor(&[("ONE", "not-in-random-bytes")]);
        prop_assert_eq!(redact_in_chunks(&redactor, &text, &sizes), text);
    }
}

#[test]
fn overlapping_values_leave_no_rest() {
    let redactor = redactor(&[("ONE", "abcdefghij"), ("TWO", "efghijklmn")]);
    assert_eq!(redactor.redact_text("<abcdefghijklmn>"), "<[secret ONE][secret TWO]>");
    assert_eq!(redactor.redact_text("<abcdefghij-klmn>"), "<[secret ONE]-klmn>");
    assert_eq!(redactor.redact_text("abcdefghijabcdefghij"), "[secret ONE][secret ONE]");
}

#[test]
fn an_endless_repetition_needs_no_memory() {
    let redactor = redactor(&[("ONE", "aaaaaaaa")]);
    let mut stream = redactor.stream();
    let mut output = Vec::new();
    for _ in 0..200 {
        stream.push(&[b'a'; 8 << 10], &mut output);
        assert!(stream.held_bytes() <= 64, "{} bytes are held", stream.held_bytes());
    }
    stream.push(b"b", &mut output);
    stream.finish(&mut output);
    assert_eq!(output, b"[secret ONE]b");
}

#[test]
fn only_the_beginning_of_a_value_is_held_back() {
    let redactor = redactor(&[("ONE", "canary-value")]);
    let mut stream = redactor.stream();
    let mut output = Vec::new();
    stream.push(b"a line\nthe can", &mut output);
    assert_eq!(output, b"a line\nthe ");
    stream.push(b"dle", &mut output);
    assert_eq!(output, b"a line\nthe candle");
    assert!(stream.is_idle());
    stream.push(b" canary-valu", &mut output);
    stream.finish(&mut output);
    assert_eq!(output, b"a line\nthe candle canary-valu");
    assert!(stream.found().is_empty());
}

#[test]
fn a_stream_of_data_is_searched_for_names() {
    let redactor = redactor(&[("ONE", "canary-value"), ("TWO", "another-value")]);
    let data = format!("{}another-value", "x".repeat(100_000));
    let names: Vec<String> = redactor
        .find(data.as_bytes())
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["TWO"]);
    assert!(Redactor::default().find(data.as_bytes()).unwrap().is_empty());
}

#[test]
fn values_that_cannot_be_replaced_are_refused() {
    let name = SecretName::parse("PASSWORD_ONE").unwrap();
    for value in ["PASSWORD_ONE", "[secret PASSWORD", "[secret "] {
        let value = SecretValue::parse(value.to_owned()).unwrap();
        let error = Redactor::new([(&name, &value)]).unwrap_err();
        assert_eq!(error, super::RedactorError::ValueInReplacement(name.clone()));
    }
    let large = SecretValue::parse("0123456789abcdef".repeat(1024)).unwrap();
    let five = std::iter::repeat_n((&name, &large), 5);
    assert_eq!(
        Redactor::new(five).unwrap_err(),
        super::RedactorError::TooManyBytes(5 * (16 << 10))
    );
    let small = SecretValue::parse("0123456789".to_owned()).unwrap();
    let many = std::iter::repeat_n((&name, &small), 65);
    assert_eq!(
        Redactor::new(many).unwrap_err(),
        super::RedactorError::TooManyValues(65)
    );
}
