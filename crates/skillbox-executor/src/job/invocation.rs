//! The command that a run starts.

use skillbox_model::{RelPath, RunRequest, SkillName};

use super::RequestError;
use crate::layout;

/// The longest argument that the kernel accepts (MAX_ARG_STRLEN, execve(2)).
const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// The maximum size of all arguments together, well below ARG_MAX.
const MAX_TOTAL_ARGUMENT_BYTES: usize = 1 << 20;

/// The command of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// A command line for `bash -c`.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A script of the skill and its arguments. The interpreter is determined after the script is staged.
    Script {
        /// The path inside the skill.
        path: RelPath,
        /// The arguments.
        args: Vec<String>,
    },
}

impl Invocation {
    /// Parses `command`, `script` or `argv`, of which a request contains exactly one.
    pub(super) fn parse(request: &RunRequest) -> Result<Self, RequestError> {
        let fields = [
            ("command", request.command.is_some()),
            ("script", request.script.is_some()),
            ("argv", !request.argv.is_empty()),
        ];
        let names: Vec<&str> = fields
            .iter()
            .filter_map(|(name, is_given)| is_given.then_some(*name))
            .collect();
        if names.len() > 1 {
            let message = format!("{} are mutually exclusive: give only one of them", names.join(" and "));
            return Err(RequestError::invalid(names[1], message));
        }
        if request.script.is_none() && !request.args.is_empty() {
            return Err(RequestError::invalid("args", "`args` requires `script`"));
        }
        check_arguments("args", &request.args)?;
        check_arguments("argv", &request.argv)?;
        if let Some(command) = &request.command {
            check_arguments("command", std::slice::from_ref(command))?;
            if command.trim().is_empty() {
                return Err(RequestError::invalid("command", "the command is empty"));
            }
            return Ok(Self::Shell(command.clone()));
        }
        if let Some(script) = &request.script {
            return Ok(Self::Script {
                path: RelPath::parse_user_input(script)
                    .map_err(|error| RequestError::invalid_path("script", &error))?,
                args: request.args.clone(),
            });
        }
        match request.argv.first() {
            None => Err(RequestError::invalid(
                "command",
                "nothing to run: give `command`, `script` or `argv`",
            )),
            Some(program) if program.is_empty() => Err(RequestError::invalid("argv[0]", "the program name is empty")),
            Some(_) => Ok(Self::Argv(request.argv.clone())),
        }
    }

    /// The program that the request names; none for a command line and for a script, whose interpreter is looked up later.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Argv(argv) => argv.first().map(String::as_str),
            Self::Shell(_) | Self::Script { .. } => None,
        }
    }

    /// Returns the argv of the process. `head` is the beginning of the script file.
    pub(crate) fn to_argv(&self, skill: &SkillName, head: &[u8]) -> Result<Vec<Vec<u8>>, RequestError> {
        match self {
            Self::Shell(line) => Ok(vec![b"bash".to_vec(), b"-c".to_vec(), line.as_bytes().to_vec()]),
            Self::Argv(argv) => Ok(argv.iter().map(|word| word.as_bytes().to_vec()).collect()),
            Self::Script { path, args } => {
                let directory = format!("{}/{}/", layout::ROOT, layout::skill_directory(skill));
                let script_path = [directory.as_bytes(), path.as_bytes()].concat();
                let mut argv = choose_interpreter(path, head)?;
                argv.push(script_path);
                argv.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
                Ok(argv)
            }
        }
    }
}

fn check_arguments(field: &str, words: &[String]) -> Result<(), RequestError> {
    let mut total = 0;
    for (index, word) in words.iter().enumerate() {
        let field = || {
            if field == "command" {
                field.to_owned()
            } else {
                format!("{field}[{index}]")
            }
        };
        total += word.len() + 1;
        if word.contains('\0') {
            return Err(RequestError::invalid(field(), "an argument cannot contain a NUL byte"));
        }
        if word.len() >= MAX_ARGUMENT_BYTES || total > MAX_TOTAL_ARGUMENT_BYTES {
            return Err(
                RequestError::invalid(field(), "the arguments exceed the kernel's size limit")
                    .with_hint("pass large data as an input or on stdin"),
            );
        }
    }
    Ok(())
}

