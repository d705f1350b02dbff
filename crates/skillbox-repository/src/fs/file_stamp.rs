//! Detects that a file or directory changed, without reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// An upper bound of the resolution of file times. The kernel updates them in ticks, so two writes within one tick may
/// have the same change time.
const TICK_NANOS: i64 = 20_000_000;
/// The resolution on file systems that do not store fractions of seconds: two seconds on FAT, one on others.
const COARSE_TICK_NANOS: i64 = 2_000_000_000;

/// Size, times and identity of a file at one moment.
///
/// The change time detects most writes: a program can reset the modification time, but only the kernel sets the change
/// time. Both are stored, because a restored backup may differ in only one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    changed: i64,
    /// Whether every later write is certain to change the stamp.
    is_settled: bool,
}

/// The result of comparing a stamp with a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampComparison {
    /// The file was not written in between.
    Same,
    /// The stamps are equal, but the first was taken so soon after a write that it may hide a second write.
    Uncertain,
    /// The file was written, or it is another file.
    Different,
}

impl FileStamp {
    /// The stamp of a file whose `stat` was taken now.
    pub fn new(stat: &Stat) -> Self {
        Self::taken_at(stat, now_nanos())
    }

    /// A stamp to pass as `later` to [`Self::compare`], which does not need the current time.
    pub fn for_comparison(stat: &Stat) -> Self {
        Self::taken_at(stat, 0)
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the fields of the kernel's structure differ between architectures"
    )]
    fn taken_at(stat: &Stat, now: i64) -> Self {
        let nanos = |seconds: i64, fraction: i64| seconds.saturating_mul(1_000_000_000).saturating_add(fraction);
        let changed = nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        let is_coarse = stat.st_ctime_nsec == 0 && stat.st_mtime_nsec == 0;
        let tick = if is_coarse { COARSE_TICK_NANOS } else { TICK_NANOS };
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed,
            // A change time in the future means that a clock is wrong. The stamp counts as settled, because otherwise
            // every check would read the file again.
            is_settled: changed.saturating_add(tick) < now || changed > now.saturating_add(COARSE_TICK_NANOS),
        }
    }

    /// Compares this earlier stamp with a later one.
    pub fn compare(&self, later: &Self) -> StampComparison {
        let is_same = Self {
            is_settled: false,
            ..*self
        } == Self {
            is_settled: false,
            ..*later
        };
        match (is_same, self.is_settled) {
            (false, _) => StampComparison::Different,
            (true, true) => StampComparison::Same,
            (true, false) => StampComparison::Uncertain,
        }
    }

    /// Device and inode of the file.
    pub(crate) fn identity(&self) -> FileIdentity {
        (self.device, self.inode)
    }
}

/// Device and inode: equal for two paths of one file.
pub(crate) type FileIdentity = (u64, u64);

/// Device and inode of the file that `stat` describes.
#[expect(
    clippy::unnecessary_cast,
    reason = "the fields of the kernel's structure differ between architectures"
)]
pub(crate) fn file_identity(stat: &Stat) -> FileIdentity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The real-time clock, which file times also use, in nanoseconds.
fn now_nanos() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stat(path: &std::path::Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    #[test]
    fn a_write_and_a_replacement_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        let first = FileStamp::new(&stat(&file));
        fs::write(&file, "three").unwrap();
        let second = FileStamp::new(&stat(&file));
        assert_eq!(first.compare(&second), StampComparison::Different);
        fs::write(dir.path().join("g"), "three").unwrap();
        fs::rename(dir.path().join("g"), &file).unwrap();
        assert_eq!(
            second.compare(&FileStamp::new(&stat(&file))),
            StampComparison::Different
        );
    }

    #[test]
    fn a_stamp_taken_right_after_a_write_is_uncertain() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        let stat = stat(&file);
        let fresh = FileStamp::new(&stat);
        assert_eq!(fresh.compare(&FileStamp::new(&stat)), StampComparison::Uncertain);
        let later = FileStamp::taken_at(&stat, now_nanos() + TICK_NANOS);
        assert_eq!(later.compare(&fresh), StampComparison::Same);
    }
}
