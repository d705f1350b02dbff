//! Reads any bytes as an artifact record, and any text as a reference. What is accepted is written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_artifacts::{Artifact, ArtifactName, ArtifactRef};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(artifact) = serde_json::from_slice::<Artifact>(bytes) {
        let text = serde_json::to_vec(&artifact).expect("a record");
        assert_eq!(serde_json::from_slice::<Artifact>(&text).expect("its own text"), artifact);
        let reference = artifact.reference();
        let parsed = ArtifactRef::parse(reference.strip_prefix("artifact://").expect("the scheme"));
        assert_eq!(parsed.expect("its own reference").version, Some(artifact.version));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(reference) = ArtifactRef::parse(text) {
        assert_eq!(ArtifactRef::parse(&reference.to_string()).as_ref(), Ok(&reference));
    }
    if let Ok(name) = ArtifactName::parse(text) {
        assert!(!name.as_str().split('/').any(|part| matches!(part, "" | "." | "..")));
    }
});
