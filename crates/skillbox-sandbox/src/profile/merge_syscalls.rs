//! Merges the system call rules of a document with those of the profile that it extends.

use std::collections::HashSet;

use super::diagnostics::Diagnostics;
use super::document::{AllowEntry, OrEntry, SyscallsSection};
use super::name_list::NameList;
use super::policy::Profile;
use super::yaml::{self, Located, Location};
use crate::seccomp::{
    ArgumentTest, CompileError, Condition, Constant, SyscallAction, SyscallPolicy, SyscallRule, find_syscall,
    parse_constant, parse_errno,
};

/// Merges and compiles the rules. Returns `None` if they do not compile; the diagnostics then contain the reason.
pub(super) fn merge_syscalls(
    document: Option<&SyscallsSection>,
    parent: Option<&Profile>,
    diagnostics: &mut Diagnostics,
) -> Option<SyscallPolicy> {
    let inherited = parent.map(|parent| &parent.syscalls);
    let Some(document) = document else {
        return match inherited {
            Some(policy) => Some(policy.clone()),
            None => SyscallPolicy::new(Vec::new()).ok(),
        };
    };
    let mut rules = inherited.map(|policy| policy.rules().to_vec()).unwrap_or_default();
    let mut own_rules = Vec::new();
    let mut own_calls = HashSet::new();
    for entry in &document.allow {
        let location = yaml::location(entry);
        let calls = check_calls(&entry.value.calls.0, location, &mut own_calls, diagnostics);
        let reason = diagnostics.require_reason(entry.value.reason.as_ref(), location, &calls.join(", "));
        if let Some(action) = allow_action(&entry.value, location, diagnostics) {
            own_rules.push(SyscallRule { calls, action, reason });
        }
    }
    for entry in &document.refuse {
        let calls = check_calls(&entry.value.calls.0, yaml::location(entry), &mut own_calls, diagnostics);
        let reason = diagnostics.require_reason(entry.value.reason.as_ref(), yaml::location(entry), &calls.join(", "));
        let errno = check_errno(entry.value.errno.as_ref(), diagnostics);
        own_rules.push(SyscallRule {
            calls,
            action: SyscallAction::Refuse { errno },
            reason,
        });
    }
    // A rule of the document for a call replaces the parent's.
    for rule in &mut rules {
        rule.calls.retain(|call| !own_calls.contains(call));
    }
    rules.retain(|rule| !rule.calls.is_empty());
    rules.extend(own_rules);
    match SyscallPolicy::new(rules) {
        Ok(policy) => Some(policy),
        // `check_calls` has added the diagnostic, with its location.
        Err(CompileError::UnknownCall(_) | CompileError::NamedTwice(_)) => None,
        Err(error) => {
            diagnostics.add(None, "profile_contradiction", error.to_string());
            None
        }
    }
}

fn check_calls(
    names: &[String],
    location: Option<Location>,
    own_calls: &mut HashSet<String>,
    diagnostics: &mut Diagnostics,
) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for name in names {
        if find_syscall(name).is_none() {
            diagnostics.add(
                location,
                "profile_unknown_call",
                format!("no system call is named {name:?}"),
            );
        }
        if !own_calls.insert(name.clone()) {
            let message = format!("the system call {name:?} is named twice");
            diagnostics.add(location, "profile_contradiction", message);
        }
        calls.push(name.clone());
    }
    calls
}

fn allow_action(
    document: &AllowEntry,
    location: Option<Location>,
    diagnostics: &mut Diagnostics,
) -> Option<SyscallAction> {
    let lists = [&document.any_of, &document.none_of, &document.no_bits_of];
    let mut tests = argument_tests(lists, location, diagnostics);
    let message = match (document.argument, tests.len()) {
        (None, 0) if document.otherwise.is_none() && document.or.is_none() => return Some(SyscallAction::Allow),
        (Some(argument @ 0..=5), 1) => {
            let or = match &document.or {
                Some(or) => Some(or_condition(or, location, diagnostics)?),
                None => None,
            };
            let otherwise = check_errno(document.otherwise.as_ref(), diagnostics);
            let test = tests.remove(0);
            return Some(SyscallAction::AllowIf {
                argument,
                test,
                or,
                otherwise,
            });
        }
        (Some(0..=5), _) => "a condition needs exactly one of any_of, none_of and no_bits_of",
        (Some(_), _) => "a system call has arguments 0 to 5",
        (None, _) => "a condition must name its argument",
    };
    diagnostics.add(location, "profile_condition", message.to_owned());
    None
}

fn or_condition(document: &OrEntry, location: Option<Location>, diagnostics: &mut Diagnostics) -> Option<Condition> {
    let lists = [&document.any_of, &document.none_of, &document.no_bits_of];
    let mut tests = argument_tests(lists, location, diagnostics);
    if document.is_null {
        tests.push(ArgumentTest::IsNull);
    }
    match (document.argument, tests.len()) {
        (argument @ 0..=5, 1) => tests.pop().map(|test| Condition { argument, test }),
        _ => {
            let message = "or needs an argument from 0 to 5 and exactly one of any_of, none_of, no_bits_of and is_null";
            diagnostics.add(location, "profile_condition", message.to_owned());
            None
        }
    }
}

/// The tests that an entry lists: `any_of`, `none_of` and `no_bits_of`, in this order.
fn argument_tests(
    lists: [&Option<NameList>; 3],
    location: Option<Location>,
    diagnostics: &mut Diagnostics,
) -> Vec<ArgumentTest> {
    let kinds: [fn(Vec<Constant>) -> ArgumentTest; 3] =
        [ArgumentTest::AnyOf, ArgumentTest::NoneOf, ArgumentTest::NoBitsOf];
    let listed = lists
        .into_iter()
        .zip(kinds)
        .filter_map(|(list, kind)| Some((list.as_ref()?, kind)));
    listed
        .map(|(list, kind)| kind(check_constants(&list.0, location, diagnostics)))
        .collect()
}

fn check_constants(list: &[String], location: Option<Location>, diagnostics: &mut Diagnostics) -> Vec<Constant> {
    let mut constants = Vec::new();
    for text in list {
        match parse_constant(text) {
            Some(constant) => constants.push(constant),
            None => {
                let message = format!("{text:?} is neither a known constant nor a 32-bit number");
                diagnostics.add(location, "profile_unknown_constant", message);
            }
        }
    }
    constants
}

fn check_errno(name: Option<&Located<String>>, diagnostics: &mut Diagnostics) -> Constant {
    let fallback = Constant {
        name: "EPERM".to_owned(),
        value: libc::EPERM as u32,
    };
    let Some(name) = name else { return fallback };
    parse_errno(&name.value).unwrap_or_else(|| {
        let message = format!("{:?} is not a known error", name.value);
        diagnostics.add(yaml::location(name), "profile_unknown_constant", message);
        fallback
    })
}
