//! Formats points in time.

use std::time::{Duration, UNIX_EPOCH};

/// A time in milliseconds since 1970 as date and minute, in UTC: `2026-11-18 20:31`.
pub fn format_date(unix_ms: u64) -> String {
    let text = UNIX_EPOCH
        .checked_add(Duration::from_millis(unix_ms))
        // The library formats years with four digits only.
        .filter(|_| unix_ms < MAX_UNIX_MS)
        .map(|time| humantime::format_rfc3339_seconds(time).to_string());
    text.map_or_else(|| "?".to_owned(), |text| text[..16].replace('T', " "))
}

/// The first millisecond of the year 9999.
const MAX_UNIX_MS: u64 = 253_370_764_800_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_minutes() {
        assert_eq!(format_date(0), "1970-01-01 00:00");
        assert_eq!(format_date(1_793_910_660_000), "2026-11-05 20:31");
        assert_eq!(format_date(u64::MAX), "?");
    }
}
