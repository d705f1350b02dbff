//! The bounds that the host sets for the limits in requests.

use skillbox_model::{ErrorCode, OutputSpec};

use super::RequestError;

/// The largest values that a request may set. A request that asks for more is refused with the name of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCaps {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of collected files. Every collected file holds a descriptor until it is saved.
    pub files: u64,
    /// Bytes of content in the report: of one file, and of all files together. A file that does not fit is cut off.
    pub inline_bytes: u64,
    /// Bytes of all collected files together.
    pub collected_bytes: u64,
}

impl Default for RequestCaps {
    fn default() -> Self {
        Self {
            inputs: 1_000,
            files: 10_000,
            inline_bytes: 16 << 20,
            collected_bytes: 4 << 30,
        }
    }
}

impl RequestCaps {
    /// Refuses too many inputs.
    pub(super) fn check_inputs(&self, count: usize) -> Result<(), RequestError> {
        if count <= self.inputs {
            return Ok(());
        }
        let message = format!("{count} inputs exceed this host's maximum of {} per run", self.inputs);
        let refusal = RequestError::new("inputs", ErrorCode::LimitExceeded, message);
        Err(refusal.with_hint("put the files into one directory, and name the directory as the input"))
    }

    /// The outputs that a request declares, or the default ones. Refuses limits of zero and limits above the host's; the
    /// defaults are lowered to the host's.
    pub(super) fn limit_outputs(&self, declared: Option<&OutputSpec>) -> Result<OutputSpec, RequestError> {
        let default = OutputSpec::default();
        let mut limited = declared.cloned().unwrap_or_default();
        for (field, value, default, cap, unit) in [
            (
                "outputs.max_files",
                &mut limited.max_files,
                default.max_files,
                self.files,
                "files",
            ),
            (
                "outputs.max_file_bytes",
                &mut limited.max_file_bytes,
                default.max_file_bytes,
                self.inline_bytes,
                "bytes",
            ),
            (
                "outputs.max_total_bytes",
                &mut limited.max_total_bytes,
                default.max_total_bytes,
                self.collected_bytes,
                "bytes",
            ),
        ] {
            if *value == 0 {
                return Err(RequestError::invalid(field, "the limit must be at least 1"));
            }
            if *value == default {
                *value = default.min(cap);
            } else if *value > cap {
                let message = format!("{value} {unit} exceed the maximum of {cap} per run");
                return Err(RequestError::new(field, ErrorCode::LimitExceeded, message));
            }
        }
        Ok(limited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_above_the_hosts_are_refused_and_defaults_are_lowered() {
        let caps = RequestCaps {
            inline_bytes: 1_000,
            ..RequestCaps::default()
        };
        assert_eq!(caps.limit_outputs(None).unwrap().max_file_bytes, 1_000);
        let declare = |max_file_bytes| OutputSpec {
            max_file_bytes,
            ..OutputSpec::default()
        };
        assert_eq!(caps.limit_outputs(Some(&declare(999))).unwrap().max_file_bytes, 999);
        assert_eq!(caps.limit_outputs(Some(&declare(1_000))).unwrap().max_file_bytes, 1_000);
        let refused = caps.limit_outputs(Some(&declare(1_001))).unwrap_err();
        assert_eq!(
            (refused.code, refused.field.as_str()),
            (ErrorCode::LimitExceeded, "outputs.max_file_bytes")
        );
        let default = RequestCaps::default();
        assert!(default.check_inputs(default.inputs).is_ok() && default.check_inputs(default.inputs + 1).is_err());
    }
}
