//! A configuration with secrets, and the forms in which a value could appear.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::harness::{Fixture, Invocation};

/// The variable of skillbox that has the value.
pub const VARIABLE: &str = "SECRET_OF_THE_TEST";
/// A value with characters that every encoding changes.
pub const VALUE: &str = "cnr-7f\"3b\\d/9+e %a&=Zq";

/// Writes the config file, and returns its path.
pub fn write_config(fixture: &Fixture, text: &str) -> String {
    let path = fixture.path("host/secrets.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The table of the secret `TOKEN`, which the script gets in its environment.
pub fn env_secret(more: &str) -> String {
    format!("[secrets.TOKEN]\nfrom = \"env:{VARIABLE}\"\ninject = \"env\"\n{more}")
}

/// The invocation with this configuration, and with the value in the environment of skillbox.
pub fn with_config<'f>(fixture: &Fixture, invocation: Invocation<'f>, config: &str) -> Invocation<'f> {
    let path = write_config(fixture, config);
    invocation.with_args(&["--config", &path]).env(VARIABLE, VALUE)
}

/// The forms of a value that may be nowhere.
pub fn forms(value: &str) -> Vec<Vec<u8>> {
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped = |format: fn(u8) -> String| value.bytes().map(format).collect::<String>();
    let mut forms = vec![
        value.to_owned(),
        hex.to_uppercase(),
        hex,
        escaped(|byte| format!("%{byte:02X}")),
        escaped(|byte| format!("%{byte:02x}")),
        escaped(|byte| format!("\\u{byte:04x}")),
        escaped(|byte| format!("\\u{byte:04X}")),
        quoted(value, "/"),
        quoted(value, ""),
        quoted(value, "").replace("%20", "+"),
        serde_json::to_string(value).unwrap().trim_matches('"').to_owned(),
    ];
    for before in 0..3 {
        let padded = format!("{}{value}", "x".repeat(before));
        let determined = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            forms.push(engine.encode(&padded)[determined.clone()].to_owned());
        }
    }
    forms.into_iter().map(String::into_bytes).collect()
}

/// The value with percent escapes where a URL needs them.
fn quoted(value: &str, more_plain: &str) -> String {
    let quote = |byte: u8| {
        let character = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-_.~".contains(character) || more_plain.contains(character) {
            character.to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    value.bytes().map(quote).collect()
}

/// The first form of the value that occurs in the data. Line breaks inside an encoding are no protection.
pub fn find_form(data: &[u8], forms: &[Vec<u8>]) -> Option<String> {
    let joined: Vec<u8> = data
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let occurs = |form: &Vec<u8>| {
        data.windows(form.len()).any(|window| window == form) || joined.windows(form.len()).any(|window| window == form)
    };
    forms
        .iter()
        .find(|form| occurs(form))
        .map(|form| String::from_utf8_lossy(form).into_owned())
}

/// Fails if a file or a file name below the directory has a form of the value.
#[track_caller]
pub fn assert_not_on_disk(directory: &Path, forms: &[Vec<u8>]) {
    let mut pending = vec![directory.to_owned()];
    let mut files = 0;
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.as_os_str().as_encoded_bytes();
            assert_eq!(find_form(name, forms), None, "{}", path.display());
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() {
                let data = fs::read(&path).unwrap();
                assert_eq!(find_form(&data, forms), None, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 3, "{files} files below {}", directory.display());
}
