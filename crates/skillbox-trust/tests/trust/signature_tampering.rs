//! Signatures that we make: valid as they are, invalid after every change.

use std::fs;
use std::path::Path;

use minisign::KeyPair;
use skillbox_model::PublisherName;
use skillbox_trust::{
    MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, Publisher, SignatureError, SignatureFiles, ValidSignature,
    check_signatures, sign_manifest,
};

use crate::fixture::{read_manifest, write_skill};

fn sign(directory: &Path, secret_key: &str) {
    let (manifest, signature) = sign_manifest(&read_manifest(directory), secret_key, None, "report").unwrap();
    fs::write(directory.join(MANIFEST_FILE), manifest).unwrap();
    fs::write(directory.join(MANIFEST_SIGNATURE_FILE), signature).unwrap();
}

fn check(directory: &Path, publisher: &Publisher) -> Result<Vec<ValidSignature>, SignatureError> {
    let read = |name: &str| fs::read(directory.join(name)).ok();
    let (manifest, signature) = (read(MANIFEST_FILE), read(MANIFEST_SIGNATURE_FILE));
    check_signatures(
        std::slice::from_ref(publisher),
        &read_manifest(directory),
        SignatureFiles {
            manifest: manifest.as_deref(),
            manifest_signature: signature.as_deref(),
            bundle: None,
        },
    )
}

fn publisher(public_key: &str) -> Publisher {
    let mut publisher = Publisher::new(PublisherName::parse("acme").unwrap());
    publisher.add_key(public_key).unwrap();
    publisher
}

#[test]
fn every_change_of_a_signed_skill_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let skill = directory.path().join("report");
    let keys = KeyPair::generate_unencrypted_keypair().unwrap();
    let secret_key = keys.sk.to_box(None).unwrap().into_string();
    let acme = publisher(&keys.pk.to_box().unwrap().into_string());
    write_skill(&skill);
    assert!(check(&skill, &acme).unwrap().is_empty(), "unsigned");
    sign(&skill, &secret_key);
    assert_eq!(check(&skill, &acme).unwrap().len(), 1, "the control");

    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 7] = [
        (
            "content",
            |dir| fs::write(dir.join("SKILL.md"), "x").unwrap(),
            "SKILL.md was changed",
        ),
        (
            "new file",
            |dir| fs::write(dir.join("evil.sh"), "x").unwrap(),
            "evil.sh was added",
        ),
        (
            "no file",
            |dir| fs::remove_file(dir.join("scripts/run.sh")).unwrap(),
            "scripts/run.sh was removed",
        ),
        (
            "mode",
            |dir| set_mode(&dir.join("SKILL.md"), 0o755),
            "SKILL.md was changed in its type",
        ),
        (
            "link",
            |dir| std::os::unix::fs::symlink("SKILL.md", dir.join("l")).unwrap(),
            "l was added",
        ),
        (
            "no manifest",
            |dir| fs::remove_file(dir.join(MANIFEST_FILE)).unwrap(),
            "missing beside its signature",
        ),
        (
            "no signature",
            |dir| fs::remove_file(dir.join(MANIFEST_SIGNATURE_FILE)).unwrap(),
            "missing beside the manifest",
        ),
    ];
    for (name, change, words) in changes {
        let changed = directory.path().join(name);
        write_skill(&changed);
        sign(&changed, &secret_key);
        assert_eq!(check(&changed, &acme).unwrap().len(), 1, "{name}: the control");
        change(&changed);
        let error = check(&changed, &acme).expect_err(name);
        assert!(error.to_string().contains(words), "{name}: {error}");
    }

    let others = KeyPair::generate_unencrypted_keypair().unwrap();
    let error = check(&skill, &publisher(&others.pk.to_base64())).unwrap_err();
    assert!(matches!(error, SignatureError::NoPublisher { .. }), "{error}");

    for file in [MANIFEST_FILE, MANIFEST_SIGNATURE_FILE] {
        let original = fs::read(skill.join(file)).unwrap();
        for position in 0..original.len() {
            let mut changed = original.clone();
            changed[position] ^= 1;
            fs::write(skill.join(file), &changed).unwrap();
            // The first line of a signature file is a comment that nobody signed.
            let is_comment =
                file == MANIFEST_SIGNATURE_FILE && position < original.iter().position(|b| *b == b'\n').unwrap();
            assert!(check(&skill, &acme).is_err() || is_comment, "{file}: byte {position}");
        }
        fs::write(skill.join(file), &original).unwrap();
    }
    assert_eq!(check(&skill, &acme).unwrap().len(), 1, "the control again");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn unusable_keys_are_refused_with_the_reason() {
    let keys = KeyPair::generate_unencrypted_keypair().unwrap();
    let mut acme = Publisher::new(PublisherName::parse("acme").unwrap());
    for (key, words) in [
        ("", "neither a minisign public key"),
        ("RWQ", "neither a minisign public key"),
        (&*keys.sk.to_box(None).unwrap().into_string(), "secret key"),
        (
            "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
            "secret key",
        ),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            "P-256 and P-384",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate is not valid",
        ),
    ] {
        let error = acme.add_key(key).expect_err(words);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let encrypted = KeyPair::generate_unencrypted_keypair()
        .unwrap()
        .sk
        .to_box(None)
        .unwrap()
        .into_string();
    let manifest = crate::fixture::manifest(&[("SKILL.md", "x")]);
    assert!(sign_manifest(&manifest, &encrypted, Some("password"), "c").is_err());
    assert!(sign_manifest(&manifest, "not a key", None, "c").is_err());
}
