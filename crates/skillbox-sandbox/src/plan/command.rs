//! The command of a job, as execve(2) takes it.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use super::error::PlanError;
use super::job::Job;
use super::step::Command;

/// The command of a job, or the field that cannot be passed to execve(2).
pub(super) fn command(job: &Job) -> Result<Command, PlanError> {
    if job.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(PlanError::Job {
            field: "argv",
            message: "no program is given".to_owned(),
        });
    }
    let c_string = |field, bytes: &[u8]| {
        CString::new(bytes).map_err(|_| PlanError::Job {
            field,
            message: "a NUL byte cannot be passed".to_owned(),
        })
    };
    let argv = job
        .argv
        .iter()
        .map(|word| c_string("argv", word.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut env: Vec<(&OsStr, CString)> = Vec::with_capacity(job.env.len());
    for (name, value) in &job.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(PlanError::Job {
                field: "env",
                message: format!("{name:?} is not a valid variable name"),
            });
        }
        let mut pair = name.as_bytes().to_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        let pair = c_string("env", &pair)?;
        match env.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = pair,
            None => env.push((name, pair)),
        }
    }
    Ok(Command {
        argv,
        env: env.into_iter().map(|(_, pair)| pair).collect(),
    })
}
