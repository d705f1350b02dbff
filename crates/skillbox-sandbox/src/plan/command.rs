//! Converts the command of a job to the strings that execve(2) takes.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use super::error::PlanError;
use super::job::Job;
use super::step::Command;

/// Converts `argv` and `env` of a job. Fails with the name of the field that execve(2) would not accept.
pub(super) fn build_command(job: &Job) -> Result<Command, PlanError> {
    if job.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(PlanError::InvalidJob {
            field: "argv",
            message: "no program is given".to_owned(),
        });
    }
    let c_string = |field, bytes: &[u8]| {
        CString::new(bytes).map_err(|_| PlanError::InvalidJob {
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
            return Err(PlanError::InvalidJob {
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
