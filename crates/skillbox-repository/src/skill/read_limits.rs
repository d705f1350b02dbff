//! How much of a skill is read.

use std::io::{self, Read};

/// The largest skill that is read as a whole, for its digest, its details or a run. A larger one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillLimits {
    /// The maximum number of files and directories.
    pub files: usize,
    /// The maximum bytes of all files.
    pub bytes: u64,
    /// The maximum bytes of one file.
    pub file_bytes: u64,
}

impl Default for SkillLimits {
    /// Hashing a skill of this size takes a few seconds. The largest known skills have a few thousand files and some
    /// hundred megabytes.
    fn default() -> Self {
        Self {
            files: 100_000,
            bytes: 1 << 30,
            file_bytes: 256 << 20,
        }
    }
}

/// What may still be read of one skill. Files that grow while they are read count with what is read of them.
pub struct ReadBudget<'a> {
    limits: SkillLimits,
    read_bytes: u64,
    is_cancelled: &'a dyn Fn() -> bool,
    stop: Option<ReadStop>,
}

/// Why a [`BudgetReader`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadStop {
    /// The caller does not need the result any more.
    Cancelled,
    /// This file is too large.
    FileBytes { size: u64, limit: u64 },
    /// The skill is too large.
    Bytes { limit: u64 },
}

/// A reader of one file that stops when the budget is used up or the caller cancels.
pub struct BudgetReader<'b, 'a, R> {
    budget: &'b mut ReadBudget<'a>,
    inner: R,
    file_bytes: u64,
}

impl<'a> ReadBudget<'a> {
    pub(super) fn new(limits: SkillLimits, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        Self {
            limits,
            read_bytes: 0,
            is_cancelled,
            stop: None,
        }
    }

    /// A reader of one file.
    pub fn reader<R: Read>(&mut self, file: R) -> BudgetReader<'_, 'a, R> {
        BudgetReader {
            budget: self,
            inner: file,
            file_bytes: 0,
        }
    }

    /// Whether a reader stopped because of the limits or the caller.
    pub fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Why a reader stopped; `None` if an error had another cause.
    pub(super) fn stop(&self) -> Option<ReadStop> {
        self.stop
    }
}

impl<R: Read> Read for BudgetReader<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let budget = &mut *self.budget;
        let limits = budget.limits;
        if (budget.is_cancelled)() {
            budget.stop = Some(ReadStop::Cancelled);
        } else {
            let count = self.inner.read(buffer)?;
            self.file_bytes += count as u64;
            budget.read_bytes += count as u64;
            if self.file_bytes > limits.file_bytes {
                budget.stop = Some(ReadStop::FileBytes {
                    size: self.file_bytes,
                    limit: limits.file_bytes,
                });
            } else if budget.read_bytes > limits.bytes {
                budget.stop = Some(ReadStop::Bytes { limit: limits.bytes });
            } else {
                return Ok(count);
            }
        }
        Err(io::Error::other(
            "the limits of a skill, or its reader, stopped reading",
        ))
    }
}
