//! Receives requests of other processes to kill runs of this process.
//!
//! Each process has a FIFO. A request is the id of a run on one line, shorter than `PIPE_BUF`, so that requests of several
//! processes do not mix.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use skillbox_executor::CancelToken;
use skillbox_model::RunId;

use super::error::HistoryError;

/// The line that ends the listener.
const STOP: &str = "stop";
/// Longer lines are not requests.
const MAX_REQUEST_BYTES: u64 = 256;

/// The cancel tokens of the runs of this process.
pub(super) type CancelTokens = Arc<Mutex<HashMap<RunId, CancelToken>>>;

/// The thread that reads the FIFO. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct KillListener {
    fifo: File,
}

impl KillListener {
    pub(super) fn start(path: &Path, tokens: CancelTokens) -> Result<Self, HistoryError> {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|error| HistoryError::io("create", path)(error.into()))?;
        // Open for reading and writing, so that the end of another writer is not the end of the requests.
        let fifo = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(HistoryError::io("open", path))?;
        let reader = fifo.try_clone().map_err(HistoryError::io("open", path))?;
        std::thread::Builder::new()
            .name("kill-listener".to_owned())
            .stack_size(128 << 10)
            .spawn(move || listen(reader, &tokens))
            .map_err(HistoryError::io("start a thread for", path))?;
        Ok(Self { fifo })
    }
}

impl Drop for KillListener {
    fn drop(&mut self) {
        // If this fails, the thread ends with the process.
        let _ = self.fifo.write_all(format!("{STOP}\n").as_bytes());
    }
}

fn listen(fifo: File, tokens: &CancelTokens) {
    let mut reader = BufReader::with_capacity(4096, fifo);
    let mut line = Vec::new();
    loop {
        line.clear();
        match io::Read::take(&mut reader, MAX_REQUEST_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim_end() {
            STOP => return,
            id => {
                let tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
                let token = RunId::parse(id).ok().and_then(|id| tokens.get(&id).cloned());
                drop(tokens);
                if let Some(token) = token {
                    token.cancel();
                }
            }
        }
    }
}

/// Asks the process of a FIFO to kill a run.
pub(super) fn request_kill(path: &Path, id: &RunId) -> Result<(), HistoryError> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let mut fifo = OpenOptions::new()
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(HistoryError::io("open", path))?;
    fifo.write_all(format!("{id}\n").as_bytes())
        .map_err(HistoryError::io("write", path))
}
