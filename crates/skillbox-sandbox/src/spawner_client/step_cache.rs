//! A cache of one entry for encoded steps: most launches of a server have the same plan as the previous one.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::plan::Step;
use crate::protocol::EncodedSteps;

/// The steps that were encoded last, with their encoding.
#[derive(Debug, Default)]
pub(super) struct EncodedStepCache(Mutex<Option<CachedSteps>>);

#[derive(Debug)]
struct CachedSteps {
    steps: Arc<[Step]>,
    bytes: Arc<[u8]>,
}

impl EncodedStepCache {
    /// Encodes these steps, or returns the cached encoding.
    pub fn encode(&self, steps: &Arc<[Step]>) -> io::Result<Arc<[u8]>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match cached.as_ref() {
            Some(cached) if Arc::ptr_eq(&cached.steps, steps) => Ok(Arc::clone(&cached.bytes)),
            _ => {
                let bytes: Arc<[u8]> = EncodedSteps::encode(steps)?.0.into();
                *cached = Some(CachedSteps {
                    steps: Arc::clone(steps),
                    bytes: Arc::clone(&bytes),
                });
                Ok(bytes)
            }
        }
    }
}
