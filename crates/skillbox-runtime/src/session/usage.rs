//! Counts the runs of a session and records its last use, cheaply enough for every run.
//!
//! Each run appends one byte to a file. The file's length is the number of runs, its modification time the last use. An
//! append of one byte needs no lock and no read, even when several processes share the session, and a killed process cannot
//! leave it half written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use super::SessionRecord;
use super::record::unix_ms;

/// The file beside the record; a session that was created and never used has none.
const USES_FILE: &str = "uses";

/// The byte that is appended for each run.
const RUN_BYTE: &[u8] = b".";

/// Records a run.
pub(super) fn record_run(session: &Path) -> io::Result<()> {
    open(session)?.write_all(RUN_BYTE)
}

/// Records a use without a run.
pub(super) fn record_use(session: &Path) -> io::Result<()> {
    open(session)?.set_modified(SystemTime::now())
}

/// Adds the recorded uses to a record. A record of an earlier skillbox version contains counts already.
pub(super) fn add_uses(record: &mut SessionRecord, session: &Path) -> io::Result<()> {
    let uses = match fs::metadata(session.join(USES_FILE)) {
        Ok(uses) => uses,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    record.runs += uses.len();
    // The clock of the file system can lag by some milliseconds.
    record.last_used_unix_ms = record.last_used_unix_ms.max(unix_ms(uses.modified()?));
    Ok(())
}

fn open(session: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(session.join(USES_FILE))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use skillbox_model::SessionId;

    use super::super::{OpenSession, SessionStore};
    use super::*;

    fn session(store: &SessionStore) -> OpenSession {
        store.open_or_create(&SessionId::parse("s1").unwrap()).unwrap()
    }

    #[test]
    fn concurrent_runs_are_all_counted() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let session = session(&store);
                    for _ in 0..50 {
                        session.record_run().unwrap();
                    }
                });
            }
        });
        let record = store.list().unwrap().remove(0);
        assert_eq!(record.runs, 400);
        assert!(record.idle_time() < Duration::from_secs(60), "{record:?}");
    }

    #[test]
    fn a_use_without_a_run_only_changes_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let session = session(&store);
        session.record_run().unwrap();
        let uses = open(&directory.path().join("s1")).unwrap();
        uses.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let created = session.record().unwrap();
        assert_eq!((created.runs, created.last_used_unix_ms), (1, created.created_unix_ms));
        std::thread::sleep(Duration::from_millis(20));
        session.record_use().unwrap();
        let used = session.record().unwrap();
        assert_eq!(used.runs, 1);
        assert!(used.last_used_unix_ms > created.last_used_unix_ms, "{used:?}");
    }

    #[test]
    fn counts_of_an_earlier_version_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        fs::create_dir(directory.path().join("s1")).unwrap();
        let record = r#"{"id":"s1","created_unix_ms":1000,"last_used_unix_ms":2000,"runs":7}"#;
        fs::write(directory.path().join("s1/session.json"), record).unwrap();
        let session = session(&store);
        let before = session.record().unwrap();
        assert_eq!((before.runs, before.last_used_unix_ms), (7, 2000));
        session.record_run().unwrap();
        let after = session.record().unwrap();
        assert_eq!((after.runs, after.created_unix_ms), (8, 1000));
        assert!(after.idle_time() < Duration::from_secs(60), "{after:?}");
    }
}
