//! Reads any text as the source of an input: `data:` URLs and the other references.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_executor::job::InputRef;

fuzz_target!(|text: &str| {
    for text in [text.to_owned(), format!("data:{text}"), format!("workspace://{text}")] {
        match InputRef::parse(&text, "inputs[0].from") {
            Ok(InputRef::Data(data)) => assert!(data.bytes.len() <= 8 << 20),
            Ok(InputRef::Workspace(path)) => {
                assert!(!path.to_string().split('/').any(|part| part == ".." || part.is_empty()));
            }
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
