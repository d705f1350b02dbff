//! The same signatures, made and checked by the programs that others use: `minisign` and the package `model-signing`.
//!
//! `tests/run` installs them and sets `SKILLBOX_MODEL_SIGNING` and `SKILLBOX_MINISIGN`. Without them, the tests print why they are skipped.

#![expect(
    clippy::print_stdout,
    reason = "a test prints why it is skipped and what other programs print"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use skillbox_model::PublisherName;
use skillbox_trust::{
    BUNDLE_FILE, BundleSigner, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, Publisher, SignatureFiles, SignatureStatus,
    check_signatures, sign_bundle, sign_manifest,
};

use crate::fixture::{read_manifest, skill_name, write_skill};

#[expect(clippy::disallowed_methods, reason = "tests find their peers by variables")]
fn peer(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        println!("skipped: {variable} is not set");
    }
    path
}

/// Runs a program of the test; returns whether it succeeded.
#[expect(clippy::disallowed_methods, reason = "tests start the peers that they compare with")]
fn succeeds(program: &Path, arguments: &[&str], directory: &Path) -> bool {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    println!(
        "{} {arguments:?}: {} {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&text)
    );
    output.status.success()
}

fn status(skill: &Path, key: &str) -> SignatureStatus {
    let mut publisher = Publisher::new(PublisherName::parse("acme").unwrap());
    publisher.add_key(key).unwrap();
    let read = |name: &str| fs::read(skill.join(name)).ok();
    let (manifest, signature, bundle) = (read(MANIFEST_FILE), read(MANIFEST_SIGNATURE_FILE), read(BUNDLE_FILE));
    let files = SignatureFiles {
        manifest: manifest.as_deref(),
        manifest_signature: signature.as_deref(),
        bundle: bundle.as_deref(),
    };
    check_signatures(&[publisher], &read_manifest(skill), files).into()
}

/// The changes of a signed skill that both sides must refuse.
const CHANGES: [fn(&Path); 4] = [
    |skill| fs::write(skill.join("SKILL.md"), "changed").unwrap(),
    |skill| fs::write(skill.join("added"), "").unwrap(),
    |skill| fs::remove_file(skill.join("scripts/run.sh")).unwrap(),
    |skill| fs::rename(skill.join("scripts/run.sh"), skill.join("scripts/ran.sh")).unwrap(),
];

#[test]
fn bundles_are_exchanged_with_model_signing() {
    let Some(program) = peer("SKILLBOX_MODEL_SIGNING") else {
        return;
    };
    let openssl = Path::new("openssl");
    for curve in ["prime256v1", "secp384r1"] {
        let directory = tempfile::tempdir().unwrap();
        let (root, skill) = (directory.path(), directory.path().join("report"));
        write_skill(&skill);
        assert!(succeeds(
            openssl,
            &["ecparam", "-name", curve, "-genkey", "-noout", "-out", "key.pem"],
            root
        ));
        assert!(succeeds(
            openssl,
            &["ec", "-in", "key.pem", "-pubout", "-out", "pub.pem"],
            root
        ));
        let public_key = fs::read_to_string(root.join("pub.pem")).unwrap();
        let secret_key = fs::read_to_string(root.join("key.pem")).unwrap();
        let verify = [
            "verify",
            "key",
            "report",
            "--signature",
            "report/skill.oms.sig",
            "--public_key",
            "pub.pem",
        ];

        let sign = [
            "sign",
            "key",
            "report",
            "--signature",
            "report/skill.oms.sig",
            "--private_key",
            "key.pem",
        ];
        assert!(succeeds(&program, &sign, root), "{curve}");
        assert!(
            matches!(status(&skill, &public_key), SignatureStatus::Valid(_)),
            "{curve}: we accept theirs"
        );

        let signer = BundleSigner {
            secret_key: &secret_key,
            certificates: "",
        };
        let bundle = sign_bundle(&skill_name("report"), &read_manifest(&skill), signer).unwrap();
        fs::write(skill.join(BUNDLE_FILE), bundle).unwrap();
        assert!(succeeds(&program, &verify, root), "{curve}: they accept ours");
        assert!(
            matches!(status(&skill, &public_key), SignatureStatus::Valid(_)),
            "{curve}: we accept ours"
        );

        for change in CHANGES {
            fs::remove_dir_all(skill.join("scripts")).unwrap();
            let _ = fs::remove_file(skill.join("added"));
            write_skill(&skill);
            assert!(
                matches!(status(&skill, &public_key), SignatureStatus::Valid(_)),
                "the control"
            );
            change(&skill);
            assert!(!succeeds(&program, &verify, root), "they refuse it");
            assert!(
                matches!(status(&skill, &public_key), SignatureStatus::Invalid(_)),
                "so do we"
            );
        }
    }
}

