//! The archive in which a skill travels: its entries one after the other.
//!
//! An entry is its kind (`d`, `f`, `x`, `l`), the length of its path (4 bytes, little-endian), the path, the length of its
//! content (8 bytes) and the content: of a file, or the target of a link. The digest of the skill is computed from what is
//! written and checked again after unpacking, so the archive itself needs no checksum.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use skillbox_model::{Digest, RelPath};
use skillbox_repository::{SkillDir, SkillReadError, TreeDigest, TreeEntryKind, content_digest};

/// The largest archive that is unpacked. Skills have a smaller limit of their own.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 100_000;
const MAX_PATH_BYTES: u32 = 4096;

/// Writes the archive of a skill. Returns the digest of the skill as it was written.
pub(super) fn write(skill: &SkillDir, output: &mut dyn Write) -> Result<Digest, SkillReadError> {
    let mut digest = TreeDigest::new();
    let mut budget = skill.read_budget(&|| false);
    for entry in skill.tree_entries()? {
        let (kind, content) = match &entry.kind {
            TreeEntryKind::Dir => (b'd', Vec::new()),
            TreeEntryKind::Link { target } => {
                digest.add_link(&entry.path, target);
                (b'l', target.to_vec())
            }
            TreeEntryKind::File { .. } => {
                let file = skill.open_file(&entry.path)?;
                let is_executable = file.is_executable();
                let mut content = Vec::new();
                let read = budget.reader(file).read_to_end(&mut content);
                let hashed = read.and_then(|_| content_digest(content.as_slice()));
                let hashed = hashed.map_err(|source| skill.budget_error(&budget, &entry.path, source))?;
                digest.add_file(&entry.path, is_executable, &hashed);
                (if is_executable { b'x' } else { b'f' }, content)
            }
        };
        let written = write_entry(output, kind, &entry.path, &content);
        written.map_err(|source| skill.budget_error(&budget, &entry.path, source))?;
    }
    Ok(digest.finish())
}

fn write_entry(output: &mut dyn Write, kind: u8, path: &RelPath, content: &[u8]) -> io::Result<()> {
    let path = path.as_bytes();
    output.write_all(&[kind])?;
    output.write_all(&u32::try_from(path.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    output.write_all(path)?;
    output.write_all(&(content.len() as u64).to_le_bytes())?;
    output.write_all(content)
}

/// Unpacks an archive below a new directory. Nothing is written outside it: paths have no `..`, and links are created
/// after all files, so that no file is written through one.
pub(super) fn unpack(archive: impl Read, directory: &Path) -> io::Result<()> {
    let mut archive = BufReader::new(archive.take(MAX_ARCHIVE_BYTES));
    let mut links = Vec::new();
    for _ in 0..MAX_ENTRIES {
        let mut kind = [0];
        if archive.read(&mut kind)? == 0 {
            for (path, target) in links {
                rustix::fs::symlink(&target, directory.join(RelPath::as_path(&path)))?;
            }
            return Ok(());
        }
        let path = read_path(&mut archive)?;
        let mut size = [0; 8];
        archive.read_exact(&mut size)?;
        let size = u64::from_le_bytes(size);
        let host_path = directory.join(path.as_path());
        match kind[0] {
            b'd' => fs::create_dir(&host_path)?,
            kind @ (b'f' | b'x') => {
                let mode = if kind == b'x' { 0o755 } else { 0o644 };
                let mut options = OpenOptions::new();
                let mut file = options.write(true).create_new(true).mode(mode).open(&host_path)?;
                let copied = io::copy(&mut (&mut archive).take(size), &mut file)?;
                if copied != size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            b'l' if size <= u64::from(MAX_PATH_BYTES) => {
                let mut target = vec![0; usize::try_from(size).unwrap_or_default()];
                archive.read_exact(&mut target)?;
                links.push((path, std::ffi::OsStr::from_bytes(&target).to_owned()));
            }
            _ => return Err(io::Error::other("an entry of the archive is invalid")),
        }
    }
    Err(io::Error::other("the archive has too many entries"))
}

fn read_path(archive: &mut impl Read) -> io::Result<RelPath> {
    let mut length = [0; 4];
    archive.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_PATH_BYTES {
        return Err(io::Error::other("a path of the archive is too long"));
    }
    let mut path = vec![0; usize::try_from(length).unwrap_or_default()];
    archive.read_exact(&mut path)?;
    RelPath::parse(&path).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_the_same_after_its_journey() {
        let directory = tempfile::tempdir().unwrap();
        let skill = directory.path().join("one");
        fs::create_dir_all(skill.join("scripts/empty")).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: one\ndescription: x\n---\n").unwrap();
        fs::write(skill.join("scripts/a b.sh"), "echo é\n").unwrap();
        rustix::fs::chmod(skill.join("scripts/a b.sh"), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        rustix::fs::symlink("a b.sh", skill.join("scripts/link")).unwrap();
        let mut archive = Vec::new();
        let digest = write(&SkillDir::open(&skill).unwrap(), &mut archive).unwrap();
        assert_eq!(digest, SkillDir::open(&skill).unwrap().digest().unwrap());
        let unpacked = directory.path().join("two");
        fs::create_dir(&unpacked).unwrap();
        unpack(archive.as_slice(), &unpacked).unwrap();
        assert_eq!(SkillDir::open(&unpacked).unwrap().digest().unwrap(), digest);
        for cut in [1, 3, archive.len() / 2, archive.len() - 1] {
            let partial = tempfile::tempdir().unwrap();
            assert!(unpack(&archive[..cut], partial.path()).is_err(), "{cut}");
        }
    }

    #[test]
    fn h252_an_archive_cannot_write_outside_its_directory() {
        let entry = |kind: u8, path: &str, content: &str| {
            let mut bytes = vec![kind];
            bytes.extend((path.len() as u32).to_le_bytes());
            bytes.extend(path.as_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content.as_bytes());
            bytes
        };
        let outside = tempfile::tempdir().unwrap();
        let outside_path = outside.path().to_str().unwrap().to_owned();
        let hostile = [
            entry(b'f', "../x", "x"),
            entry(b'f', &format!("{outside_path}/x"), "x"),
            [entry(b'l', "a", &outside_path), entry(b'f', "a/x", "x")].concat(),
            [entry(b'l', "a", &outside_path), entry(b'd', "a/x", "")].concat(),
            [entry(b'f', "a", "1"), entry(b'f', "a", "2")].concat(),
            entry(b'?', "a", ""),
            [&[b'f'][..], &u32::MAX.to_le_bytes()].concat(),
        ];
        for archive in hostile {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("skill");
            fs::create_dir(&target).unwrap();
            assert!(unpack(archive.as_slice(), &target).is_err(), "{archive:?}");
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
        // The control: the same kinds of entries inside.
        let directory = tempfile::tempdir().unwrap();
        let archive = [entry(b'd', "d", ""), entry(b'f', "d/x", "x"), entry(b'l', "a", "d/x")].concat();
        unpack(archive.as_slice(), directory.path()).unwrap();
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"x");
    }
}
