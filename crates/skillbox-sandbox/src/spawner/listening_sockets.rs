//! The sockets that listen in the network namespace of a run, for the hosts that it may reach.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use crate::kernel::listen::{bind_udp, listen_tcp};
use crate::plan::ListeningPorts;

/// The address for questions for names.
const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// Opens the sockets in the current network namespace: one for each port of a host, the proxy, names over UDP, names
/// over TCP.
pub(super) fn open_listening_sockets(ports: &ListeningPorts) -> io::Result<Vec<OwnedFd>> {
    let hosts = ports.hosts.iter().map(|port| listen_tcp(Ipv4Addr::UNSPECIFIED, *port));
    let mut sockets = hosts.collect::<io::Result<Vec<_>>>()?;
    sockets.push(listen_tcp(Ipv4Addr::LOCALHOST, ports.proxy)?);
    sockets.push(bind_udp(DNS_ADDRESS, ListeningPorts::DNS)?);
    sockets.push(listen_tcp(DNS_ADDRESS, ListeningPorts::DNS)?);
    Ok(sockets)
}
