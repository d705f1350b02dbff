//! One output stream of a command on its way to the report and to the listener.

use skillbox_egress::{RedactStream, Redactor};
use skillbox_model::{OutputBytes, RunEvent, Stream};

use crate::{CapturedOutput, EventSink, OutputCapture};

/// Removes the values of secrets from a stream, captures it, and passes it on as events. The sizes and offsets are those
/// of the redacted stream.
pub(crate) struct OutputStream {
    stream: Stream,
    redact: Option<RedactStream>,
    capture: OutputCapture,
}

impl OutputStream {
    /// A stream of which at most `capacity` bytes are captured.
    pub(crate) fn new(stream: Stream, capacity: usize, redactor: &Redactor) -> Self {
        Self {
            stream,
            redact: (!redactor.is_empty()).then(|| redactor.stream()),
            capture: OutputCapture::new(capacity),
        }
    }

    /// Reads the next chunk.
    pub(crate) fn push(&mut self, chunk: &[u8], events: &mut EventSink<'_>) {
        let Some(redact) = &mut self.redact else {
            return self.pass_on(chunk, events);
        };
        let mut redacted = Vec::with_capacity(chunk.len());
        redact.push(chunk, &mut redacted);
        self.pass_on(&redacted, events);
    }

    /// Ends the stream: passes on what was held back, and returns what was captured.
    pub(crate) fn finish(mut self, events: &mut EventSink<'_>) -> CapturedOutput {
        if let Some(redact) = &mut self.redact {
            let mut rest = Vec::new();
            redact.finish(&mut rest);
            self.pass_on(&rest, events);
        }
        self.capture.finish()
    }

    fn pass_on(&mut self, bytes: &[u8], events: &mut EventSink<'_>) {
        if bytes.is_empty() {
            return;
        }
        let (stream, offset) = (self.stream, self.capture.total_bytes());
        self.capture.push(bytes);
        events.emit(|| RunEvent::Output {
            stream,
            bytes: OutputBytes(bytes.to_vec()),
            offset,
        });
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::{SecretName, SecretValue};

    use super::*;

    #[test]
    fn a_value_across_chunks_reaches_neither_the_capture_nor_the_events() {
        let name = SecretName::parse("TOKEN").unwrap();
        let value = SecretValue::parse("canary-value".to_owned()).unwrap();
        for (redactor, expected) in [
            (Redactor::new([(&name, &value)]).unwrap(), "a [secret TOKEN] b cana"),
            (Redactor::default(), "a canary-value b cana"),
        ] {
            let mut received: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut listener = |event| {
                if let RunEvent::Output { bytes, offset, .. } = event {
                    received.push((offset, bytes.0));
                }
            };
            let mut events = EventSink::with_listener(&mut listener);
            let mut stream = OutputStream::new(Stream::Stdout, 1024, &redactor);
            for chunk in ["a can", "ary-", "", "value", " b cana"] {
                stream.push(chunk.as_bytes(), &mut events);
            }
            assert_eq!(stream.finish(&mut events).text, expected);
            let mut whole = Vec::new();
            for (offset, bytes) in received {
                assert_eq!(offset, whole.len() as u64);
                whole.extend(bytes);
            }
            assert_eq!(whole, expected.as_bytes());
        }
    }
}
