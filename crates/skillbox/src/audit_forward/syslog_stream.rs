//! Syslog messages over a stream, with octet counting (RFC 6587).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection of a stream.
pub trait SyslogStream: Read + Write {
    fn set_timeouts(&self, timeout: Duration) -> io::Result<()>;
    fn end_output(&self) -> io::Result<()>;
}

impl SyslogStream for TcpStream {
    fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }

    fn end_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl SyslogStream for UnixStream {
    fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }

    fn end_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Sends messages on a connection of their own.
///
/// Syslog has no acknowledgement, and what was written may still be in a buffer when the server dies. So the connection
/// ends with the batch, and the messages count as delivered when the server has read them to the end and closes it.
pub fn send(mut stream: impl SyslogStream, messages: &[String], timeout: Duration) -> io::Result<()> {
    stream.set_timeouts(timeout)?;
    let mut frames = Vec::new();
    for message in messages {
        write!(frames, "{} {message}", message.len())?;
    }
    stream.write_all(&frames)?;
    stream.end_output()?;
    let mut ignored = [0; 512];
    loop {
        match stream.read(&mut ignored) {
            Ok(0) => return Ok(()),
            // Syslog servers send nothing; whatever one sends is not an acknowledgement.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the server did not read the messages to their end",
                ));
            }
            Err(error) => return Err(error),
        }
    }
}
