//! The directory with one file for each approved digest.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use skillbox_model::{Digest, ErrorCode, SkillName};

use super::approval::{Approval, Revocation};
use super::revocation_list::{FileStamp, RevocationList, missing_list};
use crate::private_file::{create_private_dir, read_limited, replace_file};
use crate::{HostKey, TrustError};

/// An approval lists up to 100,000 files.
const MAX_APPROVAL_BYTES: u64 = 32 << 20;
/// More approvals than a person makes; a scan of the directory stops there.
const MAX_APPROVALS: usize = 100_000;
/// Approvals in memory. A host that runs more skills at the same time reads the others from their files.
const CACHE_CAPACITY: usize = 4_096;
const FILE_SUFFIX: &str = ".approval";

/// The approvals of a trust directory.
#[derive(Debug)]
pub struct ApprovalStore {
    directory: PathBuf,
    list_path: PathBuf,
    key: Arc<HostKey>,
    revocations: Mutex<Option<(FileStamp, Arc<RevocationList>)>>,
    /// Approvals that were read and authenticated, with the state of their file. A lookup costs one `stat`.
    cache: Mutex<HashMap<Digest, (FileStamp, Arc<Approval>)>>,
}

/// Approvals of a directory, and files that are not valid approvals.
#[derive(Debug, Default)]
pub struct ApprovalList {
    /// Valid, expired and revoked approvals; the newest first.
    pub approvals: Vec<Approval>,
    /// One error for each other file.
    pub problems: Vec<TrustError>,
}

impl ApprovalStore {
    /// The approvals below a trust directory. Nothing is created before the first approval.
    pub fn new(trust_dir: &Path, key: Arc<HostKey>) -> Self {
        Self {
            directory: trust_dir.join("approvals"),
            list_path: RevocationList::path(trust_dir),
            key,
            revocations: Mutex::default(),
            cache: Mutex::default(),
        }
    }

    /// The approval of a digest, whatever its state. A file that is not authentic is an error.
    pub fn find(&self, digest: &Digest) -> Result<Option<Arc<Approval>>, TrustError> {
        let path = self.path(digest);
        let Some(stamp) = FileStamp::read(&path)? else {
            return Ok(None);
        };
        let approval = self.read_cached(digest, stamp, &path)?;
        if let Some(approval) = &approval {
            self.check_revocations(approval, &path)?;
        }
        Ok(approval)
    }

