//! A cache of decoded steps: the server uses few plans, and sends the steps of a plan with every launch.

use std::io;
use std::rc::Rc;

use crate::plan::Step;
use crate::protocol::EncodedSteps;

/// The maximum number of cached plans: enough for a server with a few skills. The oldest is removed first.
const CACHE_CAPACITY: usize = 8;

/// The decoded steps of recent plans, each with its encoding as the key.
#[derive(Default)]
pub(super) struct DecodedStepCache(Vec<(EncodedSteps<'static>, Rc<[Step]>)>);

impl DecodedStepCache {
    /// Decodes steps, or returns them from the cache.
    pub fn decode(&mut self, encoded: &EncodedSteps<'_>) -> io::Result<Rc<[Step]>> {
        if let Some((_, steps)) = self.0.iter().find(|(cached, _)| cached == encoded) {
            return Ok(Rc::clone(steps));
        }
        let steps: Rc<[Step]> = encoded.decode()?.into();
        if self.0.len() >= CACHE_CAPACITY {
            self.0.remove(0);
        }
        let key = EncodedSteps(encoded.0.clone().into_owned().into());
        self.0.push((key, Rc::clone(&steps)));
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PrepareOp;
    use crate::profile::Need;

    #[test]
    fn the_same_bytes_are_decoded_once_and_the_cache_is_bounded() {
        let steps = |number: u16| {
            vec![Step {
                number,
                layers: Vec::new(),
                need: Need::Required,
                op: PrepareOp::NewSession.into(),
            }]
        };
        let mut cache = DecodedStepCache::default();
        let first = cache.decode(&EncodedSteps::encode(&steps(1)).unwrap()).unwrap();
        let again = cache.decode(&EncodedSteps::encode(&steps(1)).unwrap()).unwrap();
        assert!(Rc::ptr_eq(&first, &again));
        for number in 0..100 {
            let decoded = cache.decode(&EncodedSteps::encode(&steps(number)).unwrap()).unwrap();
            assert_eq!(&*decoded, steps(number));
        }
        assert_eq!(cache.0.len(), CACHE_CAPACITY);
        assert!(cache.decode(&EncodedSteps(b"\x05nonsense".into())).is_err());
        assert_eq!(cache.0.len(), CACHE_CAPACITY);
    }
}
