//! What tells that a file or directory changed, without reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// A change within this time of the look may share its time stamp with the look: kernels stamp in ticks.
const TICK_NANOS: i64 = 20_000_000;
/// File systems that keep whole seconds do so in steps of at most two.
const WHOLE_SECONDS_NANOS: i64 = 2_000_000_000;

/// Size, times and identity of a file as one look found them.
///
/// The change time is the one that counts: a program may set the modification time back, the kernel alone sets
/// the change time. Both are kept, since a restored backup differs in one and not in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    changed: i64,
    settled: bool,
}

/// What a second look says about the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Nothing was written in between.
    Same,
    /// The stamps agree, yet the first look came so soon after a write that another could hide behind it.
    Unsure,
    /// Something was written, or it is another file.
    Different,
}

impl Stamp {
    /// The stamp of what `stat` describes, looked at now.
    pub(crate) fn new(stat: &Stat) -> Self {
        Self::seen_at(stat, now_nanos())
    }

    /// A stamp that is only held against an earlier one.
    pub(crate) fn for_comparison(stat: &Stat) -> Self {
        Self::seen_at(stat, 0)
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the fields of the kernel's structure differ between architectures"
    )]
    fn seen_at(stat: &Stat, now: i64) -> Self {
        let nanos = |seconds: i64, fraction: i64| seconds.saturating_mul(1_000_000_000).saturating_add(fraction);
        let changed = nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        let coarse = stat.st_ctime_nsec == 0 && stat.st_mtime_nsec == 0;
        let doubt = if coarse { WHOLE_SECONDS_NANOS } else { TICK_NANOS };
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed,
            // A change time in the future is a wrong clock; doubting it for ever would make every look a read.
            settled: changed.saturating_add(doubt) < now || changed > now.saturating_add(WHOLE_SECONDS_NANOS),
        }
    }

    /// Compares this earlier stamp with a later one.
    pub(crate) fn compare(&self, later: &Self) -> Comparison {
        let same = Self {
            settled: false,
            ..*self
        } == Self {
            settled: false,
            ..*later
        };
        match (same, self.settled) {
            (false, _) => Comparison::Different,
            (true, true) => Comparison::Same,
            (true, false) => Comparison::Unsure,
        }
    }

    /// Which file this is.
    pub(crate) fn identity(&self) -> Identity {
        (self.device, self.inode)
    }
}

/// Device and inode: equal for two paths of one file.
pub(crate) type Identity = (u64, u64);

/// Device and inode of what `stat` describes.
#[expect(
    clippy::unnecessary_cast,
    reason = "the fields of the kernel's structure differ between architectures"
)]
pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The clock that file systems stamp with, in nanoseconds.
pub(crate) fn now_nanos() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stat(path: &std::path::Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    #[test]
    fn a_write_and_a_replacement_differ() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        let first = Stamp::new(&stat(&file));
        fs::write(&file, "three").unwrap();
        let second = Stamp::new(&stat(&file));
        assert_eq!(first.compare(&second), Comparison::Different);
        fs::write(dir.path().join("g"), "three").unwrap();
        fs::rename(dir.path().join("g"), &file).unwrap();
        assert_eq!(second.compare(&Stamp::new(&stat(&file))), Comparison::Different);
    }

    #[test]
    fn a_stamp_taken_right_after_a_write_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        let stat = stat(&file);
        let fresh = Stamp::new(&stat);
        assert_eq!(fresh.compare(&Stamp::new(&stat)), Comparison::Unsure);
        let later = Stamp::seen_at(&stat, now_nanos() + TICK_NANOS);
        assert_eq!(later.compare(&fresh), Comparison::Same);
    }
}
