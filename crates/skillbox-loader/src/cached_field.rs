//! A field that caches a value derived from the other fields of its struct.
//!
//! Every prompt and every policy check needs derived values of skills. Without the cache, each of them would
//! parse `allowed-tools` and `hooks` and scan the texts of the list again.
//! The gain has not been measured separately; `skillbox-bench prompt --only policy` and `--only overview` include it.

use std::sync::OnceLock;

/// A lazily computed value. It is not part of its struct's value: a clone starts empty, and all instances are equal.
#[derive(Debug)]
pub(crate) struct CachedField<T>(OnceLock<T>);

impl<T> CachedField<T> {
    /// Returns the value, and computes it on first use.
    pub(crate) fn get_or_compute(&self, compute: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(compute)
    }
}

impl<T> Default for CachedField<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Clone for CachedField<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> PartialEq for CachedField<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
