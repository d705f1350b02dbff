//! Splits any bytes into the frames of the runner's protocol. The frames do not depend on how the bytes arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_runner::{Frame, FrameDecoder, ToExecutor, ToRunner};

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, bool) {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, false),
            }
        }
    }
    (frames, true)
}

fuzz_target!(|bytes: &[u8]| {
    let at_once = decode(std::iter::once(bytes));
    assert_eq!(decode(bytes.chunks(3)), at_once);
    for frame in at_once.0 {
        if let Frame::Message(message) = frame {
            let _ = FrameDecoder::decode_message::<ToExecutor>(&message);
            let _ = FrameDecoder::decode_message::<ToRunner>(&message);
        }
    }
});
