//! Which settings the config file of the working directory may change without the user's trust.

use std::collections::BTreeSet;

use skillbox_runtime::PolicyKind;

use super::tool_set::ToolSet;

/// What an untrusted `./skillbox.toml` may do with a setting. Anyone can write that file: a cloned repository contains
/// one, and so can the output of a script.
#[derive(Debug)]
pub enum ProjectRule<T: 'static> {
    /// Nothing: the setting can widen what a run may do, or choose where data goes.
    NeedsTrust,
    /// Any value is accepted.
    Any,
    /// Only a value that is at least as strict as the value without the file.
    OnlyStricter {
        /// Compares the value in the file with the value without the file.
        is_as_strict: fn(&T, &T) -> bool,
        /// The permitted direction, for the error.
        allowed: &'static str,
    },
}

impl<T> ProjectRule<T> {
    /// The rule in a word, for the reference.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NeedsTrust => "trusted only",
            Self::Any => "any",
            Self::OnlyStricter { .. } => "stricter",
        }
    }
}

impl<T: PartialOrd> ProjectRule<T> {
    /// The file may lower the limit, not raise it.
    pub const AT_MOST: Self = Self::OnlyStricter {
        is_as_strict: |value, base| value <= base,
        allowed: "only lower it",
    };
}

impl ProjectRule<bool> {
    /// The file may turn the requirement on, not off.
    pub const TURN_ON: Self = Self::OnlyStricter {
        is_as_strict: |value, base| *value || !*base,
        allowed: "only turn it on",
    };
}

impl ProjectRule<PolicyKind> {
    /// The file may choose a stricter policy.
    pub const STRICTER_POLICY: Self = Self::OnlyStricter {
        is_as_strict: |value, base| strictness(*value) >= strictness(*base),
        allowed: "only choose a stricter policy",
    };
}

impl ProjectRule<ToolSet> {
    /// The file may remove tools from the set, not add any.
    pub const SUBSET: Self = Self::OnlyStricter {
        is_as_strict: |value, base| BTreeSet::is_subset(&value.0, &base.0),
        allowed: "only remove tools from it",
    };
}

fn strictness(policy: PolicyKind) -> u8 {
    match policy {
        PolicyKind::Recommend => 0,
        PolicyKind::Restrict => 1,
        PolicyKind::Strict => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts<T>(rule: &ProjectRule<T>, value: &T, base: &T) -> bool {
        match rule {
            ProjectRule::NeedsTrust => false,
            ProjectRule::Any => true,
            ProjectRule::OnlyStricter { is_as_strict, .. } => is_as_strict(value, base),
        }
    }

    #[test]
    fn only_stricter_values_pass() {
        assert!(accepts(&ProjectRule::AT_MOST, &7_usize, &10));
        assert!(accepts(&ProjectRule::AT_MOST, &10_usize, &10));
        assert!(!accepts(&ProjectRule::AT_MOST, &11_usize, &10));
        assert!(accepts(&ProjectRule::TURN_ON, &true, &false));
        assert!(accepts(&ProjectRule::TURN_ON, &false, &false));
        assert!(!accepts(&ProjectRule::TURN_ON, &false, &true));
        let policy = |value, base| accepts(&ProjectRule::STRICTER_POLICY, &value, &base);
        assert!(policy(PolicyKind::Strict, PolicyKind::Restrict));
        assert!(!policy(PolicyKind::Recommend, PolicyKind::Restrict));
        let tools = |names: &[&str]| ToolSet(names.iter().map(|name| (*name).to_owned()).collect());
        assert!(accepts(&ProjectRule::SUBSET, &tools(&["a"]), &tools(&["a", "b"])));
        assert!(!accepts(&ProjectRule::SUBSET, &tools(&["c"]), &tools(&["a", "b"])));
    }
}
