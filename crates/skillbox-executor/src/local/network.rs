//! Connects the sockets of a sandbox with the process that carries its connections.

use std::os::fd::OwnedFd;

use skillbox_egress::{Egress, RunCredentials, RunNetwork, RunSockets};
use skillbox_sandbox::{Bind, BindAccess, BindKind, BindOwner, Sandbox};

use super::LocalError;
use super::certificates::Certificates;
use crate::NetworkAccess;
use crate::network_access::CERTIFICATES_DIRECTORY;

/// Makes what the run needs before it starts, and writes the files for it.
pub(super) fn issue_credentials(
    egress: &Egress,
    access: &NetworkAccess,
) -> Result<(RunCredentials, Option<Certificates>), LocalError> {
    // Without a network there is nothing to add secrets to.
    let secrets = if access.is_empty() { &[] } else { access.secrets() };
    let issued = egress.issue_credentials(&access.allow_list(), secrets);
    let credentials = issued.map_err(LocalError::Network)?;
    let certificates = Certificates::write(&credentials).map_err(LocalError::Certificates)?;
    Ok((credentials, certificates))
}

/// The mount of the certificate authorities, if the run has its own.
pub(super) fn certificates_bind(access: &NetworkAccess) -> Option<Bind> {
    access.needs_certificates().then(|| Bind {
        target: CERTIFICATES_DIRECTORY.to_owned(),
        kind: BindKind::Directory,
        access: BindAccess::ReadOnly,
        owner: BindOwner::Unchanged,
    })
}

/// Starts to carry the connections of a run; none if it may reach no host.
pub(super) fn open_network(
    egress: &Egress,
    access: &NetworkAccess,
    credentials: RunCredentials,
    sandbox: &mut Sandbox,
) -> Result<Option<RunNetwork>, LocalError> {
    if access.is_empty() {
        return Ok(None);
    }
    let sockets = assign_sockets(sandbox.take_listening_sockets()).ok_or(LocalError::NoListeningSockets)?;
    let opened = egress.open(sockets, access.allow_list(), credentials);
    opened.map(Some).map_err(LocalError::Network)
}

/// Assigns the sockets to their purposes, in the order of the sandbox.
fn assign_sockets(mut sockets: Vec<OwnedFd>) -> Option<RunSockets> {
    let (dns_tcp, dns_udp, proxy) = (sockets.pop()?, sockets.pop()?, sockets.pop()?);
    Some(RunSockets {
        hosts: sockets,
        proxy,
        dns_udp,
        dns_tcp,
    })
}
