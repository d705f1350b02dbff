//! Chooses ids that the user namespace of this process maps.

use std::ops::RangeInclusive;

use super::uid_gid::UidGid;
use crate::kernel::pseudo_file;

/// Returns each wanted id if the user namespace of this process maps it, and otherwise the highest id that is mapped.
///
/// If a map cannot be read, the wanted id is returned. If that id is not mapped, the launch fails with the kernel's
/// error.
pub(super) fn choose_mapped_ids(wanted: UidGid) -> UidGid {
    let choose = |file: &str, wanted: u32| {
        let map = pseudo_file::read(file).ok();
        let ranges = map.and_then(|map| parse_id_map(&map)).unwrap_or_default();
        choose_mapped_id(&ranges, wanted)
    };
    UidGid {
        uid: choose("/proc/self/uid_map", wanted.uid),
        gid: choose("/proc/self/gid_map", wanted.gid),
    }
}

fn choose_mapped_id(ranges: &[RangeInclusive<u32>], wanted: u32) -> u32 {
    if ranges.iter().any(|range| range.contains(&wanted)) {
        return wanted;
    }
    ranges.iter().map(|range| *range.end()).max().unwrap_or(wanted)
}

/// The ranges of ids inside the user namespace, from the text of a `uid_map` or `gid_map`; `None` if a line is not
/// three numbers that describe a range.
fn parse_id_map(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    text.lines()
        .map(|line| {
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().ok());
            let (first, _outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
            let last = first.checked_add(count.checked_sub(1)?)?;
            Some(first..=last)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_the_map_become_the_highest_mapped_id() {
        let ranges = parse_id_map("         0     100000      65536\n    100000     300000      10\n").unwrap();
        assert_eq!(ranges, [0..=65535, 100_000..=100_009]);
        assert_eq!(choose_mapped_id(&ranges, 1000), 1000);
        assert_eq!(choose_mapped_id(&ranges, 1_900_001_000), 100_009);
        assert_eq!(parse_id_map("0 0 4294967295"), Some(vec![0..=u32::MAX - 1]));
    }

    #[test]
    fn a_map_that_describes_no_range_is_refused() {
        for text in ["0 0", "0 0 x", "0 0 0", "1 0 4294967295\n4294967295 0 2"] {
            assert_eq!(parse_id_map(text), None, "{text}");
        }
        assert_eq!(choose_mapped_id(&[], 1000), 1000);
    }
}
