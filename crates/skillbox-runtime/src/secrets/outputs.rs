//! The collected files of a run that has secrets.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use skillbox_executor::Redactor;
use skillbox_executor::workspace::{CollectedFile, Outputs};
use skillbox_model::{ContentEncoding, RefusedOutput, SecretName};

/// Refuses files whose name contains a value, and removes values from the content that the report shows.
pub(crate) fn redact_outputs(outputs: Outputs, redactor: &Redactor) -> Outputs {
    if redactor.is_empty() {
        return outputs;
    }
    let Outputs { files, mut refused, .. } = outputs;
    let mut kept = Vec::with_capacity(files.len());
    for mut file in files {
        let names = secrets_in(file.name.as_bytes(), redactor);
        if !names.is_empty() {
            refused.push(RefusedOutput {
                name: redactor.redact_text(&file.name.to_string()).into_owned(),
                reason: format!("its name contains the value of {}", list(&names)),
            });
            continue;
        }
        redact_content(&mut file, redactor);
        kept.push(file);
    }
    Outputs {
        files: kept,
        refused,
        ..outputs
    }
}

/// A warning for each file that is kept whole and contains a value. Such a file is not changed: its digest is recorded, and
/// a changed archive or image would be broken.
pub(crate) fn warn_about_files(outputs: &mut Outputs, redactor: &Redactor) -> Vec<String> {
    if redactor.is_empty() {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for file in &mut outputs.files {
        let Some(opened) = &mut file.file else { continue };
        match secrets_in_file(opened, redactor) {
            Ok(names) if names.is_empty() => {}
            Ok(names) => warnings.push(format!(
                "{} contains the value of {}; it is kept as it is wherever the file is saved or exported",
                file.name,
                list(&names)
            )),
            Err(error) => warnings.push(format!(
                "{} could not be searched for the values of secrets: {error}",
                file.name
            )),
        }
    }
    warnings
}

fn secrets_in_file(file: &mut File, redactor: &Redactor) -> std::io::Result<Vec<SecretName>> {
    file.seek(SeekFrom::Start(0))?;
    let names = redactor.find(&mut *file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(names)
}

fn secrets_in(bytes: &[u8], redactor: &Redactor) -> Vec<SecretName> {
    let mut stream = redactor.stream();
    let mut output = Vec::new();
    stream.push(bytes, &mut output);
    stream.finish(&mut output);
    stream.found()
}

fn redact_content(file: &mut CollectedFile, redactor: &Redactor) {
    let Some(content) = file.content.take() else { return };
    let redact = |bytes: &[u8]| {
        let mut stream = redactor.stream();
        let mut output = Vec::with_capacity(bytes.len());
        stream.push(bytes, &mut output);
        // The cut may be inside a value: then its beginning is left out.
        if !file.truncated {
            stream.finish(&mut output);
        }
        output
    };
    file.content = match file.encoding {
        None => Some(String::from_utf8_lossy(&redact(content.as_bytes())).into_owned()),
        // Content that is not what its encoding says is left out, rather than returned without a check.
        Some(ContentEncoding::Base64) => STANDARD
            .decode(&content)
            .ok()
            .map(|bytes| STANDARD.encode(redact(&bytes))),
    };
}

fn list(names: &[SecretName]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("the secret {name}")).collect();
    names.join(" and ")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use skillbox_model::{Digest, RelPath, SecretValue};

    use super::*;

    const VALUE: &str = "canary-value-1234";

    fn redactor() -> Redactor {
        let name = SecretName::parse("TOKEN").unwrap();
        Redactor::new([(&name, &SecretValue::parse(VALUE.to_owned()).unwrap())]).unwrap()
    }

    fn file(name: &str, content: &str, encoding: Option<ContentEncoding>, truncated: bool) -> CollectedFile {
        CollectedFile {
            name: RelPath::parse(name).unwrap(),
            size_bytes: 1,
            digest: Digest::parse(&format!("sha256:{}", "ab".repeat(32))).unwrap(),
            mime_type: "text/plain".to_owned(),
            content: Some(content.to_owned()),
            encoding,
            truncated,
            file: None,
        }
    }

    #[test]
    fn names_are_refused_and_content_is_redacted() {
        let outputs = Outputs {
            files: vec![
                file(&format!("out/{VALUE}.txt"), "x", None, false),
                file("out/text", &format!("a {VALUE} b"), None, false),
                file("out/cut", "a canary-val", None, true),
                file("out/whole", "a canary-val", None, false),
                file(
                    "out/binary",
                    &STANDARD.encode(format!("\0{VALUE}\0")),
                    Some(ContentEncoding::Base64),
                    false,
                ),
            ],
            ..Outputs::default()
        };
        let outputs = redact_outputs(outputs, &redactor());
        let contents: Vec<&str> = outputs
            .files
            .iter()
            .map(|file| file.content.as_deref().unwrap())
            .collect();
        assert_eq!(
            contents,
            [
                "a [secret TOKEN] b",
                "a ",
                "a canary-val",
                &STANDARD.encode("\0[secret TOKEN]\0")
            ]
        );
        assert_eq!(outputs.refused[0].name, "out/[secret TOKEN].txt");
    }

    #[test]
    fn whole_files_are_searched_and_not_changed() {
        let mut opened = tempfile::tempfile().unwrap();
        opened
            .write_all(format!("{}{VALUE}", "x".repeat(100_000)).as_bytes())
            .unwrap();
        let mut outputs = Outputs {
            files: vec![CollectedFile {
                file: Some(opened),
                ..file("out/a.bin", "", None, false)
            }],
            ..Outputs::default()
        };
        let warnings = warn_about_files(&mut outputs, &redactor());
        assert!(
            warnings[0].starts_with("out/a.bin contains the value of the secret TOKEN"),
            "{warnings:?}"
        );
        assert_eq!(warnings.len(), 1);
        assert!(warn_about_files(&mut outputs, &Redactor::default()).is_empty());
    }
}