    fn read_cached(&self, digest: &Digest, stamp: FileStamp, path: &Path) -> Result<Option<Arc<Approval>>, TrustError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((cached_stamp, approval)) = cache.get(digest)
            && *cached_stamp == stamp
        {
            return Ok(Some(Arc::clone(approval)));
        }
        let Some(approval) = self.read(path)? else {
            return Ok(None);
        };
        let approval = Arc::new(approval);
        if cache.len() >= CACHE_CAPACITY {
            cache.clear();
        }
        cache.insert(*digest, (stamp, Arc::clone(&approval)));
        Ok(Some(approval))
    }

    /// Refuses an approval that is older than its revocation. The list is written before approvals, and so read after
    /// them.
    fn check_revocations(&self, approval: &Approval, path: &Path) -> Result<(), TrustError> {
        let is_revoked = approval.revocation.is_some();
        let list = self.revocations()?;
        list.check(&approval.digest, approval.after_revocations, is_revoked, path)
    }

    /// The list of revocations, read again only after it was replaced. An approval needs one.
    fn revocations(&self) -> Result<Arc<RevocationList>, TrustError> {
        let Some(stamp) = FileStamp::read(&self.list_path)? else {
            return Err(missing_list(&self.list_path));
        };
        let mut cached = self.revocations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, list)) = &*cached
            && *known == stamp
        {
            return Ok(Arc::clone(list));
        }
        let list = RevocationList::read(&self.list_path, &self.key)?.ok_or_else(|| missing_list(&self.list_path))?;
        let list = Arc::new(list);
        *cached = Some((stamp, Arc::clone(&list)));
        Ok(list)
    }

    /// Stores an approval. An earlier one of the same digest is replaced.
    pub fn insert(&self, approval: &Approval) -> Result<(), TrustError> {
        let _lock = self.lock()?;
        let list = match RevocationList::read(&self.list_path, &self.key)? {
            Some(list) => list,
            // The list is as old as the first approval.
            None if self.has_approvals()? => return Err(missing_list(&self.list_path)),
            None => {
                let list = RevocationList::default();
                list.write(&self.list_path, &self.key)?;
                list
            }
        };
        self.write(approval, &list)
    }

    fn write(&self, approval: &Approval, list: &RevocationList) -> Result<(), TrustError> {
        let mut approval = approval.clone();
        approval.after_revocations = list.count;
        replace_file(
            &self.path(&approval.digest),
            approval.to_text(&self.key).as_bytes(),
            0o600,
        )
    }

    /// Ends an approval. It stays in the store, so that the next version is still compared with it. Returns `None` if
    /// there is no such approval.
    pub fn revoke(&self, digest: &Digest, revocation: Revocation) -> Result<Option<Approval>, TrustError> {
        if FileStamp::read(&self.path(digest))?.is_none() {
            return Ok(None);
        }
        let _lock = self.lock()?;
        let mut list =
            RevocationList::read(&self.list_path, &self.key)?.ok_or_else(|| missing_list(&self.list_path))?;
        let Some(mut approval) = self.read(&self.path(digest))? else {
            return Ok(None);
        };
        // The list comes first: after a crash between the two, the approval does not count.
        list.revoke(*digest);
        list.write(&self.list_path, &self.key)?;
        approval.revocation = Some(revocation);
        self.write(&approval, &list)?;
        Ok(Some(approval))
    }

    /// Keeps other processes from changing approvals.
    fn lock(&self) -> Result<File, TrustError> {
        create_private_dir(&self.directory)?;
        let directory = File::open(&self.directory).map_err(TrustError::io("open", &self.directory))?;
        directory.lock().map_err(TrustError::io("lock", &self.directory))?;
        Ok(directory)
    }

    fn has_approvals(&self) -> Result<bool, TrustError> {
        let mut entries = fs::read_dir(&self.directory).map_err(TrustError::io("list", &self.directory))?;
        Ok(entries.next().is_some())
    }

    /// All approvals.
    pub fn list(&self) -> Result<ApprovalList, TrustError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ApprovalList::default()),
            Err(error) => return Err(TrustError::io("list", &self.directory)(error)),
        };
        let mut list = ApprovalList::default();
        for entry in entries.take(MAX_APPROVALS) {
            let path = entry.map_err(TrustError::io("list", &self.directory))?.path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.starts_with(b".partial-") {
                continue;
            }
            let approval = self.read(&path).and_then(|approval| {
                if let Some(approval) = &approval {
                    self.check_revocations(approval, &path)?;
                }
                Ok(approval)
            });
            match approval {
                Ok(Some(approval)) => list.approvals.push(approval),
                Ok(None) => {}
                Err(error) => list.problems.push(error),
            }
        }
        list.approvals
            .sort_by_key(|approval| (std::cmp::Reverse(approval.approved_at_ms), approval.digest));
        Ok(list)
    }

    /// The newest approval of a skill with this name, whatever its state: what the next version is compared with.
    pub fn last_of(&self, skill: &SkillName) -> Result<Option<Approval>, TrustError> {
        let list = self.list()?;
        Ok(list.approvals.into_iter().find(|approval| approval.skill == *skill))
    }

    /// Reads one file. Its name must be that of the digest in it, so that a renamed or copied file is refused.
    fn read(&self, path: &Path) -> Result<Option<Approval>, TrustError> {
        let Some(text) = read_limited(path, MAX_APPROVAL_BYTES, ErrorCode::NotApproved)? else {
            return Ok(None);
        };
        let approval = Approval::parse(&text, path, &self.key)?;
        if path != self.path(&approval.digest) {
            return Err(TrustError::NotAuthentic {
                code: ErrorCode::NotApproved,
                path: path.to_owned(),
                problem: format!("it was copied or renamed: it approves {}; remove it", approval.digest),
            });
        }
        Ok(Some(approval))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}{FILE_SUFFIX}", digest.hex()))
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::{Grants, HostPort};

    use super::*;
    use crate::approvals::ApprovalState;
    use crate::manifest::tests::manifest;

    fn store(directory: &Path) -> ApprovalStore {
        ApprovalStore::new(directory, Arc::new(HostKey::open(directory).unwrap()))
    }

    fn approval(content: &str, at: u64) -> Approval {
        let grants = Grants {
            network: [HostPort::parse("api.example.com").unwrap()].into(),
            ..Grants::default()
        };
        let files = manifest(&[("SKILL.md", content), ("scripts/run.sh", "echo")]);
        Approval::new(SkillName::parse("report").unwrap(), files, grants, "alice", at)
    }

    #[test]
    fn an_approval_is_found_until_it_is_revoked_or_expires() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let mut first = approval("one", 1_000);
        first.expires_at_ms = Some(5_000);
        first.note = Some("reviewed".to_owned());
        assert!(store.find(&first.digest).unwrap().is_none());
        store.insert(&first).unwrap();
        let found = store.find(&first.digest).unwrap().unwrap();
        assert_eq!(*found, first);
        assert_eq!(found.state(4_999), ApprovalState::Valid);
        assert_eq!(found.state(5_000), ApprovalState::Expired);
        assert!(store.find(&approval("two", 0).digest).unwrap().is_none());

        let revocation = Revocation {
            revoked_by: "bob".to_owned(),
            revoked_at_ms: 2_000,
            note: None,
        };
        store.revoke(&first.digest, revocation.clone()).unwrap().unwrap();
        assert_eq!(
            store.find(&first.digest).unwrap().unwrap().state(2_001),
            ApprovalState::Revoked
        );
        assert!(store.revoke(&approval("two", 0).digest, revocation).unwrap().is_none());
    }

    /// Attacks with files that were copied before a revocation.
    #[test]
    fn a_revoked_approval_cannot_be_brought_back() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let (one, two) = (approval("one", 1_000), approval("two", 1_000));
        store.insert(&one).unwrap();
        let list = RevocationList::path(directory.path());
        let (saved_list, saved) = (fs::read(&list).unwrap(), fs::read(store.path(&one.digest)).unwrap());
        assert_eq!(store.find(&one.digest).unwrap().unwrap().state(0), ApprovalState::Valid);
        let revocation = Revocation {
            revoked_by: "bob".to_owned(),
            revoked_at_ms: 2_000,
            note: None,
        };
        store.revoke(&one.digest, revocation).unwrap().unwrap();
        let revoked = fs::read(store.path(&one.digest)).unwrap();
        fs::write(store.path(&one.digest), &saved).unwrap();
        let error = store.find(&one.digest).unwrap_err().to_string();
        assert!(error.contains("was revoked"), "{error}");
        let listed = store.list().unwrap();
        assert_eq!((listed.approvals.len(), listed.problems.len()), (0, 1));

        // An earlier list does not fit an approval that was made after it.
        store.insert(&two).unwrap();
        let new_list = fs::read(&list).unwrap();
        fs::write(&list, &saved_list).unwrap();
        assert!(store.find(&two.digest).is_err(), "an earlier list");
        fs::remove_file(&list).unwrap();
        assert!(store.find(&one.digest).is_err(), "no list");
        assert!(store.insert(&two).is_err(), "no list is started beside approvals");
        fs::write(&list, [&new_list[..5], b"0", &new_list[6..]].concat()).unwrap();
        assert!(store.find(&two.digest).is_err(), "an edited list");

        fs::write(&list, &new_list).unwrap();
        assert_eq!(store.find(&two.digest).unwrap().unwrap().state(0), ApprovalState::Valid);
        fs::write(store.path(&one.digest), revoked).unwrap();
        let found = store.find(&one.digest).unwrap().unwrap();
        assert_eq!(found.state(0), ApprovalState::Revoked, "the control");
        store.insert(&one).unwrap();
        let found = store.find(&one.digest).unwrap().unwrap();
        assert_eq!(found.state(0), ApprovalState::Valid, "approved again");
    }

    #[test]
    fn the_next_version_is_compared_with_the_last_approved_one() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        for (content, at) in [("one", 1), ("three", 3), ("two", 2)] {
            store.insert(&approval(content, at)).unwrap();
        }
        let last = store.last_of(&SkillName::parse("report").unwrap()).unwrap().unwrap();
        assert_eq!(last.digest, approval("three", 3).digest);
        let changes = last
            .files
            .changes_to(&manifest(&[("SKILL.md", "three"), ("scripts/run.sh", "rm")]));
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].to_string(), "scripts/run.sh was changed");
        assert!(store.last_of(&SkillName::parse("other").unwrap()).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let approval = approval("one", 1);
        store.insert(&approval).unwrap();
        let path = store.path(&approval.digest);
        let original = fs::read(&path).unwrap();
        for position in 0..original.len() {
            let mut changed = original.clone();
            changed[position] ^= 1;
            fs::write(&path, &changed).unwrap();
            let error = store.find(&approval.digest).expect_err(&format!("byte {position}"));
            assert_eq!(error.code(), ErrorCode::NotApproved);
        }
        fs::write(&path, &original[..original.len() - 1]).unwrap();
        assert!(store.find(&approval.digest).is_err());
        fs::write(&path, &original).unwrap();
        assert!(store.find(&approval.digest).unwrap().is_some(), "the control");
    }

    #[test]
    fn copied_renamed_and_foreign_approvals_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let approved = approval("one", 1);
        store.insert(&approved).unwrap();
        let other = approval("two", 1).digest;
        fs::copy(store.path(&approved.digest), store.path(&other)).unwrap();
        let error = store.find(&other).unwrap_err();
        assert!(error.to_string().contains("copied or renamed"), "{error}");
        assert!(
            store.find(&approved.digest).unwrap().is_some(),
            "the original still counts"
        );
        let list = store.list().unwrap();
        assert_eq!((list.approvals.len(), list.problems.len()), (1, 1));

        let second_host = tempfile::tempdir().unwrap();
        let second = self::store(second_host.path());
        fs::create_dir(second_host.path().join("approvals")).unwrap();
        fs::copy(store.path(&approved.digest), second.path(&approved.digest)).unwrap();
        let error = second.find(&approved.digest).unwrap_err();
        assert!(error.to_string().contains("another host key"), "{error}");
    }
}
