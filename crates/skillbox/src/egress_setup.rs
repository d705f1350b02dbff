//! Sets up what carries the connections of runs, from the settings.

use skillbox_executor::{AddressSource, Egress, EgressLimits, TlsRoots};
use skillbox_model::ErrorCode;

use crate::failure::Failure;
use crate::settings::HostSettings;

/// What carries the connections of runs. Nothing is started yet.
pub fn new_egress(host: &HostSettings) -> Result<Egress, Failure> {
    let roots = match &host.tls_roots {
        None => TlsRoots::default(),
        Some(file) => TlsRoots::with_file(file).map_err(|error| {
            let message = format!("tls_roots: {} cannot be used: {error}", file.display());
            Failure::new(ErrorCode::InvalidRequest, message)
        })?,
    };
    Ok(Egress::new(
        host.host_address.clone(),
        AddressSource::Host,
        roots,
        EgressLimits::default(),
    ))
}
