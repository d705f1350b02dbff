//! Decodes any bytes as each message between server, spawner and sandbox.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| skillbox_sandbox::decode_any_message(bytes));
