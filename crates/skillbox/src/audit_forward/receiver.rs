//! Delivers batches of records to a receiver.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use skillbox_trust::{BatchLimit, ForwardBatch};

use super::collector::Collector;
use super::delivery::{DeliveryError, TIMEOUT};
use super::syslog_message::{missing_record, to_message, to_short_message};
use super::syslog_stream;
use crate::failure::Failure;
use crate::forward_target::ForwardTarget;

const EMSGSIZE: i32 = rustix::io::Errno::MSGSIZE.raw_os_error();
const EPROTOTYPE: i32 = rustix::io::Errno::PROTOTYPE.raw_os_error();

/// A receiver of records.
pub struct Receiver {
    target: ForwardTarget,
    host: String,
    collector: Option<Collector>,
}

impl Receiver {
    pub fn new(target: ForwardTarget, token_file: Option<&Path>) -> Result<Self, Failure> {
        let collector = match &target {
            ForwardTarget::Collector(url) => Some(Collector::new(url, token_file)?),
            _ => None,
        };
        Ok(Self {
            target,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            collector,
        })
    }

    pub fn target(&self) -> &ForwardTarget {
        &self.target
    }

    /// The size of a batch. After a failure a batch is delivered again, so one of datagrams is small: the receiver already
    /// has those before the failure.
    pub fn batch_limit(&self) -> BatchLimit {
        let records = match self.target {
            ForwardTarget::SyslogSocket(_) | ForwardTarget::SyslogUdp(_) => 32,
            ForwardTarget::SyslogTcp(_) | ForwardTarget::Collector(_) => 1_000,
        };
        BatchLimit {
            records,
            bytes: 1 << 20,
        }
    }

    /// Delivers a batch. When it returns without an error, the receiver has all records.
    pub fn deliver(&mut self, batch: &ForwardBatch) -> Result<(), DeliveryError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let missing = batch.missing.as_ref();
        let mut records: Vec<String> = missing
            .map(|missing| missing_record(missing, now_ms, &self.host))
            .into_iter()
            .collect();
        records.extend(batch.records.iter().cloned());
        if let Some(collector) = &self.collector {
            return collector.post(&records);
        }
        let sent = match &self.target {
            ForwardTarget::SyslogSocket(path) => send_to_socket(path, &records),
            ForwardTarget::SyslogUdp(address) => send_by_udp(address, &records),
            ForwardTarget::SyslogTcp(address) => {
                connect(address).and_then(|stream| syslog_stream::send(stream, &to_messages(&records), TIMEOUT))
            }
            ForwardTarget::Collector(_) => Ok(()),
        };
        sent.map_err(|source| DeliveryError::Io {
            target: self.target.to_string(),
            source,
        })
    }
}

fn to_messages(records: &[String]) -> Vec<String> {
    records.iter().map(|record| to_message(record)).collect()
}

/// A socket of datagrams keeps what its reader has not read yet, and blocks when that is too much.
fn send_to_socket(path: &Path, records: &[String]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    match socket.connect(path) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(EPROTOTYPE) => {
            return syslog_stream::send(UnixStream::connect(path)?, &to_messages(records), TIMEOUT);
        }
        Err(error) => return Err(error),
    }
    socket.set_write_timeout(Some(TIMEOUT))?;
    send_datagrams(records, |datagram| socket.send(datagram))
}

fn send_by_udp(address: &str, records: &[String]) -> io::Result<()> {
    let server = resolve(address)?;
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    send_datagrams(records, |datagram| socket.send(datagram))?;
    // On this host and in most local networks, a missing server is noticed.
    socket.take_error()?.map_or(Ok(()), Err)
}

fn send_datagrams(records: &[String], send: impl Fn(&[u8]) -> io::Result<usize>) -> io::Result<()> {
    for record in records {
        match send(to_message(record).as_bytes()) {
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => send(to_short_message(record).as_bytes())?,
            sent => sent?,
        };
    }
    Ok(())
}

fn connect(address: &str) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&resolve(address)?, TIMEOUT)
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let mut addresses = address.to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
}
