//! Signatures that we make: valid as they are, invalid after every change.

use std::fs;
use std::path::Path;

use minisign::KeyPair;
use skillbox_model::PublisherName;
use skillbox_trust::{
    BUNDLE_FILE, BundleSigner, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, Publisher, SignatureError, SignatureFiles,
    ValidSignature, check_signatures, sign_bundle, sign_manifest,
};

use crate::fixture::{read_manifest, skill_name, write_skill};

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

    check_signature_files(directory.path(), &secret_key, &acme);
    let others = KeyPair::generate_unencrypted_keypair().unwrap();
    let error = check(&skill, &publisher(&others.pk.to_base64())).unwrap_err();
    assert!(matches!(error, SignatureError::NoPublisher { .. }), "{error}");

    for file in [MANIFEST_FILE, MANIFEST_SIGNATURE_FILE] {
        let original = fs::read(skill.join(file)).unwrap();
        for position in 0..original.len() {
            let mut changed = original.clone();
            changed[position] ^= 1;
            fs::write(skill.join(file), &changed).unwrap();
            // The first line of a signature file is a plain comment that nobody signed.
            let is_plain = changed[position].is_ascii_alphanumeric() || b" ._,:@/+=-".contains(&changed[position]);
            let is_comment = file == MANIFEST_SIGNATURE_FILE
                && position < original.iter().position(|b| *b == b'\n').unwrap()
                && is_plain;
            assert!(check(&skill, &acme).is_err() || is_comment, "{file}: byte {position}");
        }
        fs::write(skill.join(file), &original).unwrap();
    }
    assert_eq!(check(&skill, &acme).unwrap().len(), 1, "the control again");
}

/// No signature covers the signature files: they cannot be links or programs, and cannot have other text.
fn check_signature_files(directory: &Path, secret_key: &str, acme: &Publisher) {
    let make = |name: &str| {
        let skill = directory.join(name);
        write_skill(&skill);
        sign(&skill, secret_key);
        assert_eq!(check(&skill, acme).unwrap().len(), 1, "{name}: the control");
        skill
    };
    for name in [MANIFEST_FILE, MANIFEST_SIGNATURE_FILE] {
        let skill = make(&format!("executable {name}"));
        set_mode(&skill.join(name), 0o755);
        let error = check(&skill, acme).expect_err(name).to_string();
        assert!(error.contains("executable"), "{error}");
    }
    for name in [MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, BUNDLE_FILE] {
        let skill = make(&format!("link {name}"));
        let _ = fs::remove_file(skill.join(name));
        std::os::unix::fs::symlink("scripts/run.sh", skill.join(name)).unwrap();
        let error = check(&skill, acme).expect_err(name).to_string();
        assert!(error.contains("is a link"), "{error}");
    }
    type Change = fn(&str) -> String;
    let changes: [(&str, Change); 5] = [
        ("more lines", |text| format!("{text}echo more\n")),
        ("no last line feed", |text| text.trim_end().to_owned()),
        ("a shell command", |text| text.replacen("signature", "$(id); echo", 1)),
        ("a pipe", |text| text.replacen("signature", "x | sh", 1)),
        ("a long comment", |text| text.replacen("signature", &"x".repeat(200), 1)),
    ];
    for (what, change) in changes {
        let skill = make(what);
        let file = skill.join(MANIFEST_SIGNATURE_FILE);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, change(&text)).unwrap();
        assert!(check(&skill, acme).is_err(), "{what}");
    }
}

#[test]
fn a_bundle_has_no_unsigned_text_and_covers_modes() {
    let directory = tempfile::tempdir().unwrap();
    let skill = directory.path();
    write_skill(skill);
    let pair = new_key_pair();
    let signer = BundleSigner {
        secret_key: &pair.0,
        certificates: "",
    };
    let acme = publisher(&pair.1);
    let check = |bundle: &str| {
        let files = SignatureFiles {
            bundle: Some(bundle.as_bytes()),
            ..SignatureFiles::default()
        };
        check_signatures(std::slice::from_ref(&acme), &read_manifest(skill), files)
    };
    let bundle = sign_bundle(&skill_name("report"), &read_manifest(skill), signer).unwrap();
    assert!(check(&bundle).unwrap()[0].covers_modes, "the control");
    for changed in [
        bundle.replacen('{', "{\"note\":\"run this\",", 1),
        bundle.replacen("\"payload\"", "\"note\":\"run this\",\"payload\"", 1),
        bundle.replacen("\"tlogEntries\":[]", "\"tlogEntries\":[\"run this\"]", 1),
        bundle.replacen("\"keyid\":\"\"", "\"keyid\":\"run this\"", 1),
        bundle.replacen("\"hint\":\"", "\"hint\":\"run this", 1),
    ] {
        assert_ne!(changed, bundle);
        assert!(check(&changed).is_err(), "{changed}");
    }
    for (file, mode) in [("SKILL.md", 0o755), ("scripts/run.sh", 0o644)] {
        let before = fs::metadata(skill.join(file)).unwrap().permissions();
        set_mode(&skill.join(file), mode);
        let error = check(&bundle).expect_err(file).to_string();
        assert!(error.contains("changed in its type"), "{error}");
        fs::set_permissions(skill.join(file), before).unwrap();
    }
    assert!(check(&bundle).is_ok(), "the control again");
}

/// A new key on P-256, secret and public, as PEM.
fn new_key_pair() -> (String, String) {
    use base64::Engine as _;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
    let random = ring::rand::SystemRandom::new();
    let secret = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, secret.as_ref(), &random).unwrap();
    // SubjectPublicKeyInfo of id-ecPublicKey on prime256v1.
    let mut public =
        b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00"
            .to_vec();
    public.extend_from_slice(pair.public_key().as_ref());
    let pem = |label: &str, der: &[u8]| {
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    (pem("PRIVATE KEY", secret.as_ref()), pem("PUBLIC KEY", &public))
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
