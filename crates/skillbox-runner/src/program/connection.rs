//! The connection to the executor, over the standard streams of the runner.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use serde::Serialize;
use skillbox_model::Stream;
use skillbox_runner::{Frame, FrameDecoder, ToRunner, write_data, write_message, write_output};

/// The connection to the executor: receives and sends frames.
pub struct Connection {
    input: File,
    output: File,
    frames: FrameDecoder,
    buffer: Vec<u8>,
}

impl Connection {
    /// Takes over the standard streams and replaces them by `/dev/null`.
    pub fn take_standard_streams() -> io::Result<Self> {
        // The numbers 0 to 2 are needed for the streams of the command.
        let input = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 10)?;
        let output = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 10)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(Self {
            input: input.into(),
            output: output.into(),
            frames: FrameDecoder::default(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Sends a message.
    pub fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        write_message(&mut self.output, message)
    }

    /// Sends a chunk of a file.
    pub fn send_data(&mut self, data: &[u8]) -> io::Result<()> {
        write_data(&mut self.output, data)
    }

    /// Sends output of the command.
    pub fn send_output(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        write_output(&mut self.output, stream, data)
    }

    /// Sends encoded frames.
    pub fn send_frames(&mut self, frames: &[u8]) -> io::Result<()> {
        self.output.write_all(frames)
    }

    /// Takes the next complete frame from the buffer, without reading.
    pub fn buffered_frame(&mut self) -> io::Result<Option<Frame>> {
        self.frames.next_frame().map_err(io::Error::other)
    }

    /// Reads once. The end of the stream is an error, because the runner ends with its connection.
    pub fn read_more(&mut self) -> io::Result<()> {
        match self.input.read(&mut self.buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.frames.push(&self.buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next frame.
    pub fn next_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.buffered_frame()? {
                return Ok(frame);
            }
            self.read_more()?;
        }
    }

    /// Waits for the next message, and discards other frames before it.
    pub fn next_message(&mut self) -> io::Result<ToRunner> {
        loop {
            if let Frame::Message(bytes) = self.next_frame()? {
                return FrameDecoder::decode_message(&bytes).map_err(io::Error::other);
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}
