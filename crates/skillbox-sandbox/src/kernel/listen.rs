//! Sockets that are bound in the current network namespace.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

/// Connections that the kernel accepts ahead of the server. The kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 1024;

/// Listens on a TCP port.
pub(crate) fn listen_tcp(address: Ipv4Addr, port: u16) -> io::Result<OwnedFd> {
    let socket = bind_socket(SocketType::STREAM, address, port)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Binds a UDP port.
pub(crate) fn bind_udp(address: Ipv4Addr, port: u16) -> io::Result<OwnedFd> {
    bind_socket(SocketType::DGRAM, address, port)
}

fn bind_socket(kind: SocketType, address: Ipv4Addr, port: u16) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(address, port))?;
    Ok(socket)
}
