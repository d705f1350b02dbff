//! Times and durations on the command line and in output.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::failure::Failure;

/// Now, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    to_ms(SystemTime::now())
}

/// A time as `2026-01-31T12:00:00Z`.
pub fn format_time(ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    // Later years cannot be formatted.
    match ms < 200_000_000_000_000 {
        true => humantime::format_rfc3339_seconds(time).to_string(),
        false => format!("{ms} ms"),
    }
}

/// A duration such as `90d` or `12h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| format!("{text:?} is not a duration such as 90d, 12h or 30min"))
}

/// A time such as `2026-01-31` or `2026-01-31T12:00:00Z`, or how long ago, such as `7d`; in milliseconds since 1970.
pub fn parse_since(text: &str) -> Result<u64, Failure> {
    if let Ok(duration) = humantime::parse_duration(text) {
        let ago = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        return Ok(now_ms().saturating_sub(ago));
    }
    let with_time = if text.len() == 10 {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    match humantime::parse_rfc3339_weak(&with_time) {
        Ok(time) => Ok(to_ms(time)),
        Err(_) => Err(Failure::usage(
            format!("{text:?} is not a time"),
            "use a date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z, or how long ago, such as 7d",
        )),
    }
}

fn to_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
