//! Messages with descriptors over a `SOCK_SEQPACKET` socket, which preserves message boundaries.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The most descriptors that the kernel accepts in one message: `SCM_MAX_FD`.
pub(crate) const MAX_DESCRIPTORS: usize = 253;

/// The largest message. With the kernel's overhead it fits into the default socket buffer of 208 KiB.
pub(crate) const MAX_MESSAGE_BYTES: usize = 128 << 10;

/// Creates two connected sockets.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one whole message, or fails.
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
pub(crate) struct ReceivedMessage {
    /// The number of bytes in the buffer; 0 at the end of the connection.
    pub length: usize,
    pub descriptors: Vec<OwnedFd>,
    /// Whether the kernel dropped descriptors because this process has too many open.
    pub lacks_descriptors: bool,
}

impl ReceivedMessage {
    /// Returns the message, or `EMFILE` if the kernel dropped descriptors.
    pub fn require_complete(self) -> io::Result<Self> {
        if self.lacks_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        Ok(self)
    }
}

/// Waits for one message and receives it.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<ReceivedMessage> {
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
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    Ok(ReceivedMessage {
        length: message.bytes,
        descriptors,
        lacks_descriptors: message.flags.contains(ReturnFlags::CTRUNC),
    })
}
