//! Reads `requirements.txt`. Options that would change where packages come from, or that read other files, are refused.

use crate::declaration_error::DeclarationError;
use crate::requirement::{Requirement, RequirementError};

/// A requirement and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredRequirement {
    /// The requirement.
    pub requirement: Requirement,
    /// The line in its file, from 1.
    pub line: usize,
}

/// The most requirements of one file.
pub(crate) const MAX_REQUIREMENTS: usize = 500;

/// Options without an effect here: wheels are always required, and hashes are always checked.
const IGNORED_OPTIONS: [&str; 3] = ["--prefer-binary", "--require-hashes", "--no-deps"];

/// Reads a requirements file.
pub fn parse_requirements_file(file: &str, text: &str) -> Result<Vec<DeclaredRequirement>, DeclarationError> {
    let mut declared = Vec::new();
    for (line, text) in logical_lines(text) {
        if text.starts_with('-') {
            check_option(file, line, &text)?;
            continue;
        }
        let requirement =
            parse_line(&text).map_err(|error| requirement_error(file, &error, first_word(&text)).at_line(line))?;
        declared.push(DeclaredRequirement { requirement, line });
        if declared.len() > MAX_REQUIREMENTS {
            let reason = format!("more than {MAX_REQUIREMENTS} requirements");
            return Err(DeclarationError::new(file, reason).at_line(line));
        }
    }
    Ok(declared)
}

/// The refusal of a requirement.
pub(crate) fn requirement_error(file: &str, error: &RequirementError, subject: &str) -> DeclarationError {
    let refusal = DeclarationError::new(file, error.to_string()).of_package(subject);
    match error {
        RequirementError::Url | RequirementError::Path => {
            refusal.with_hint("name a package of a registry, or mount an environment that you made yourself")
        }
        RequirementError::Syntax | RequirementError::TooLong => refusal,
    }
}

/// Joins continued lines and removes comments. The number is that of the first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for (index, raw) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (start, mut joined) = pending.take().unwrap_or((index + 1, String::new()));
        if let Some(continued) = raw.strip_suffix('\\') {
            joined.push_str(continued);
            joined.push(' ');
            pending = Some((start, joined));
            continue;
        }
        joined.push_str(raw);
        lines.push((start, joined));
    }
    lines.extend(pending);
    lines
        .into_iter()
        .map(|(line, text)| (line, without_comment(&text).trim().to_owned()))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// A comment starts at the start of a line or after white space, as in pip.
fn without_comment(line: &str) -> &str {
    let starts = line.match_indices('#').map(|(index, _)| index);
    let mut starts = starts.filter(|index| *index == 0 || line[..*index].ends_with(char::is_whitespace));
    starts.next().map_or(line, |start| &line[..start])
}

fn check_option(file: &str, line: usize, text: &str) -> Result<(), DeclarationError> {
    let option = text.split([' ', '=']).next().unwrap_or(text);
    if IGNORED_OPTIONS.contains(&option) || text.replace('=', " ") == "--only-binary :all:" {
        return Ok(());
    }
    let hint = match option {
        "-e" | "--editable" => "an editable install reads a directory of the host; name a package of a registry",
        "-r" | "--requirement" | "-c" | "--constraint" => "write the requirements into this file",
        "-i" | "--index-url" | "--extra-index-url" | "--find-links" | "-f" | "--trusted-host" | "--no-index" => {
            "the registry is that of the host's pip configuration; a skill cannot choose one"
        }
        _ => "remove the option",
    };
    Err(DeclarationError::new(file, "this option is not allowed in a skill")
        .at_line(line)
        .of_package(option)
        .with_hint(hint))
}

fn parse_line(text: &str) -> Result<Requirement, RequirementError> {
    let (specifier, options) = match text.find(" --") {
        Some(start) => text.split_at(start),
        None => (text, ""),
    };
    let mut requirement = Requirement::parse(specifier)?;
    for option in options.split_whitespace() {
        let hash = option
            .strip_prefix("--hash=")
            .filter(|hash| is_sha256(hash))
            .ok_or(RequirementError::Syntax)?;
        requirement.hashes.push(hash.to_owned());
    }
    requirement.hashes.sort();
    Ok(requirement)
}

fn is_sha256(hash: &str) -> bool {
    hash.strip_prefix("sha256:")
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_continuations_and_hashes_are_read() {
        let hash = format!("sha256:{}", "a".repeat(64));
        let text = format!(
            "\u{feff}# packages\nnumpy==2.0 # fast\r\n\npandas>=1 \\\n  --hash={hash}\n--prefer-binary\nopenpyxl"
        );
        let found = parse_requirements_file("requirements.txt", &text).unwrap();
        let lines: Vec<(usize, String)> = found
            .iter()
            .map(|declared| (declared.line, declared.requirement.to_line()))
            .collect();
        assert_eq!(
            lines,
            [
                (2, "numpy==2.0".to_owned()),
                (4, format!("pandas>=1 --hash={hash}")),
                (7, "openpyxl".to_owned())
            ]
        );
    }

    #[test]
    fn what_reads_the_host_or_chooses_a_registry_names_file_line_and_package() {
        for (text, line, package) in [
            ("numpy\n-e .", 2, "-e"),
            ("--editable=./x", 1, "--editable"),
            ("-r /etc/passwd", 1, "-r"),
            ("--index-url https://example.org/simple", 1, "--index-url"),
            ("--extra-index-url=https://example.org", 1, "--extra-index-url"),
            ("--find-links /opt", 1, "--find-links"),
            ("--trusted-host x", 1, "--trusted-host"),
            ("--no-binary :all:", 1, "--no-binary"),
            ("a\n\nb @ https://example.org/b.whl", 3, "b"),
            ("./local", 1, "./local"),
            ("x==1 --global-option=y", 1, "x==1"),
            ("x==1 --hash=md5:abc", 1, "x==1"),
            ("${SECRET}", 1, "${SECRET}"),
        ] {
            let error = parse_requirements_file("requirements.txt", text).unwrap_err();
            assert_eq!(
                (error.file.as_str(), error.line, error.package.as_deref()),
                ("requirements.txt", Some(line), Some(package)),
                "{text:?}"
            );
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("requirements.txt:{line}: {package}: ")),
                "{error}"
            );
        }
        let many = "x\n".repeat(MAX_REQUIREMENTS + 1);
        assert_eq!(parse_requirements_file("r", &many).unwrap_err().line, Some(501));
    }
}
