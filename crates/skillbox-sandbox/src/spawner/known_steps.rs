//! Steps that were read before: the plans of a server are few, and each comes with every launch.

use std::io;
use std::rc::Rc;

use super::protocol::Encoded;
use crate::plan::Step;

/// As many as a server with a few skills has use for.
const MOST: usize = 8;

/// The steps of the last plans, each with the bytes that it came in.
#[derive(Default)]
pub(super) struct KnownSteps(Vec<(Encoded<'static>, Rc<[Step]>)>);

impl KnownSteps {
    /// The steps that these bytes say.
    pub fn read(&mut self, encoded: &Encoded<'_>) -> io::Result<Rc<[Step]>> {
        if let Some((_, steps)) = self.0.iter().find(|(known, _)| known == encoded) {
            return Ok(Rc::clone(steps));
        }
        let steps: Rc<[Step]> = encoded.read()?.into();
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        let known = Encoded(encoded.0.clone().into_owned().into());
        self.0.push((known, Rc::clone(&steps)));
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Op, Phase};
    use crate::profile::Need;

    #[test]
    fn the_same_bytes_are_read_once_and_only_so_many_are_kept() {
        let steps = |number: u16| {
            vec![Step {
                number,
                phase: Phase::Prepare,
                layers: Vec::new(),
                need: Need::Required,
                op: Op::NewSession,
            }]
        };
        let mut known = KnownSteps::default();
        let first = known.read(&Encoded::of(&steps(1)).unwrap()).unwrap();
        let again = known.read(&Encoded::of(&steps(1)).unwrap()).unwrap();
        assert!(Rc::ptr_eq(&first, &again));
        for number in 0..100 {
            let read = known.read(&Encoded::of(&steps(number)).unwrap()).unwrap();
            assert_eq!(&*read, steps(number));
        }
        assert_eq!(known.0.len(), MOST);
        assert!(known.read(&Encoded(b"\x05nonsense".into())).is_err());
        assert_eq!(known.0.len(), MOST);
    }
}
