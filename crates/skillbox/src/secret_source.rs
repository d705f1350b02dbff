//! Reads the values of configured secrets, outside every sandbox and only when a run needs them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use skillbox_model::{SecretValue, SecretValueError};
use skillbox_runtime::{ConfiguredSecret, ConfiguredSecrets, SecretSourceError};

use crate::settings::{Layers, SecretSource};

/// A password manager that asks for nothing answers within this time.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// A server does not start the command again for each run. A changed value counts after this time, or after a reload.
const COMMAND_CACHE_TIME: Duration = Duration::from_secs(30);

/// Why a source has no usable value. It never contains the value.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("the environment variable {0} is not set")]
    VariableMissing(String),
    #[error("the value is not UTF-8 text")]
    NotText,
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is accessible to every user of the host (mode {mode:o}); remove that with `chmod o-rwx`", path.display())]
    AccessibleToAll { path: PathBuf, mode: u32 },
    #[error("the command cannot be started")]
    Start(#[source] io::Error),
    #[error("the output of the command cannot be read")]
    Output(#[source] io::Error),
    #[error("the command did not end within {} seconds", COMMAND_TIMEOUT.as_secs())]
    Timeout,
    #[error("the command failed: {0}")]
    Failed(ExitStatus),
    #[error(transparent)]
    Value(#[from] SecretValueError),
}

/// The configured secrets of this invocation, each with the function that reads its value.
pub fn configured_secrets(layers: &Layers) -> ConfiguredSecrets {
    let environment = layers.environment();
    let secrets = layers.secrets().into_iter().map(|(name, entry)| {
        let source = entry.source.clone();
        let variable = match &source {
            SecretSource::Variable(name) => environment.get(name).map(ToOwned::to_owned),
            _ => None,
        };
        let cache = Mutex::new(None);
        let secret = ConfiguredSecret {
            source: source.to_string(),
            hosts: entry.hosts,
            skills: entry.skills,
            injection: entry.injection,
            read: Arc::new(move || read(&source, variable.as_ref(), &cache).map_err(SecretSourceError::from)),
        };
        (name, secret)
    });
    ConfiguredSecrets {
        secrets: secrets.collect(),
        untrusted_directory: Some(environment.working_dir().to_owned()),
    }
}

type CommandCache = Mutex<Option<(Instant, SecretValue)>>;

fn read(source: &SecretSource, variable: Option<&OsString>, cache: &CommandCache) -> Result<SecretValue, SourceError> {
    match source {
        SecretSource::Variable(name) => {
            let value = variable.ok_or_else(|| SourceError::VariableMissing(name.clone()))?;
            let text = value.to_str().ok_or(SourceError::NotText)?;
            Ok(SecretValue::parse(text.to_owned())?)
        }
        SecretSource::File(path) => to_value(read_file(path)?),
        SecretSource::Command(line) => {
            // Runs that start at the same time wait for one command.
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((read_at, value)) = &*cache
                && read_at.elapsed() < COMMAND_CACHE_TIME
            {
                return Ok(value.clone());
            }
            let value = to_value(run_command(line)?)?;
            *cache = Some((Instant::now(), value.clone()));
            Ok(value)
        }
    }
}

/// The text without the line end that editors and commands add.
fn to_value(bytes: Vec<u8>) -> Result<SecretValue, SourceError> {
    let mut text = String::from_utf8(bytes).map_err(|_| SourceError::NotText)?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(SecretValue::parse(text)?)
}

/// One byte more than a value with a line end, so that a longer one is noticed.
const MAX_SOURCE_BYTES: u64 = SecretValue::MAX_BYTES as u64 + 3;

fn read_file(path: &Path) -> Result<Vec<u8>, SourceError> {
    let failed = |source| SourceError::File {
        path: path.to_owned(),
        source,
    };
    // A FIFO without a writer must not block the open.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?);
    let stat = fstat(&file).map_err(|error| failed(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(SourceError::NotAFile(path.to_owned()));
    }
    if stat.st_mode & 0o007 != 0 {
        return Err(SourceError::AccessibleToAll {
            path: path.to_owned(),
            mode: stat.st_mode & 0o777,
        });
    }
    let mut bytes = Vec::new();
    file.take(MAX_SOURCE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Runs a command of the operator's configuration. Its standard error is not shown, since it could contain the value.
#[expect(
    clippy::disallowed_methods,
    reason = "the operator's own command, which runs outside every sandbox; nothing of a skill or a request is in it"
)]
fn run_command(line: &str) -> Result<Vec<u8>, SourceError> {
    let deadline = Instant::now() + COMMAND_TIMEOUT;
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(SourceError::Start)?;
    let output = match child.stdout.take() {
        Some(stdout) => read_until(stdout, deadline),
        None => Ok(Vec::new()),
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = output.and_then(|output| {
        if let Some(pid) = group {
            let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| SourceError::Output(error.into()))?;
            wait_readable(&pidfd, deadline)?;
        }
        Ok(output)
    });
    if ended.is_err()
        && let Some(group) = group
    {
        // The group may have ended in the meantime.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(SourceError::Output)?;
    let output = ended?;
    if status.success() {
        Ok(output)
    } else {
        Err(SourceError::Failed(status))
    }
}

fn read_until(mut stdout: impl Read + AsFd, deadline: Instant) -> Result<Vec<u8>, SourceError> {
    let mut output = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        wait_readable(&stdout, deadline)?;
        match stdout.read(&mut chunk).map_err(SourceError::Output)? {
            0 => return Ok(output),
            count => output.extend_from_slice(&chunk[..count]),
        }
        if output.len() as u64 >= MAX_SOURCE_BYTES {
            return Err(SecretValueError::TooLong(output.len()).into());
        }
    }
}

fn wait_readable(fd: impl AsFd, deadline: Instant) -> Result<(), SourceError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(SourceError::Timeout),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(SourceError::Output(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read_source(source: &SecretSource) -> Result<String, String> {
        let value = read(source, None, &Mutex::new(None));
        value
            .map(|value| value.expose().to_owned())
            .map_err(|error| error.to_string())
    }

    fn command(line: &str) -> Result<String, String> {
        read_source(&SecretSource::Command(line.to_owned()))
    }

    #[test]
    fn a_file_is_read_only_if_other_users_cannot() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "canary-value").unwrap();
        let source = SecretSource::File(file.path().to_owned());
        let set_mode = |mode| file.as_file().set_permissions(PermissionsExt::from_mode(mode)).unwrap();
        set_mode(0o600);
        assert_eq!(read_source(&source).unwrap(), "canary-value");
        set_mode(0o640);
        assert_eq!(read_source(&source).unwrap(), "canary-value");
        for mode in [0o604, 0o602, 0o666] {
            set_mode(mode);
            let error = read_source(&source).unwrap_err();
            assert!(error.contains("chmod o-rwx") && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn other_things_than_files_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [fifo, directory.path().to_owned(), "/dev/null".into()] {
            let error = read_source(&SecretSource::File(path)).unwrap_err();
            assert!(error.contains("is not a regular file"), "{error}");
        }
        let error = read_source(&SecretSource::File("/nonexistent".into())).unwrap_err();
        assert!(error.contains("cannot read /nonexistent"), "{error}");
    }

    #[test]
    fn a_command_has_bounds_and_its_output_is_in_no_error() {
        assert_eq!(command("printf 'canary-value\\r\\n'").unwrap(), "canary-value");
        let error = command("echo canary-value; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && !error.contains("canary"), "{error}");
        assert!(command("printf canary").unwrap_err().contains("at least 8"));
        assert!(command("yes canary-value").unwrap_err().contains("at most 16384"));
        assert!(command("printf 'canary\\377value'").unwrap_err().contains("UTF-8"));
        assert!(
            command("printf 'canary\\nvalue'")
                .unwrap_err()
                .contains("control character")
        );
    }

    #[test]
    fn a_command_is_not_started_for_each_run() {
        let directory = tempfile::tempdir().unwrap();
        let counter = directory.path().join("counter");
        let line = format!("echo x >> {}; echo canary-value", counter.display());
        let cache = Mutex::new(None);
        for _ in 0..3 {
            read(&SecretSource::Command(line.clone()), None, &cache).unwrap();
        }
        assert_eq!(std::fs::read_to_string(counter).unwrap(), "x\n");
    }
}
