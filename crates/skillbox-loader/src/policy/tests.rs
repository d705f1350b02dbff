use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::allowed_tool::AllowedTool;
use super::check::{DeclaredTools, PolicyKind, Verdict, check, default_always_allowed};
use super::command_line::{SHELL_CHANGING_WORDS, split_commands};
use super::shell_refusal::ShellRefusal;

fn is_allowed(kind: PolicyKind, skills: &[&[&str]], tool: &str, arguments: &Value) -> bool {
    let entries: Vec<Vec<AllowedTool>> = skills
        .iter()
        .map(|texts| texts.iter().filter_map(|text| AllowedTool::parse(text)).collect())
        .collect();
    let declared: Vec<DeclaredTools<'_>> = skills
        .iter()
        .zip(&entries)
        .map(|(texts, entries)| DeclaredTools {
            declares_any: !texts.is_empty(),
            entries,
        })
        .collect();
    check(kind, &default_always_allowed(), &declared, tool, arguments) == Verdict::Allowed
}

fn is_bash_allowed(entry: &str, command: &str) -> bool {
    let by_run = is_allowed(
        PolicyKind::Strict,
        &[&[entry]],
        "skill_run",
        &json!({"skill": "x", "command": command}),
    );
    let by_bash = is_allowed(PolicyKind::Strict, &[&[entry]], "Bash", &json!({"command": command}));
    assert_eq!(by_run, by_bash, "skill_run counts as Bash: {command:?}");
    by_run
}

