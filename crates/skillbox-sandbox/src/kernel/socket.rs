//! Messages with descriptors over a Unix socket that keeps their bounds.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// As many descriptors as the kernel takes in one message.
pub(crate) const MAX_DESCRIPTORS: usize = 253;

/// As many bytes as fit into one message under the kernel's default buffer sizes, with room to spare.
pub(crate) const MAX_MESSAGE: usize = 128 << 10;

/// Two connected ends.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message whole, or fails.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    loop {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// One received message.
pub(crate) struct Received {
    /// How much of the buffer it filled; 0 at the end of the connection.
    pub length: usize,
    pub descriptors: Vec<OwnedFd>,
    /// Whether not all of its descriptors came: this process has too many.
    pub lacks_descriptors: bool,
}

impl Received {
    /// The message, if all of it came.
    pub fn whole(self) -> io::Result<Self> {
        if self.lacks_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        Ok(self)
    }
}

/// Receives one message, waiting for it.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        match recvmsg(
            socket,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    Ok(Received {
        length: message.bytes,
        descriptors,
        lacks_descriptors: message.flags.contains(ReturnFlags::CTRUNC),
    })
}
