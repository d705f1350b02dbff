//! Redacts any stream in any chunks. The chunks do not matter, and neither the value nor its plain encodings remain.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_egress::Redactor;
use skillbox_model::{SecretName, SecretValue};

fuzz_target!(|input: (&str, &str, &[u8], u8)| {
    let (first, second, text, size) = input;
    let names = ["ONE", "TWO"].map(|name| SecretName::parse(name).expect("a valid name"));
    let values = [first, second].map(|value| SecretValue::parse(value.to_owned()));
    let [Ok(first), Ok(second)] = values else { return };
    let Ok(redactor) = Redactor::new([(&names[0], &first), (&names[1], &second)]) else { return };
    // The value occurs for sure.
    let text = [text, first.expose().as_bytes(), text].concat();
    let whole = redactor.redact_bytes(&text);
    let mut stream = redactor.stream();
    let mut output = Vec::new();
    for chunk in text.chunks(usize::from(size.max(1))) {
        stream.push(chunk, &mut output);
    }
    stream.finish(&mut output);
    assert_eq!(output, *whole, "chunks of {size}");
    assert!(stream.is_idle());
    assert!(!stream.found().is_empty());
    // A value may come about from what stands around a replacement only if it contains brackets.
    for value in [first.expose(), second.expose()].map(str::as_bytes) {
        if !value.iter().any(|byte| b"[]".contains(byte)) {
            assert!(!output.windows(value.len()).any(|window| window == value));
        }
    }
});
