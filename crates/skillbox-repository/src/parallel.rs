//! Work on many small items with every core, results in the order of the items.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Items handed out at once: enough that taking them costs nothing, few enough that no core waits at the end.
const BATCH: usize = 64;

/// Applies `work` to every item and gives the results in order. Each thread makes one `scratch` for itself.
///
/// A handful of items is worked off on the caller's thread: starting another costs more than it gives.
pub(crate) fn map_in_order<T, R, S>(
    items: &[T],
    threads: NonZeroUsize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    let batches = items.len().div_ceil(BATCH);
    let threads = threads.get().min(batches);
    if threads < 2 {
        let mut scratch = scratch();
        return items.iter().map(|item| work(&mut scratch, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let take_batches = || {
        let mut scratch = scratch();
        let mut done = Vec::with_capacity(batches / threads + 1);
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return done;
            }
            let end = items.len().min((batch + 1) * BATCH);
            let results: Vec<R> = items[batch * BATCH..end]
                .iter()
                .map(|item| work(&mut scratch, item))
                .collect();
            done.push((batch, results));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take_batches)).collect();
        let mut done = take_batches();
        for other in others {
            // A panic in the work is a bug of ours and must not be lost.
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(batch, _)| *batch);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_for_every_size() {
        for size in [0, 1, BATCH, 2 * BATCH + 1, 1000] {
            let items: Vec<usize> = (0..size).collect();
            let threads = NonZeroUsize::new(3).unwrap();
            let squares = map_in_order(&items, threads, || (), |(), item| item * item);
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
        }
    }
}
