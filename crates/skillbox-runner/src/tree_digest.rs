//! The digest of a skill, computed from its files on disk.
//!
//! The catalog (`skillbox-repository`) defines the hashed text: `skillbox-tree/1` and a NUL, then for each file and
//! link, ordered by path, `kind SP sha256-of-content SP path NUL`. This implementation is deliberately independent of
//! the catalog's: it checks the files that the executor sent.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;

use sha2::{Digest, Sha256};

use crate::message::{Entry, EntryKind};
use crate::tree_walk::{WalkOptions, exclude_nothing, open_file, walk_tree};

/// The maximum number of entries of a skill.
const MAX_ENTRIES: u64 = 1_000_000;

/// What a digest has of one file or link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeRecord {
    /// The path below the tree.
    pub path: Vec<u8>,
    /// `f` for a file, `x` for an executable one, `l` for a link.
    pub kind: u8,
    /// The SHA-256 of the content, or of the target of a link.
    pub content: [u8; 32],
}

/// Computes the digest of a tree, without the top-level entries in `excluded_names`.
pub fn tree_digest(root: BorrowedFd<'_>, excluded_names: &[&[u8]]) -> io::Result<[u8; 32]> {
    Ok(digest_of_records(&tree_records(root, excluded_names)?))
}

/// The digest of these records, which are ordered by path.
pub fn digest_of_records(records: &[TreeRecord]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(b"skillbox-tree/1\0");
    for record in records {
        digest.update([record.kind, b' ']);
        digest.update(hex(&record.content));
        digest.update(b" ");
        digest.update(&record.path);
        digest.update(b"\0");
    }
    digest.finalize().into()
}

/// Reads the files and links of a tree, without the top-level entries in `excluded_names`, ordered by path.
pub fn tree_records(root: BorrowedFd<'_>, excluded_names: &[&[u8]]) -> io::Result<Vec<TreeRecord>> {
    let mut entries: Vec<Entry> = Vec::new();
    let options = WalkOptions {
        root,
        excluded_names,
        is_excluded: &exclude_nothing,
        max_entries: MAX_ENTRIES,
    };
    let skipped = walk_tree::<rustix::io::Errno>(options, &mut |entry| {
        entries.push(entry.clone());
        Ok(())
    })?;
    if skipped > 0 {
        return Err(io::Error::other(format!("{skipped} entries cannot be read")));
    }
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut records = Vec::with_capacity(entries.len());
    for entry in &entries {
        let (kind, content) = match &entry.kind {
            EntryKind::Directory { .. } => continue,
            EntryKind::Symlink { target } => (b'l', Sha256::digest(target).into()),
            EntryKind::File { mode, .. } => {
                let content = content_digest(File::from(open_file(root, &entry.path)?))?;
                (if mode & 0o100 == 0 { b'f' } else { b'x' }, content)
            }
            other => {
                let shown = String::from_utf8_lossy(&entry.path).into_owned();
                return Err(io::Error::other(format!(
                    "{shown:?} is a {other:?}, which a skill cannot contain"
                )));
            }
        };
        records.push(TreeRecord {
            path: entry.path.clone(),
            kind,
            content,
        });
    }
    Ok(records)
}

fn content_digest(mut file: File) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_documented_text_is_hashed() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        fs::create_dir_all(top.join("s/empty")).unwrap();
        fs::write(top.join("s.txt"), "x").unwrap();
        fs::write(top.join("s/run"), "").unwrap();
        fs::set_permissions(top.join("s/run"), fs::Permissions::from_mode(0o555)).unwrap();
        symlink("../../out", top.join("out")).unwrap();
        symlink("s.txt", top.join("z")).unwrap();
        let sum = |text: &str| hex(&Sha256::digest(text).into());
        let text = format!(
            "skillbox-tree/1\0f {} s.txt\0x {} s/run\0l {} z\0",
            sum("x"),
            sum(""),
            sum("s.txt")
        );
        let root = File::open(top).unwrap();
        let digest = tree_digest(root.as_fd(), &[b"out"]).unwrap();
        assert_eq!(hex(&digest), sum(&text));
        fs::write(top.join("s.txt"), "y").unwrap();
        assert_ne!(tree_digest(root.as_fd(), &[b"out"]).unwrap(), digest);
    }
}
