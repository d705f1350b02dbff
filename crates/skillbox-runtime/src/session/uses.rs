//! How often a session was used, and when last: noted on every run, so it must cost next to nothing.
//!
//! A run adds one byte to a file, whose length then counts the runs; the file's own time says when the session was
//! last used. A byte is there or is not, so nothing has to be locked, replaced or read to note a run, however many
//! processes share the session, and whoever is killed meanwhile leaves nothing half written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use super::SessionRecord;
use super::record::unix_ms;

/// The file beside the record. A session that nobody has used since it was made has none.
const FILE: &str = "uses";

/// One run.
const RUN: &[u8] = b".";

/// Notes a run.
pub(super) fn note_run(session: &Path) -> io::Result<()> {
    open(session)?.write_all(RUN)
}

/// Notes that the session was used without a run.
pub(super) fn note_use(session: &Path) -> io::Result<()> {
    open(session)?.set_modified(SystemTime::now())
}

/// Adds what was noted to a record. One of an earlier skillbox may have counts of its own already.
pub(super) fn add_to(record: &mut SessionRecord, session: &Path) -> io::Result<()> {
    let noted = match fs::metadata(session.join(FILE)) {
        Ok(noted) => noted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    record.runs += noted.len();
    // The clock of a file system may be some milliseconds behind.
    record.last_used_unix_ms = record.last_used_unix_ms.max(unix_ms(noted.modified()?));
    Ok(())
}

fn open(session: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(session.join(FILE))
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
    fn runs_at_once_are_all_counted() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let session = session(&store);
                    for _ in 0..50 {
                        session.note_run().unwrap();
                    }
                });
            }
        });
        let record = store.list().unwrap().remove(0);
        assert_eq!(record.runs, 400);
        assert!(record.idle() < Duration::from_secs(60), "{record:?}");
    }

    #[test]
    fn a_use_without_a_run_is_no_run_but_keeps_the_session() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let session = session(&store);
        session.note_run().unwrap();
        let uses = open(&directory.path().join("s1")).unwrap();
        uses.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let made = session.record().unwrap();
        assert_eq!((made.runs, made.last_used_unix_ms), (1, made.created_unix_ms));
        std::thread::sleep(Duration::from_millis(20));
        session.note_use().unwrap();
        let used = session.record().unwrap();
        assert_eq!(used.runs, 1);
        assert!(used.last_used_unix_ms > made.last_used_unix_ms, "{used:?}");
    }

    #[test]
    fn the_record_of_an_earlier_skillbox_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        fs::create_dir(directory.path().join("s1")).unwrap();
        let record = r#"{"id":"s1","created_unix_ms":1000,"last_used_unix_ms":2000,"runs":7}"#;
        fs::write(directory.path().join("s1/session.json"), record).unwrap();
        let session = session(&store);
        let before = session.record().unwrap();
        assert_eq!((before.runs, before.last_used_unix_ms), (7, 2000));
        session.note_run().unwrap();
        let after = session.record().unwrap();
        assert_eq!((after.runs, after.created_unix_ms), (8, 1000));
        assert!(after.idle() < Duration::from_secs(60), "{after:?}");
    }
}
