//! Disclosure through the program: prompts, tools, calls, sessions, policy, budgets, hooks.

mod budget;
mod calls;
mod definitions;
mod hooks;
mod policy;
mod sessions;

use serde_json::Value;

use crate::program::{Ran, World};

/// Three skills: one with documents, one that declares tools, one that does neither.
pub fn library() -> World {
    let world = World::new();
    skill(
        &world,
        "pdf",
        "description: Reads PDFs.\nallowed-tools: Bash(pdftotext:*) Read",
        "# PDF\n\nThe body of pdf.\n",
    );
    world.write("skills/pdf/references/forms.md", "All about forms.\n");
    world.write("skills/pdf/references/fonts.md", "All about fonts.\n");
    world.write("skills/pdf/scripts/extract.py", "print('x')\n");
    skill(
        &world,
        "git",
        "description: Reads history.\nallowed-tools: Bash(git:*)",
        "# Git\n\nThe body of git.\n",
    );
    skill(
        &world,
        "plain",
        "description: Declares nothing.",
        "# Plain\n\nThe body of plain.\n",
    );
    world
}

/// Writes a skill; `fields` are the lines of its frontmatter but the name.
pub fn skill(world: &World, name: &str, fields: &str, body: &str) {
    world.write(
        format!("skills/{name}/SKILL.md"),
        format!("---\nname: {name}\n{fields}\n---\n{body}"),
    );
}

/// A call with arguments and further words.
pub fn call(world: &World, tool: &str, arguments: &Value, words: &str) -> Ran {
    let arguments = arguments.to_string();
    let mut line = vec!["--skills", "skills", "call", tool, &arguments];
    line.extend(words.split_whitespace());
    world.run_words(&line)
}

/// The result of a call that must succeed.
#[track_caller]
pub fn ok(world: &World, tool: &str, arguments: &Value, words: &str) -> Value {
    call(world, tool, arguments, words).expect_code(0).json()
}

/// The error of a call that must be refused.
#[track_caller]
pub fn refused(world: &World, tool: &str, arguments: &Value, words: &str) -> Value {
    let ran = call(world, tool, arguments, words).expect_code(1);
    assert_eq!(ran.stderr, "", "what is refused is told on stdout");
    ran.json()["error"].take()
}

/// The prompt section.
#[track_caller]
pub fn prompt(world: &World, words: &str) -> String {
    world
        .run(&format!("--skills skills prompt {words}"))
        .expect_code(0)
        .stdout
}