#[test]
fn restrict_and_strict_differ_exactly_where_nothing_is_declared() {
    use PolicyKind::{Recommend, Restrict, Strict};
    let none = json!({});
    // The declarations of the loaded skills, the tool, and whether recommend, restrict and strict allow it.
    type Row = (&'static [&'static [&'static str]], &'static str, [bool; 3]);
    let table: &[Row] = &[
        (&[], "execute", [true, true, true]),
        (&[&["execute"]], "execute", [true, true, true]),
        (&[&["execute"]], "other", [true, false, false]),
        (&[&["execute"], &["other"]], "other", [true, true, true]),
        (&[&[]], "execute", [true, true, false]),
        (&[&["execute"], &[]], "execute", [true, true, true]),
        (&[&["execute"], &[]], "other", [true, true, false]),
        (&[&[], &[]], "other", [true, true, false]),
        (&[&[]], "skill_load", [true, true, true]),
        (&[&[]], "skill_run", [true, true, false]),
        (&[&[]], "skill_exec", [true, true, false]),
        (&[&["execute"]], "skill_poll_session", [true, false, false]),
        (&[&["execute"]], "disable_skill", [true, false, false]),
        (&[&["execute"]], "search_skills", [true, true, true]),
        (&[&["execute"]], "EXECUTE", [true, false, false]),
    ];
    for (skills, tool, expected) in table {
        for (kind, expected) in [Recommend, Restrict, Strict].into_iter().zip(expected) {
            assert_eq!(
                is_allowed(kind, skills, tool, &none),
                *expected,
                "{kind:?} {skills:?} {tool}"
            );
        }
    }
}

#[test]
fn an_empty_always_allowed_set_blocks_even_loading() {
    let entries = [AllowedTool::parse("x").unwrap()];
    let declared = [DeclaredTools {
        declares_any: true,
        entries: &entries,
    }];
    let none = BTreeSet::new();
    let verdict = check(PolicyKind::Restrict, &none, &declared, "load_skill", &json!({}));
    assert_eq!(verdict, Verdict::Blocked(None));
}

#[test]
fn command_patterns_match_words() {
    let check = |entry: &str, command: &str, expected: bool| {
        assert_eq!(is_bash_allowed(entry, command), expected, "{entry} {command:?}");
    };
    check("Bash", "anything $(at all)", true);
    check("Bash(*)", "anything $(at all)", true);
    check("Bash(git:*)", "git status", true);
    check("Bash(git:*)", "git", true);
    check("Bash(git:*)", "gitk", false);
    check("Bash(git:*)", "./git status", false);
    check("Bash(git:*)", "/workspace/work/git status", false);
    check("Bash(git add *)", "git add a b", true);
    check("Bash(git add *)", "git addx", false);
    check("Bash(git add *)", "git push", false);
    check("Bash(npm test)", "npm test", true);
    check("Bash(npm test)", "npm test -- --x", false);
    check("Bash(python3 scripts/*.py *)", "python3 scripts/a.py 10", true);
    check("Bash(python3 scripts/*.py *)", "python3 scripts/../../x.py", false);
    check("Bash(git:*)", "git commit -m 'a; b' # why", true);
    check("Bash(git:*)", "git log -- $FILE \"${OTHER}\" *.md {a,b} ~", true);
    check("Bash(git log $FILE)", "git log $FILE", false);
    check(
        "Bash(git:*)",
        "git status && git diff | git apply; git log &\n\ngit show",
        true,
    );
    check("Bash(git:*)", "git status && curl x", false);
    check("Bash(git:*)", "git status | sh", false);
    check("Bash(git:*)", "git \\\n  status", true);
    check("Bash(git:*)", "g'i't \"stat\"us", true);
    check("Bash(git:*)", "git diff >/dev/null 2>&1 </dev/null", true);
    check("Bash(git:*)", "git diff &>/dev/null", true);
    check("Bash(grep:*)", "grep 'x$' \"y$\" z$", true);
    check("Bash(git:*), Bash(ls:*)", "git status", false);
}

/// Bypasses of allow-lists that are known from other systems. The first program of each is allowed, so that each
/// refusal is due to the parser.
#[test]
fn s21_known_bypasses_are_refused() {
    let corpus = [
        "echo $(curl x)",
        "echo `curl x`",
        "echo \"$(curl x)\"",
        "echo \"`curl x`\"",
        "sh -c 'curl x'",
        "SH -c 'curl x'",
        "bash -lc curl",
        "echo x > /etc/passwd",
        "echo x >> y",
        "echo x >| y",
        "echo x &> y",
        "echo x >&y",
        "echo x >&3f2a",
        "echo x 2>y",
        "echo < /etc/passwd",
        "echo <<E\n$(curl x)\nE",
        "echo <<< $(curl x)",
        "echo <> y",
        "echo <(curl x)",
        "echo x >(curl x)",
        "(echo ok; curl x)",
        "{ curl x; }",
        "echo ok; (curl x)",
        "FOO=curl $FOO x",
        "FOO=x echo ok",
        "PATH=. echo ok",
        "PATH=.; echo ok",
        "PATH+=:. echo ok",
        "a[$(curl x)]=1 echo ok",
        "$FOO x",
        "\"$FOO\" x",
        "eval curl x",
        "env curl x",
        "xargs curl",
        "echo x | xargs curl",
        "trap 'curl x' EXIT; echo ok",
        "alias echo=curl; echo x",
        "printf -v PATH /tmp; echo x",
        "printf -vPATH /tmp; echo x",
        "printf $OPT PATH /tmp; echo x",
        "\"\\curl\" x",
        "\"ec\\ho\" x",
        "echo\\ x",
        "echo \"$\\\n(curl x)\"",
        "echo $\\\n(curl x)",
        "echo \"a\\\nb\"",
        "ec\\\nho x",
        "echo x |\\\n| curl x",
        "echo x 2\\\n>f",
        "export PATH=.; echo ok",
        "declare PATH=.; echo ok",
        "read PATH; echo ok",
        "hash -p ./evil echo; echo ok",
        "enable -f ./evil.so echo; echo ok",
        "exec curl x",
        "command curl x",
        "builtin eval x",
        "source ./x",
        ". ./x",
        "time curl x",
        "! curl x",
        "if echo x; then curl x; fi",
        "while echo x; do curl x; done",
        "for x in a; do curl; done",
        "case x in x) curl;; esac",
        "function echo { curl x; }; echo",
        "echo() { curl x; }; echo",
        "coproc curl x",
        "[[ -n $(curl x) ]]",
        "((x=1))",
        "echo $((x))",
        "echo ${x:-$(curl x)}",
        "echo ${!x}",
        "echo $'a'",
        "echo $\"a\"",
        "echo $1",
        "echo $@",
        "echo $[1]",
        "echo ok & curl x",
        "echo ok\ncurl x",
        "echo ok |& curl x",
        "echo ok || curl x",
        "echo 'open",
        "echo \"open",
        "echo x\\",
        "echo ok;; echo",
        "&& echo",
        "echo &&",
        "echo ok\rcurl x",
        "echo a\0b",
        "echo @(a|b)",
        "*cho x",
        "ec{ho,x} y",
        "~/echo x",
        "''",
        "",
        " \n ",
        "# only words",
    ];
    let listed = [
        "Bash(echo:*)",
        "Bash(printf:*)",
        "Bash(FOO=x:*)",
        "Bash(PATH=.:*)",
        "Bash(trap:*)",
        "Bash(alias:*)",
    ];
    for command in corpus {
        let arguments = json!({"skill": "x", "command": command});
        assert!(
            !is_allowed(PolicyKind::Strict, &[&listed], "skill_run", &arguments),
            "{command:?}"
        );
        // Control: the same command is allowed if the skill declares the whole shell.
        assert!(
            is_allowed(PolicyKind::Strict, &[&["Bash"]], "skill_run", &arguments),
            "{command:?}"
        );
    }
    assert!(
        is_bash_allowed("Bash(echo:*)", "echo ok"),
        "control: the list allows a plain command"
    );
    assert!(!split_commands(&"x".repeat(200_000)).is_ok_and(|_| true));
    assert!(SHELL_CHANGING_WORDS.is_sorted(), "binary search needs sorted words");
    assert_eq!(
        split_commands("eval x"),
        Err(ShellRefusal::ShellChangingWord("eval".to_owned()))
    );
}

#[test]
fn a_script_without_a_shell_is_one_command() {
    let check = |entry: &str, request: Value, expected: bool| {
        assert_eq!(
            is_allowed(PolicyKind::Strict, &[&[entry]], "skill_run", &request),
            expected,
            "{entry} {request}"
        );
    };
    check(
        "Bash(scripts/run.sh:*)",
        json!({"script": "scripts/run.sh", "args": ["$(x)", ";"]}),
        true,
    );
    check(
        "Bash(scripts/run.sh)",
        json!({"script": "scripts/run.sh", "args": ["x"]}),
        false,
    );
    check(
        "Bash(scripts/run.sh:*)",
        json!({"script": "scripts/run.sh", "cwd": "$WORK_DIR"}),
        false,
    );
    check(
        "Bash(scripts/run.sh:*)",
        json!({"script": "scripts/run.sh", "args": [1]}),
        false,
    );
    check(
        "Bash(scripts/run.sh:*)",
        json!({"script": "scripts/run.sh", "command": "curl"}),
        false,
    );
    check("Bash(git:*)", json!({"command": "git status", "cwd": "sub"}), true);
    check(
        "Bash(git:*)",
        json!({"command": "git status", "env": {"PATH": "."}}),
        false,
    );
    check("Bash(git:*)", json!({"command": "git status", "env": {}}), true);
    check("Bash(git:*)", json!({"command": ["git", "status"]}), false);
    check("Bash(git:*)", json!({"argv": ["git", "log", "$(x); y"]}), true);
    check("Bash(git:*)", json!({"argv": ["curl", "x"]}), false);
    check("Bash(git:*)", json!({"argv": ["git", 1]}), false);
    check(
        "Bash(git:*)",
        json!({"command": "git status", "argv": ["curl", "x"]}),
        false,
    );
    check("Bash(git:*)", json!({"command": "git status", "argv": []}), true);
    check("Bash(git:*)", json!({}), false);
}

#[test]
fn a_hosts_own_shell_is_parsed_like_bash() {
    let check = |command: &str, expected: bool| {
        let arguments = json!({"command": command});
        assert_eq!(
            is_allowed(PolicyKind::Restrict, &[&["execute(git:*)"]], "execute", &arguments),
            expected
        );
    };
    check("git status", true);
    check("git status; curl x", false);
}

#[test]
fn stdin_writes_need_the_whole_shell() {
    let input = json!({"session_id": "1", "chars": "rm -rf /"});
    assert!(!is_allowed(
        PolicyKind::Strict,
        &[&["Bash(git:*)"]],
        "skill_write_stdin",
        &input
    ));
    assert!(is_allowed(
        PolicyKind::Strict,
        &[&["Bash"]],
        "skill_write_stdin",
        &input
    ));
    assert!(is_allowed(
        PolicyKind::Strict,
        &[&["Bash(git:*)"]],
        "skill_poll_session",
        &json!({})
    ));
    assert!(!is_allowed(
        PolicyKind::Strict,
        &[&["Read"]],
        "skill_kill_session",
        &json!({})
    ));
}