#[test]
fn certificates_are_exchanged_with_model_signing() {
    let Some(program) = peer("SKILLBOX_MODEL_SIGNING") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (root, skill) = (directory.path(), directory.path().join("report"));
    write_skill(&skill);
    fs::write(
        root.join("leaf.ext"),
        "keyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    let script = "for name in ca other leaf; do openssl ecparam -name prime256v1 -genkey -noout -out $name.key || exit 1; done; \
        for name in ca other; do openssl req -x509 -new -key $name.key -subj /CN=$name -days 30 -out $name.pem \
            -addext keyUsage=critical,keyCertSign || exit 1; done; \
        openssl req -new -key leaf.key -subj /CN=leaf -out leaf.csr && \
        openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile leaf.ext -out leaf.pem";
    assert!(succeeds(Path::new("sh"), &["-c", script], root));
    let text = |name: &str| fs::read_to_string(root.join(name)).unwrap();

    let sign = [
        "sign",
        "certificate",
        "report",
        "--signature",
        "report/skill.oms.sig",
        "--private_key",
        "leaf.key",
        "--signing_certificate",
        "leaf.pem",
        "--certificate_chain",
        "ca.pem",
    ];
    assert!(succeeds(&program, &sign, root));
    assert!(
        matches!(status(&skill, &text("ca.pem")), SignatureStatus::Valid(_)),
        "{:?}",
        status(&skill, &text("ca.pem"))
    );
    assert!(
        matches!(status(&skill, &text("other.pem")), SignatureStatus::Invalid(_)),
        "another root"
    );

    let (secret_key, certificates) = (text("leaf.key"), text("leaf.pem") + &text("ca.pem"));
    let signer = BundleSigner {
        secret_key: &secret_key,
        certificates: &certificates,
    };
    let bundle = sign_bundle(&skill_name("report"), &read_manifest(&skill), signer).unwrap();
    fs::write(skill.join(BUNDLE_FILE), bundle).unwrap();
    let verify = |root_certificate: &'static str| {
        [
            "verify",
            "certificate",
            "report",
            "--signature",
            "report/skill.oms.sig",
            "--certificate_chain",
            root_certificate,
        ]
    };
    assert!(succeeds(&program, &verify("ca.pem"), root), "they accept ours");
    assert!(
        !succeeds(&program, &verify("other.pem"), root),
        "they refuse another root"
    );
    assert!(matches!(status(&skill, &text("ca.pem")), SignatureStatus::Valid(_)));

    let ca_key = text("ca.key");
    let wrong_key = BundleSigner {
        secret_key: &ca_key,
        certificates: &certificates,
    };
    assert!(sign_bundle(&skill_name("report"), &read_manifest(&skill), wrong_key).is_err());
    fs::write(skill.join("added"), "").unwrap();
    assert!(matches!(status(&skill, &text("ca.pem")), SignatureStatus::Invalid(_)));
}

#[test]
fn manifests_are_exchanged_with_minisign() {
    let Some(program) = peer("SKILLBOX_MINISIGN") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (root, skill) = (directory.path(), directory.path().join("report"));
    write_skill(&skill);
    assert!(succeeds(&program, &["-G", "-W", "-p", "pub", "-s", "sec"], root));
    let public_key = fs::read_to_string(root.join("pub")).unwrap();
    let secret_key = fs::read_to_string(root.join("sec")).unwrap();
    let (manifest, signature) = sign_manifest(&read_manifest(&skill), &secret_key, None, "report").unwrap();
    fs::write(skill.join(MANIFEST_FILE), manifest).unwrap();
    fs::write(skill.join(MANIFEST_SIGNATURE_FILE), signature).unwrap();
    let verify = ["-V", "-m", "report/skill.manifest", "-p", "pub"];
    assert!(succeeds(&program, &verify, root), "they accept ours");
    assert!(matches!(status(&skill, &public_key), SignatureStatus::Valid(_)));

    fs::remove_file(skill.join(MANIFEST_SIGNATURE_FILE)).unwrap();
    assert!(succeeds(
        &program,
        &["-S", "-m", "report/skill.manifest", "-s", "sec"],
        root
    ));
    assert!(
        matches!(status(&skill, &public_key), SignatureStatus::Valid(_)),
        "we accept theirs"
    );
    for change in CHANGES {
        fs::remove_dir_all(skill.join("scripts")).unwrap();
        let _ = fs::remove_file(skill.join("added"));
        write_skill(&skill);
        assert!(
            matches!(status(&skill, &public_key), SignatureStatus::Valid(_)),
            "the control"
        );
        change(&skill);
        assert!(matches!(status(&skill, &public_key), SignatureStatus::Invalid(_)));
    }
    fs::write(skill.join(MANIFEST_FILE), "skillbox-manifest/1\n").unwrap();
    assert!(!succeeds(&program, &verify, root), "they refuse a changed manifest");
}
