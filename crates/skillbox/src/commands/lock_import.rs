//! Reads the lock files of other tools: `skills-lock.json` and `.skill-lock.json` of the skills CLI, `toolhive.lock.yaml`.
//!
//! Their digests cover other bytes than ours, such as a Git tree or an OCI image, so most of what they claim cannot be
//! verified from the files of a skill. The import takes names and sources from them, and lists every other claim.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use skillbox_model::ErrorCode;
use skillbox_repository::frontmatter_json;

use crate::failure::Failure;

/// More than any of these files has.
const MAX_BYTES: u64 = 4 << 20;
const SOURCE_KEYS: [&str; 5] = ["sourceUrl", "source", "resolvedReference", "reference", "url"];
/// A field with one of these words in its name is a claim about the content or the publisher.
const CLAIM_WORDS: [&str; 7] = ["hash", "digest", "sha", "commit", "signer", "provenance", "identity"];

/// One skill in the lock file of another tool.
#[derive(Debug, PartialEq)]
pub struct ForeignSkill {
    /// The name.
    pub name: String,
    /// Where the tool got it from.
    pub source: Option<String>,
    /// What the tool claims about it: key and value.
    pub claims: Vec<(String, String)>,
}

/// Reads the lock file of another tool.
pub fn read_foreign_lock(path: &Path) -> Result<Vec<ForeignSkill>, Failure> {
    let invalid = |problem: String| {
        let message = format!("{} cannot be imported: {problem}", path.display());
        Failure::new(ErrorCode::InvalidRequest, message)
            .with_hint("skills-lock.json, .skill-lock.json and toolhive.lock.yaml can be imported")
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.map_err(|error| invalid(error.to_string()))?;
    let document = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?,
        // The reader of frontmatters limits aliases, depth and keys.
        false => frontmatter_json(&format!("---\n{text}\n---\n"))
            .map(Value::Object)
            .ok_or_else(|| invalid("it is neither JSON nor YAML".to_owned()))?,
    };
    parse_document(&document).ok_or_else(|| invalid("it has no list `skills`".to_owned()))
}

fn parse_document(document: &Value) -> Option<Vec<ForeignSkill>> {
    match document.get("skills")? {
        Value::Object(skills) => Some(
            skills
                .iter()
                .map(|(name, fields)| to_skill(name.clone(), fields))
                .collect(),
        ),
        Value::Array(skills) => {
            let named = |fields: &Value| Some(to_skill(fields.get("name")?.as_str()?.to_owned(), fields));
            skills.iter().map(named).collect()
        }
        _ => None,
    }
}

fn to_skill(name: String, fields: &Value) -> ForeignSkill {
    let source = SOURCE_KEYS.iter().find_map(|key| fields.get(key)?.as_str());
    let mut claims = Vec::new();
    for (key, value) in fields.as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        if !CLAIM_WORDS.iter().any(|word| lower.contains(word)) {
            continue;
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        claims.push((key.clone(), text));
    }
    ForeignSkill {
        name,
        source: source.map(str::to_owned),
        claims,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(file: &str, text: &str) -> Vec<ForeignSkill> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        read_foreign_lock(&path).unwrap_or_else(|failure| panic!("{}", failure.message()))
    }

    #[test]
    fn lock_files_of_other_tools_give_names_sources_and_claims() {
        let skills = parse(
            ".skill-lock.json",
            r#"{"version": 3, "skills": {"a": {"source": "o/r", "skillFolderHash": "abc", "installedAt": "x"}}}"#,
        );
        let expected = ForeignSkill {
            name: "a".to_owned(),
            source: Some("o/r".to_owned()),
            claims: vec![("skillFolderHash".to_owned(), "abc".to_owned())],
        };
        assert_eq!(skills, [expected]);
        let yaml = "version: 1\nskills:\n  - name: b\n    reference: ghcr.io/o/b:1\n    digest: sha256:12\n    \
                    contentDigest: sha256:34\n";
        let skills = parse("toolhive.lock.yaml", yaml);
        assert_eq!(skills[0].source.as_deref(), Some("ghcr.io/o/b:1"));
        assert_eq!(skills[0].claims.len(), 2);
    }

    #[test]
    fn other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["", "{", "[]", "{\"skills\": 3}", "- a\n- b\n"] {
            let path = directory.path().join("lock");
            std::fs::write(&path, text).unwrap();
            assert!(read_foreign_lock(&path).is_err(), "{text}");
        }
    }
}
