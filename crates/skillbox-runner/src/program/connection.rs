//! The line to the executor.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use serde::Serialize;
use skillbox_model::Stream;
use skillbox_runner::{Frame, Frames, ToRunner, write_data, write_message, write_output};

/// Our end: what comes in is cut into frames, what goes out is written at once.
pub struct Line {
    input: File,
    output: File,
    frames: Frames,
    buffer: Vec<u8>,
}

impl Line {
    /// Takes the standard streams over and leaves nothing in their place.
    pub fn take_standard_streams() -> io::Result<Self> {
        // Above the numbers that the command's streams will have.
        let input = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 10)?;
        let output = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 10)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(Self {
            input: input.into(),
            output: output.into(),
            frames: Frames::default(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Says something.
    pub fn tell<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        write_message(&mut self.output, message)
    }

    /// Sends a piece of a file.
    pub fn data(&mut self, data: &[u8]) -> io::Result<()> {
        write_data(&mut self.output, data)
    }

    /// Passes on what the command wrote.
    pub fn output(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        write_output(&mut self.output, stream, data)
    }

    /// Sends bytes that are frames already.
    pub fn raw(&mut self, frames: &[u8]) -> io::Result<()> {
        self.output.write_all(frames)
    }

    /// The next frame that is here already.
    pub fn frame_at_hand(&mut self) -> io::Result<Option<Frame>> {
        self.frames.next_frame().map_err(io::Error::other)
    }

    /// Reads once; the end of the stream is an error, and ours.
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

    /// The next frame, waited for.
    pub fn next_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.frame_at_hand()? {
                return Ok(frame);
            }
            self.read_more()?;
        }
    }

    /// The next message, waited for; data that nobody reads any more is dropped.
    pub fn next_message(&mut self) -> io::Result<ToRunner> {
        loop {
            if let Frame::Message(bytes) = self.next_frame()? {
                return Frames::decode(&bytes).map_err(io::Error::other);
            }
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}
