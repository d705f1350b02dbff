//! Long lists in pages. A cursor names the last key of its page, so a list that changes meanwhile loses nothing.

use rmcp::ErrorData;

const MARK: &str = "after:";

/// One page, and how to get the next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// The page that a cursor means, of items sorted by their key.
pub(crate) fn page<T>(
    items: Vec<T>,
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<Page<T>, ErrorData> {
    let after = match cursor {
        None => None,
        Some(cursor) => Some(cursor.strip_prefix(MARK).ok_or_else(|| {
            let message = format!("{cursor:?} is not a cursor of this list: use nextCursor of its last page");
            ErrorData::invalid_params(message, None)
        })?),
    };
    let start = after.map_or(0, |after| items.partition_point(|item| key(item) <= after));
    let mut rest: Vec<T> = items.into_iter().skip(start).take(size + 1).collect();
    let is_last = rest.len() <= size;
    rest.truncate(size);
    let next = rest
        .last()
        .filter(|_| !is_last)
        .map(|last| format!("{MARK}{}", key(last)));
    Ok(Page { items: rest, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_whole_list_whatever_vanishes() {
        let list = || vec!["a", "b", "c", "d", "e"];
        let first = page(list(), |item| item, None, 2).unwrap();
        assert_eq!((first.items, first.next.as_deref()), (vec!["a", "b"], Some("after:b")));
        let without_b = vec!["a", "c", "d", "e"];
        let second = page(without_b, |item| item, Some("after:b"), 3).unwrap();
        assert_eq!((second.items, second.next), (vec!["c", "d", "e"], None));
        assert!(page(list(), |item| item, Some("2"), 2).is_err());
    }
}
