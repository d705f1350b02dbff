//! The hints for causes that are recognised in stderr.

use skillbox_model::{ExecutorKind, Layer};

use super::finished_run::FinishedRun;
use super::limit_text;
use super::package_names::{PythonOrigin, node_package, python_origin};
use super::stderr_patterns::{Cause, Finding};

/// The text for a cause; none if no option or setting would change it.
pub(super) fn text(finding: &Finding<'_>, run: &FinishedRun<'_>) -> Option<String> {
    let subject = finding.subject;
    Some(match finding.cause {
        Cause::PythonModule => python_module(subject),
        Cause::NodeModule => node_module(subject)?,
        Cause::SharedLibrary => format!(
            "the library {} {}",
            quoted(subject, "that the program needs"),
            provide(run)
        ),
        Cause::MissingProgram => format!("the program {} {}", quoted(subject, "or its interpreter"), provide(run)),
        Cause::NotExecutable => format!(
            "{} has no execute permission; start it with its interpreter, as in `bash FILE` or `python3 FILE`, or with \
             `--script PATH` (`script` in a request)",
            quoted(subject, "the file")
        ),
        Cause::MissingFile => missing_file(subject?)?,
        Cause::ReadOnly => format!(
            "{} is read-only inside the sandbox; write to `out/` (collected), `$WORK_DIR` or `$TMPDIR`",
            quoted(subject, "the path")
        ),
        Cause::NoNetwork => no_network(subject, run)?,
        Cause::PermissionDenied => format!(
            "the script has no access to {}; it reads what the profile shows (`skillbox profiles show {}`) and writes below \
             /workspace: `out/`, `$WORK_DIR` or `$TMPDIR`",
            quoted(subject, "the path"),
            run.profile
        ),
        Cause::NotPermitted => format!(
            "scripts run as an ordinary user without privileges and cannot change owners, mount, or administer the host; \
             profile `{}` lists the allowed system calls (`skillbox profiles show {}`)",
            run.profile, run.profile
        ),
        Cause::RefusedCall => format!(
            "profile `{}` refuses a system call that the program made; `skillbox profiles show {}` lists the allowed ones, and \
             a profile that extends it can add others under `syscalls.allow`",
            run.profile, run.profile
        ),
        Cause::NoSpace => limit_text::workspace(run),
        Cause::FileTooLarge => limit_text::file(run),
        Cause::OpenFiles => limit_text::open_files(run),
        Cause::Processes => limit_text::processes(run),
        Cause::Memory => limit_text::memory(run),
        Cause::NodeHeap => format!(
            "Node reached the heap limit that it sets for itself; raise it with \
             `--env NODE_OPTIONS=--max-old-space-size=MIB`, below the memory limit of {}",
            run.limits.memory
        ),
    })
}

fn python_module(module: Option<&str>) -> String {
    let Some(module) = module else {
        return "a Python module is not installed where the sandbox can see it; see \
                `No module named` in the troubleshooting guide"
            .to_owned();
    };
    match python_origin(module) {
        PythonOrigin::Package(package) => format!(
            "the Python package `{package}` (module `{module}`) is not installed where the sandbox can see it; name it in \
             `requirements.txt` of the skill, or run with `--with {package}`, and skillbox installs it"
        ),
        PythonOrigin::StandardLibrary => format!(
            "the module `{module}` belongs to Python, but this installation lacks it; install the package of the \
             distribution that contains it"
        ),
        PythonOrigin::OwnFile => format!(
            "`{module}` looks like a module of the skill itself; set `--cwd` to the directory that contains it, or add that \
             directory with `--env PYTHONPATH=DIR`"
        ),
    }
}

fn node_module(specifier: Option<&str>) -> Option<String> {
    let package = node_package(specifier?)?;
    Some(format!(
        "the Node package `{package}` is not installed where the sandbox can see it; name it under `dependencies` in \
         `package.json` of the skill, and skillbox installs it"
    ))
}

/// How to make a program or library available.
fn provide(run: &FinishedRun<'_>) -> String {
    match run.executor {
        ExecutorKind::Docker => {
            "does not exist in the image of the containers; use an image that contains it (setting `docker_image`)"
                .to_owned()
        }
        ExecutorKind::Local => format!(
            "does not exist in the sandbox, which shows the host's /usr; install it there, or show its directory in a \
             profile that extends `{}` (`filesystem.visible`)",
            run.profile
        ),
    }
}

/// Directories of the sandbox in which a missing file is not one of the host.
const SANDBOX_DIRECTORIES: [&str; 10] = [
    "/workspace",
    "/tmp",
    "/var/tmp",
    "/proc",
    "/sys",
    "/dev",
    "/usr",
    "/bin",
    "/lib",
    "/etc",
];

/// The hint for a file of the host that the sandbox does not show; none for other files, which may be missing for many
/// reasons.
fn missing_file(path: &str) -> Option<String> {
    let is_below = |directory: &&str| {
        path.strip_prefix(*directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !path.starts_with('/') || SANDBOX_DIRECTORIES.iter().any(is_below) {
        return None;
    }
    Some(format!(
        "the sandbox does not show `{path}`; if it is a file of the host, pass it with `--input {path}`, and read it from \
         `inputs/`"
    ))
}

fn no_network(host: Option<&str>, run: &FinishedRun<'_>) -> Option<String> {
    // The warnings of a run that reaches some hosts name those that it was denied.
    if !run.is_requested(Layer::NetworkNamespace) || run.reaches_hosts {
        return None;
    }
    let is_local = host.is_some_and(|host| ["localhost", "127.", "::1"].iter().any(|name| host.starts_with(name)));
    let host = match host {
        Some(host) if !is_local => format!(" and cannot reach `{host}`"),
        _ => String::new(),
    };
    Some(if run.profile == "loopback" {
        format!(
            "profile `loopback` has only a private loopback interface{host}; fetch the data first and pass it with `--input`"
        )
    } else {
        format!(
            "profile `{}` has no network{host}; allow single hosts with `--allow-net HOST`, or fetch the data first and pass \
             it with `--input`, or use `--profile loopback` if the script connects to a server of its own",
            run.profile
        )
    })
}

/// A subject in backquotes, or a description where there is none.
fn quoted(subject: Option<&str>, otherwise: &str) -> String {
    subject.map_or_else(|| otherwise.to_owned(), |subject| format!("`{subject}`"))
}
