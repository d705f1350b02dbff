//! `skillbox sign`: signs all files of a skill.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use skillbox_model::{Digest, ErrorCode, SkillName};
use skillbox_repository::Scope;
use skillbox_runtime::read_skill_files;
use skillbox_trust::{
    BUNDLE_FILE, BundleSigner, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, SignatureError, sign_bundle, sign_manifest,
};

use super::output::{CommandOutput, print_output};
use crate::catalog;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone};
use crate::settings::TrustFlags;
use crate::trust_setup::read_key_file;

/// The variable with the password of an encrypted minisign key.
const PASSWORD_VARIABLE: &str = "MINISIGN_PASSWORD";

/// Sign a skill with a minisign or a PEM secret key
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "A minisign key signs skill.manifest, which lists all files; Debian's `minisign` verifies it too. A PEM key on P-256 \
     or P-384 writes skill.oms.sig, a bundle of OpenSSF Model Signing. The variable MINISIGN_PASSWORD has the password \
     of an encrypted minisign key.\n\n",
    crate::examples!(
    "skillbox sign csv-report --key ~/.minisign/minisign.key",
    "skillbox sign csv-report --key release.pem --certificate chain.pem",
    )
))]
pub struct SignArgs {
    /// Name of the skill
    name: String,
    /// File with the secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File with the certificate chain of a PEM key
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Serialize)]
struct Signed {
    skill: SkillName,
    /// The digest with the signature.
    digest: Digest,
    files: Vec<PathBuf>,
}

pub fn run(args: &SignArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let repository = catalog::open_repository(context, terminal);
    let catalog = repository.catalog();
    let entry = catalog::find_skill(&catalog, &args.name)?;
    if entry.scope() == Scope::BuiltIn {
        let message = format!("the skill {} is part of this program and cannot be signed", args.name);
        return Err(Failure::new(ErrorCode::InvalidRequest, message));
    }
    let read = || read_skill_files(entry, &[]).map_err(|error| Failure::from_body(error.body()));
    let manifest = read()?.manifest;
    let key = read_key_file(&args.key)?;
    let failure = |error: SignatureError| Failure::from_error(ErrorCode::SignatureInvalid, &error);
    let is_pem = key.contains("-----BEGIN ");
    let files = if is_pem {
        let certificates = args.certificate.as_deref().map(read_key_file).transpose()?;
        let signer = BundleSigner {
            secret_key: &key,
            certificates: certificates.as_deref().unwrap_or_default(),
        };
        vec![(
            BUNDLE_FILE,
            sign_bundle(entry.name(), &manifest, signer).map_err(failure)?,
        )]
    } else {
        let password = context
            .layers
            .environment()
            .get(PASSWORD_VARIABLE)
            .and_then(|text| text.to_str());
        let comment = format!("skill {}", entry.name());
        let (listed, signature) = sign_manifest(&manifest, &key, password, &comment).map_err(failure)?;
        vec![(MANIFEST_FILE, listed), (MANIFEST_SIGNATURE_FILE, signature)]
    };
    let mut written = Vec::new();
    for (name, content) in files {
        let path = entry.dir().join(name);
        replace_file(&path, content.as_bytes())?;
        written.push(path);
    }
    let signed = Signed {
        skill: entry.name().clone(),
        digest: read()?.manifest.digest(),
        files: written,
    };
    print_output(&signed, context, terminal)
}

fn replace_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(directory)?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| Failure::new(ErrorCode::Storage, format!("cannot write {}: {error}", path.display())))
}

impl CommandOutput for Signed {
    fn render(&self, page: &mut Page) {
        let text = format!("{} {}", self.skill, self.digest);
        page.labelled(0, Span::new(Tone::Good, "signed"), 8, Tone::Plain, &text);
        for file in &self.files {
            page.line(&[Span::plain("  "), Span::new(Tone::Dim, page.short_path(file))]);
        }
    }
}
