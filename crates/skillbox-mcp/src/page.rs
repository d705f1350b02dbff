//! Splits long lists into pages. A cursor contains the last key of its page, so no item is lost if the list changes.

use rmcp::ErrorData;

const CURSOR_PREFIX: &str = "after:";

/// One page, with the cursor of the next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// The page after a cursor; `items` are sorted by their key.
pub(crate) fn paginate<T>(
    items: Vec<T>,
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<Page<T>, ErrorData> {
    let after = match cursor {
        None => None,
        Some(cursor) => Some(cursor.strip_prefix(CURSOR_PREFIX).ok_or_else(|| {
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
        .map(|last| format!("{CURSOR_PREFIX}{}", key(last)));
    Ok(Page { items: rest, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_item_does_not_shift_the_next_page() {
        let list = || vec!["a", "b", "c", "d", "e"];
        let first = paginate(list(), |item| item, None, 2).unwrap();
        assert_eq!((first.items, first.next.as_deref()), (vec!["a", "b"], Some("after:b")));
        let without_b = vec!["a", "c", "d", "e"];
        let second = paginate(without_b, |item| item, Some("after:b"), 3).unwrap();
        assert_eq!((second.items, second.next), (vec!["c", "d", "e"], None));
        assert!(paginate(list(), |item| item, Some("2"), 2).is_err());
    }
}
