//! The key of this host: it authenticates approvals and signs checkpoints of the audit log.
//!
//! `host.key` contains 32 random bytes, from which one key for each purpose is derived (HKDF-SHA-256). `host.pub`
//! contains the public key of the checkpoints, with which anyone can verify a copy of the log.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom as _;
use ring::signature::KeyPair as _;
use ring::{digest, hkdf, hmac, rand, signature};
use skillbox_model::ErrorCode;

use crate::TrustError;
use crate::private_file::{check_owner, create_private_dir, read_limited, replace_file};

const KEY_FILE: &str = "host.key";
const PUBLIC_KEY_FILE: &str = "host.pub";
const KEY_PREFIX: &str = "skillbox-host-key/1 ";
const PUBLIC_KEY_PREFIX: &str = "skillbox-host-public-key/1 ";
/// The text of a key has fewer than 100 bytes.
const MAX_KEY_BYTES: u64 = 1024;

/// The key of this host.
pub struct HostKey {
    approvals: hmac::Key,
    revocations: hmac::Key,
    audit_head: hmac::Key,
    audit_chain: hmac::Key,
    audit_records: hmac::Key,
    checkpoints: signature::Ed25519KeyPair,
}

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostKey({})", self.id())
    }
}

impl HostKey {
    /// Reads the key of a trust directory. Creates key and directory on first use.
    ///
    /// A missing key beside existing approvals or an existing log is an error: a new key would not fit them.
    pub fn open(trust_dir: &Path) -> Result<Self, TrustError> {
        let path = trust_dir.join(KEY_FILE);
        if let Some(key) = Self::read(&path)? {
            return Ok(key);
        }
        create_private_dir(trust_dir)?;
        if let Some(existing) = ["approvals", "approvals.revoked", "audit", "audit.chain"]
            .iter()
            .map(|name| trust_dir.join(name))
            .find(|path| path.exists())
        {
            return Err(TrustError::NotAuthentic {
                code: ErrorCode::Storage,
                path: existing,
                problem: format!(
                    "the host key {} is missing; restore it from a backup, or move this directory away and approve again",
                    path.display()
                ),
            });
        }
        create_key_file(&path)?;
        let key = Self::read(&path)?.ok_or_else(|| TrustError::io("find", &path)(io::ErrorKind::NotFound.into()))?;
        let public_key = format!("{PUBLIC_KEY_PREFIX}{}\n", STANDARD.encode(key.public_key()));
        replace_file(&trust_dir.join(PUBLIC_KEY_FILE), public_key.as_bytes(), 0o644)?;
        Ok(key)
    }

    fn read(path: &Path) -> Result<Option<Self>, TrustError> {
        let Some(text) = read_limited(path, MAX_KEY_BYTES, ErrorCode::Storage)? else {
            return Ok(None);
        };
        let metadata = fs::metadata(path).map_err(TrustError::io("read the mode of", path))?;
        check_owner(path, &metadata)?;
        if metadata.mode() & 0o077 != 0 {
            return Err(TrustError::NotPrivate {
                path: path.to_owned(),
                problem: format!(
                    "its mode is {:o}; run `chmod 600` on it, and create a new key if others could read it",
                    metadata.mode() & 0o777
                ),
            });
        }
        let seed = decode_key(&text, KEY_PREFIX).ok_or_else(|| TrustError::Malformed {
            code: ErrorCode::Storage,
            path: path.to_owned(),
            line: Some(1),
            problem: "it does not contain a host key; restore it from a backup".to_owned(),
        })?;
        Ok(Some(Self::from_seed(&seed)))
    }

