//! The warnings for output files that a limit kept from being collected: which limit, and how to raise it.

use skillbox_executor::job::{CollectionSpec, ExcessFileReporting, RequestCaps};
use skillbox_executor::workspace::Outputs;
use skillbox_model::ByteSize;

/// One warning for each limit that was reached.
pub(crate) fn warnings(outputs: &Outputs, spec: &CollectionSpec, caps: &RequestCaps) -> Vec<String> {
    // A run that asked for no files loses none.
    if spec.excess_files == ExcessFileReporting::CountOnly {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if outputs.is_file_limit_reached {
        warnings.push(format!(
            "more files matched than the limit of {}; raise it with `--max-files N` (`outputs.max_files` in a request), at \
             most {} on this host (setting `max_output_files`), or select fewer",
            spec.max_files, caps.files
        ));
    }
    if outputs.is_byte_limit_reached {
        warnings.push(format!(
            "the files that matched exceed the limit of {} in total; raise it with `--max-total-bytes N` \
             (`outputs.max_total_bytes` in a request), at most {} on this host (setting `max_collected`), or select fewer",
            ByteSize(spec.max_total_bytes),
            ByteSize(caps.collected_bytes)
        ));
    }
    warnings
}