/// Returns the interpreter and its argument: those of the `#!` line, otherwise the interpreter for the suffix. The list
/// is empty for an ELF file. The executable bit is ignored.
fn choose_interpreter(path: &RelPath, head: &[u8]) -> Result<Vec<Vec<u8>>, RequestError> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
        if !line.is_empty() {
            // Like the kernel: the rest of the line after the interpreter is one argument (execve(2)).
            let end = line
                .iter()
                .position(|b| matches!(b, b' ' | b'\t'))
                .unwrap_or(line.len());
            let (program, rest) = (line[..end].to_vec(), line[end..].trim_ascii());
            let mut words = vec![program];
            if !rest.is_empty() {
                words.push(rest.to_vec());
            }
            return Ok(words);
        }
    }
    let name = path.file_name();
    let suffix = name
        .rsplit(|b| *b == b'.')
        .next()
        .filter(|suffix| suffix.len() < name.len());
    let program = match suffix.unwrap_or_default() {
        b"py" => "python3",
        b"sh" | b"bash" => "bash",
        b"js" | b"mjs" | b"cjs" => "node",
        b"pl" => "perl",
        b"rb" => "ruby",
        b"lua" => "lua",
        b"php" => "php",
        b"r" | b"R" => "Rscript",
        _ if head.starts_with(b"\x7fELF") => return Ok(Vec::new()),
        _ => {
            let message = format!("no interpreter is known for {path}: it has no `#!` line and no known suffix");
            return Err(RequestError::invalid("script", message)
                .with_hint("add a line such as `#!/usr/bin/env python3`, or use `argv`"));
        }
    };
    Ok(vec![program.as_bytes().to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(script: &str, head: &[u8]) -> Result<Vec<String>, RequestError> {
        let invocation = Invocation::Script {
            path: RelPath::parse(script).unwrap(),
            args: vec!["-rf".into(), "$(x)".into()],
        };
        let words = invocation.to_argv(&SkillName::parse("s").unwrap(), head)?;
        Ok(words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
    }

    #[test]
    fn interpreters_come_from_the_shebang_then_the_suffix() {
        let directory = "/workspace/skills/s/scripts";
        let check = |script: &str, head: &[u8], expected: &[&str]| {
            let mut expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
            expected.extend([format!("{directory}/{script}"), "-rf".into(), "$(x)".into()]);
            assert_eq!(argv(&format!("scripts/{script}"), head).unwrap(), expected);
        };
        check("a.py", b"#!/usr/bin/env python3\nprint()", &["/usr/bin/env", "python3"]);
        check(
            "a.py",
            b"#!/usr/bin/env python3\r\nprint()",
            &["/usr/bin/env", "python3"],
        );
        check(
            "a",
            b"#! /bin/bash -eu -o pipefail\n",
            &["/bin/bash", "-eu -o pipefail"],
        );
        check("a.py", b"print()", &["python3"]);
        check("a.py", b"#!\n", &["python3"]);
        check("a.sh", b"", &["bash"]);
        check("a", b"\x7fELF\x02", &[]);
        assert_eq!(argv("scripts/a.xyz", b"text").unwrap_err().field, "script");
        assert!(argv("py", b"text").is_err());
    }

    #[test]
    fn a_request_contains_exactly_one_command() {
        let request = |json: RunRequest| Invocation::parse(&json);
        let base = RunRequest::default();
        assert_eq!(request(base.clone()).unwrap_err().field, "command");
        let both = RunRequest {
            command: Some("a".into()),
            script: Some("b".into()),
            ..base.clone()
        };
        assert_eq!(request(both).unwrap_err().field, "script");
        let blank = RunRequest {
            command: Some(" \n".into()),
            ..base.clone()
        };
        assert_eq!(request(blank).unwrap_err().field, "command");
        let args = RunRequest {
            command: Some("a".into()),
            args: vec!["x".into()],
            ..base.clone()
        };
        assert_eq!(request(args).unwrap_err().field, "args");
        let escaping = RunRequest {
            script: Some("../x".into()),
            ..base.clone()
        };
        assert_eq!(
            request(escaping).unwrap_err().code,
            skillbox_model::ErrorCode::PathEscape
        );
        let nul = RunRequest {
            argv: vec!["a".into(), "b\0".into()],
            ..base
        };
        assert_eq!(request(nul).unwrap_err().field, "argv[1]");
    }
}
