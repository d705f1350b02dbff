//! Splits any text as a shell command line. A word of an accepted command has no character that starts a program.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The modules are private in their crate.
#[path = "../../crates/skillbox-loader/src/policy"]
mod policy {
    pub mod command_line;
    pub mod shell_lexer;
    pub mod shell_refusal;
}

fuzz_target!(|text: &str| {
    let Ok(commands) = policy::command_line::split_commands(text) else { return };
    for command in &commands {
        assert!(!command.words.is_empty() && command.words[0].is_literal);
    }
    if !text.contains(['\'', '"', '\\', '#']) {
        assert!(!text.contains(['`', '(', ')']) && !text.contains("${!"));
    }
});
