//! Time limits that hold on a busy machine: conditions are waited for, and limits grow with the load.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How long a test waits for a condition. Only a condition that never holds takes so long.
pub const CONDITION_TIMEOUT: Duration = Duration::from_secs(60);

/// CPU time that is used to measure the load.
const SAMPLE_CPU_TIME: Duration = Duration::from_millis(50);

/// Waits until a condition holds, and fails when it does not within [`CONDITION_TIMEOUT`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + CONDITION_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {CONDITION_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Fails when something took longer than `limit`, which is meant for an idle machine and grows with the load.
#[track_caller]
pub fn assert_within(took: Duration, limit: Duration, what: &str) {
    assert!(!is_too_slow(took, limit), "{what}: {took:?} instead of {limit:?}");
}

/// Whether something took longer than `limit`, which is meant for an idle machine and grows with the load.
pub fn is_too_slow(took: Duration, limit: Duration) -> bool {
    took > limit && took > scaled(limit)
}

/// Whether more time has passed than `limit`, which is meant for an idle machine and grows with the load.
pub fn is_overdue(since: Instant, limit: Duration) -> bool {
    is_too_slow(since.elapsed(), limit)
}

/// A limit for an idle machine, multiplied by how much slower this one is at present.
fn scaled(limit: Duration) -> Duration {
    limit.mul_f64(slowdown())
}

/// The wall time that a thread needs for its CPU time: 1 on an idle machine.
fn slowdown() -> f64 {
    let (wall, cpu) = (Instant::now(), thread_cpu_time());
    while thread_cpu_time() - cpu < SAMPLE_CPU_TIME {
        std::hint::spin_loop();
    }
    let cpu = thread_cpu_time() - cpu;
    (wall.elapsed().as_secs_f64() / cpu.as_secs_f64()).max(1.0)
}

fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}
