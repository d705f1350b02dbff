//! What a document says about system calls, over what the profile it extends says.

use std::collections::HashSet;

use super::document::{AllowDocument, SyscallsDocument};
use super::findings::Findings;
use super::policy::Profile;
use super::words::Words;
use super::yaml::{self, At, Place};
use crate::seccomp::{
    ArgumentTest, CompileError, Constant, SyscallAction, SyscallPolicy, SyscallRule, errno_named, number_of, value_of,
};

/// The rules of both, compiled; none where they do not compile, which is told.
pub(super) fn resolve(
    document: Option<&SyscallsDocument>,
    parent: Option<&Profile>,
    findings: &mut Findings,
) -> Option<SyscallPolicy> {
    let inherited = parent.map(|parent| &parent.syscalls);
    let Some(document) = document else {
        return match inherited {
            Some(policy) => Some(policy.clone()),
            None => SyscallPolicy::new(Vec::new()).ok(),
        };
    };
    let mut rules = inherited.map(|policy| policy.rules().to_vec()).unwrap_or_default();
    let mut own = Vec::new();
    let mut named = HashSet::new();
    for entry in &document.allow {
        let place = yaml::place(entry);
        let calls = calls(&entry.value.calls.0, yaml::place(entry), &mut named, findings);
        let reason = findings.reason(entry.value.reason.as_ref(), place, &calls.join(", "));
        if let Some(action) = allowed(&entry.value, place, findings) {
            own.push(SyscallRule { calls, action, reason });
        }
    }
    for entry in &document.refuse {
        let calls = calls(&entry.value.calls.0, yaml::place(entry), &mut named, findings);
        let reason = findings.reason(entry.value.reason.as_ref(), yaml::place(entry), &calls.join(", "));
        let errno = errno(entry.value.errno.as_ref(), findings);
        own.push(SyscallRule {
            calls,
            action: SyscallAction::Refuse { errno },
            reason,
        });
    }
    // The document's word about a call replaces the parent's.
    for rule in &mut rules {
        rule.calls.retain(|call| !named.contains(call));
    }
    rules.retain(|rule| !rule.calls.is_empty());
    rules.extend(own);
    match SyscallPolicy::new(rules) {
        Ok(policy) => Some(policy),
        // The entry at fault was told already.
        Err(CompileError::UnknownCall(_) | CompileError::NamedTwice(_)) => None,
        Err(error @ CompileError::TooLong(_)) => {
            findings.add(None, "profile_contradiction", error.to_string());
            None
        }
    }
}

fn calls(names: &[String], place: Option<Place>, named: &mut HashSet<String>, findings: &mut Findings) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for name in names {
        if number_of(name).is_none() {
            findings.add(
                place,
                "profile_unknown_call",
                format!("no system call is named {:?}", name),
            );
        }
        if !named.insert(name.clone()) {
            let message = format!("the system call {:?} is named twice", name);
            findings.add(place, "profile_contradiction", message);
        }
        calls.push(name.clone());
    }
    calls
}

fn allowed(document: &AllowDocument, place: Option<Place>, findings: &mut Findings) -> Option<SyscallAction> {
    let mut tests = Vec::new();
    let mut read = |list: &Option<Words>, test: fn(Vec<Constant>) -> ArgumentTest| {
        if let Some(list) = list {
            tests.push(test(constants(&list.0, place, findings)));
        }
    };
    read(&document.any_of, ArgumentTest::AnyOf);
    read(&document.none_of, ArgumentTest::NoneOf);
    read(&document.no_bits_of, ArgumentTest::NoBitsOf);
    let message = match (document.argument, tests.len()) {
        (None, 0) if document.otherwise.is_none() => return Some(SyscallAction::Allow),
        (Some(argument @ 0..=5), 1) => {
            let otherwise = errno(document.otherwise.as_ref(), findings);
            let test = tests.remove(0);
            return Some(SyscallAction::AllowIf {
                argument,
                test,
                otherwise,
            });
        }
        (Some(0..=5), _) => "a condition has exactly one of any_of, none_of and no_bits_of",
        (Some(_), _) => "a system call has the arguments 0 to 5",
        (None, _) => "a condition names its argument",
    };
    findings.add(place, "profile_condition", message.to_owned());
    None
}

fn constants(list: &[String], place: Option<Place>, findings: &mut Findings) -> Vec<Constant> {
    let mut constants = Vec::new();
    for text in list {
        match value_of(text) {
            Some(constant) => constants.push(constant),
            None => {
                let message = format!("{:?} is neither a known constant nor a 32-bit number", text);
                findings.add(place, "profile_unknown_constant", message);
            }
        }
    }
    constants
}

fn errno(name: Option<&At<String>>, findings: &mut Findings) -> Constant {
    let fallback = Constant {
        name: "EPERM".to_owned(),
        value: libc::EPERM as u32,
    };
    let Some(name) = name else { return fallback };
    errno_named(&name.value).unwrap_or_else(|| {
        let message = format!("{:?} is not a known error", name.value);
        findings.add(yaml::place(name), "profile_unknown_constant", message);
        fallback
    })
}
