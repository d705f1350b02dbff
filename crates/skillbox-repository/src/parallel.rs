//! Maps a function over many small items on several threads and keeps the order of the items.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of items that a thread takes at once: large enough to make the atomic counter cheap, small enough that
/// all threads finish at about the same time.
const BATCH_ITEMS: usize = 64;

/// Applies `work` to every item and returns the results in order. Each thread passes its own scratch value, created by
/// `new_scratch`, to `work`.
///
/// A single batch runs on the thread of the caller, because starting another thread costs more than it saves.
pub(crate) fn map_in_order<T, R, S>(
    items: &[T],
    threads: NonZeroUsize,
    new_scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    let batches = items.len().div_ceil(BATCH_ITEMS);
    let threads = threads.get().min(batches);
    if threads < 2 {
        let mut scratch = new_scratch();
        return items.iter().map(|item| work(&mut scratch, item)).collect();
    }
    let next_batch = AtomicUsize::new(0);
    let take_batches = || {
        let mut scratch = new_scratch();
        let mut results_by_batch = Vec::with_capacity(batches / threads + 1);
        loop {
            let batch = next_batch.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return results_by_batch;
            }
            let end = items.len().min((batch + 1) * BATCH_ITEMS);
            let results: Vec<R> = items[batch * BATCH_ITEMS..end]
                .iter()
                .map(|item| work(&mut scratch, item))
                .collect();
            results_by_batch.push((batch, results));
        }
    };
    let mut results_by_batch = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(take_batches)).collect();
        let mut results_by_batch = take_batches();
        for worker in workers {
            // A panic in `work` continues on the thread of the caller.
            results_by_batch.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results_by_batch
    });
    results_by_batch.sort_unstable_by_key(|(batch, _)| *batch);
    results_by_batch.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_for_every_number_of_items() {
        for size in [0, 1, BATCH_ITEMS, 2 * BATCH_ITEMS + 1, 1000] {
            let items: Vec<usize> = (0..size).collect();
            let threads = NonZeroUsize::new(3).unwrap();
            let squares = map_in_order(&items, threads, || (), |(), item| item * item);
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
        }
    }
}
