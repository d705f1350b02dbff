//! Merges the system call rules of a document with those of the profile that it extends.

use std::collections::HashSet;

use super::diagnostics::Diagnostics;
use super::document::{AllowEntry, SyscallsSection};
use super::name_list::NameList;
use super::policy::Profile;
use super::yaml::{self, Located, Location};
use crate::seccomp::{
    ArgumentTest, CompileError, Constant, SyscallAction, SyscallPolicy, SyscallRule, find_syscall, parse_constant,
    parse_errno,
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
    let mut tests = Vec::new();
    let mut add_test = |list: &Option<NameList>, test: fn(Vec<Constant>) -> ArgumentTest| {
        if let Some(list) = list {
            tests.push(test(check_constants(&list.0, location, diagnostics)));
        }
    };
    add_test(&document.any_of, ArgumentTest::AnyOf);
    add_test(&document.none_of, ArgumentTest::NoneOf);
    add_test(&document.no_bits_of, ArgumentTest::NoBitsOf);
    let message = match (document.argument, tests.len()) {
        (None, 0) if document.otherwise.is_none() => return Some(SyscallAction::Allow),
        (Some(argument @ 0..=5), 1) => {
            let otherwise = check_errno(document.otherwise.as_ref(), diagnostics);
            let test = tests.remove(0);
            return Some(SyscallAction::AllowIf {
                argument,
                test,
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
