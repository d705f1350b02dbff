//! Connects the sockets of a sandbox with the process that carries its connections.

use std::os::fd::OwnedFd;

use skillbox_egress::{AllowList, Egress, RunNetwork, RunSockets};
use skillbox_sandbox::Sandbox;

use super::LocalError;
use crate::NetworkAccess;

/// Starts to carry the connections of a run; none if it may reach no host.
pub(super) fn open_network(
    egress: &Egress,
    access: &NetworkAccess,
    sandbox: &mut Sandbox,
) -> Result<Option<RunNetwork>, LocalError> {
    if access.hosts().is_empty() {
        return Ok(None);
    }
    let sockets = assign_sockets(sandbox.take_listening_sockets()).ok_or(LocalError::NoListeningSockets)?;
    let allowed = AllowList::new(access.hosts().clone());
    egress.open(sockets, allowed).map(Some).map_err(LocalError::Network)
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
