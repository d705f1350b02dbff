//! The addresses that the server accepts connections on: TCP, or a socket in the file system.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

/// The number of connections that the kernel queues before they are accepted.
const LISTEN_BACKLOG: u32 = 4_096;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A socket in the file system, which only its owner can connect to.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ListenAddress {
    /// The address as clients use it.
    pub fn url(&self) -> String {
        match self {
            Self::Tcp(address) => format!("http://{address}"),
            Self::Unix(_) => self.to_string(),
        }
    }

    /// Whether only processes of this host can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

/// A connection of either kind.
pub(crate) type Connection = Either<TcpStream, UnixStream>;

/// A bound socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// Removes the file of a socket when the server ends.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may be removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Binds with a long backlog, so that a burst of connections waits in the kernel's queue instead of being dropped and
    /// retried.
    pub(crate) fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => {
                let socket = match address {
                    SocketAddr::V4(_) => TcpSocket::new_v4()?,
                    SocketAddr::V6(_) => TcpSocket::new_v6()?,
                };
                socket.set_reuseaddr(true)?;
                socket.bind(*address)?;
                Ok(Self::Tcp(socket.listen(LISTEN_BACKLOG)?))
            }
            ListenAddress::Unix(path) => bind_unix(path),
        }
    }

    /// The bound address, with the port that the kernel chose.
    pub(crate) fn address(&self) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(listener) => Ok(ListenAddress::Tcp(listener.local_addr()?)),
            Self::Unix(_, file) => Ok(ListenAddress::Unix(file.0.clone())),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(listener) => Ok(Either::Left(listener.accept().await?.0)),
            Self::Unix(listener, _) => Ok(Either::Right(listener.accept().await?.0)),
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    remove_stale_socket(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode of the socket, so that no other user can connect before a later chmod.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let file = SocketFile(path.to_owned());
    listen(&socket, i32::try_from(LISTEN_BACKLOG).unwrap_or(i32::MAX))?;
    Ok(Listener::Unix(UnixListener::from_std(socket.into())?, file))
}

/// Removes the socket of a server that was killed. That of a running one stays, and so does any other file.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.file_type().is_socket());
    let is_stale =
        is_socket && StdUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_stale { std::fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_socket_file_is_private_and_only_a_stale_one_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let address = ListenAddress::Unix(path.clone());
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(listener.address().unwrap(), address);
        let in_use = Listener::bind(&address).err().unwrap();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "the socket of a killed server");
        drop(Listener::bind(&address).unwrap());
        std::fs::write(&path, "a file").unwrap();
        assert!(Listener::bind(&address).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    }
}