    fn from_seed(seed: &[u8; 32]) -> Self {
        let derive = |purpose: &str| {
            let mut derived = [0; 32];
            let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"skillbox-host-key/1").extract(seed);
            secret
                .expand(&[purpose.as_bytes()], hkdf::HKDF_SHA256)
                .and_then(|output| output.fill(&mut derived))
                .expect("HKDF-SHA-256 gives 32 bytes");
            derived
        };
        Self {
            approvals: hmac::Key::new(hmac::HMAC_SHA256, &derive("approvals")),
            revocations: hmac::Key::new(hmac::HMAC_SHA256, &derive("revocations")),
            audit_head: hmac::Key::new(hmac::HMAC_SHA256, &derive("audit head")),
            audit_chain: hmac::Key::new(hmac::HMAC_SHA256, &derive("audit chain")),
            audit_records: hmac::Key::new(hmac::HMAC_SHA256, &derive("audit records")),
            checkpoints: signature::Ed25519KeyPair::from_seed_unchecked(&derive("audit checkpoints"))
                .expect("every seed of 32 bytes is a key"),
        }
    }

    /// A short identifier of the public key.
    pub fn id(&self) -> String {
        public_key_id(&self.public_key())
    }

    /// The public key of the checkpoints.
    pub fn public_key(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.checkpoints.public_key().as_ref());
        bytes
    }

    pub(crate) fn approval_tag(&self, content: &[u8]) -> [u8; 32] {
        tag(&self.approvals, content)
    }

    pub(crate) fn is_approval_tag(&self, content: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.approvals, content, tag).is_ok()
    }

    pub(crate) fn revocations_key(&self) -> &hmac::Key {
        &self.revocations
    }

    pub(crate) fn audit_head_key(&self) -> &hmac::Key {
        &self.audit_head
    }

    pub(crate) fn audit_chain_key(&self) -> &hmac::Key {
        &self.audit_chain
    }

    /// The tag of an audit record, over its fingerprint and the signature that it may have.
    pub(crate) fn record_tag(&self, fingerprint: &[u8], signature: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.audit_records);
        context.update(fingerprint);
        context.update(signature);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }

    pub(crate) fn is_record_tag(&self, fingerprint: &[u8], signature: &[u8], tag: &[u8; 32]) -> bool {
        let mut content = [0; 96];
        let (first, rest) = content.split_at_mut(32);
        first.copy_from_slice(fingerprint);
        rest[..signature.len()].copy_from_slice(signature);
        hmac::verify(&self.audit_records, &content[..32 + signature.len()], tag).is_ok()
    }

    pub(crate) fn sign_checkpoint(&self, fingerprint: &[u8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.checkpoints.sign(fingerprint).as_ref());
        bytes
    }

    /// Signs approvals for another host. The prefix keeps these signatures apart from those of checkpoints.
    pub(crate) fn sign_export(&self, content: &[u8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.checkpoints.sign(&Self::export_message(content)).as_ref());
        bytes
    }

    /// The bytes that the signature of an export covers.
    pub(crate) fn export_message(content: &[u8]) -> Vec<u8> {
        [b"skillbox-approvals-export/1\0", content].concat()
    }
}

fn tag(key: &hmac::Key, content: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hmac::sign(key, content).as_ref());
    bytes
}

/// The identifier of a public key: the first 16 hexadecimal digits of its SHA-256.
pub(crate) fn public_key_id(public_key: &[u8; 32]) -> String {
    let hash = digest::digest(&digest::SHA256, public_key);
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads `host.pub`, for the verification of a log on another host.
pub fn read_public_key(path: &Path) -> Result<[u8; 32], TrustError> {
    let text = read_limited(path, MAX_KEY_BYTES, ErrorCode::Storage)?
        .ok_or_else(|| TrustError::io("open", path)(io::ErrorKind::NotFound.into()))?;
    decode_key(&text, PUBLIC_KEY_PREFIX).ok_or_else(|| TrustError::Malformed {
        code: ErrorCode::Storage,
        path: path.to_owned(),
        line: Some(1),
        problem: "it does not contain the public key of a host".to_owned(),
    })
}

/// The path of the public key in a trust directory.
pub fn public_key_path(trust_dir: &Path) -> PathBuf {
    trust_dir.join(PUBLIC_KEY_FILE)
}

fn decode_key(text: &[u8], prefix: &str) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix(prefix)?;
    STANDARD.decode(text.trim_end_matches('\n')).ok()?.try_into().ok()
}

/// Creates the file with its content in one step. If another process was faster, its file is kept.
fn create_key_file(path: &Path) -> Result<(), TrustError> {
    let mut seed = [0; 32];
    rand::SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_| TrustError::io("get random bytes for", path)(io::Error::other("no random bytes")))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    // A new temporary file has the mode 0600.
    let mut temporary = tempfile::Builder::new()
        .prefix(".partial-")
        .tempfile_in(directory)
        .map_err(TrustError::io("create a file in", directory))?;
    let text = format!("{KEY_PREFIX}{}\n", STANDARD.encode(seed));
    let file = temporary.as_file_mut();
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(TrustError::io("write", path))?;
    match temporary.persist_noclobber(path) {
        Ok(_) => crate::private_file::sync_dir(directory),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(TrustError::io("create", path)(error.error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_created_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let trust_dir = directory.path().join("trust");
        let ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| HostKey::open(&trust_dir).unwrap().id()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let path = trust_dir.join(KEY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            public_key_id(&read_public_key(&public_key_path(&trust_dir)).unwrap()),
            ids[0]
        );

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(HostKey::open(&trust_dir), Err(TrustError::NotPrivate { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(HostKey::open(&trust_dir).unwrap().id(), ids[0]);
        fs::write(&path, "skillbox-host-key/1 AAAA\n").unwrap();
        assert!(matches!(HostKey::open(&trust_dir), Err(TrustError::Malformed { .. })));
    }

    #[test]
    fn a_lost_key_is_not_replaced_beside_approvals() {
        let directory = tempfile::tempdir().unwrap();
        HostKey::open(directory.path()).unwrap();
        fs::create_dir(directory.path().join("approvals")).unwrap();
        fs::remove_file(directory.path().join(KEY_FILE)).unwrap();
        let error = HostKey::open(directory.path()).unwrap_err();
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
    }
}
