//! The list of the format's reference: XML, each description on one line.

use std::fmt;

use super::bodies::loaded_block;
use super::fit::{EntryStyle, fit};
use super::guidance::omitted_note;
use super::listed::{Listed, listed};
use super::section::PromptInput;
use crate::one_line::xml_line;

pub(crate) fn section(input: &PromptInput<'_>) -> String {
    let mut text = String::new();
    write_list(&mut text, input);
    text.extend(input.bodies.iter().map(|body| format!("\n{}", loaded_block(body))));
    text
}

/// The block of available skills.
pub(crate) fn write_list(text: &mut String, input: &PromptInput<'_>) {
    let skills = listed(input.state, input.agent);
    let style = EntryStyle {
        flatten: xml_line,
        write: &write_entry,
    };
    let note = |omitted| format!("<!-- {} -->\n", omitted_note(input.settings, omitted));
    let fit = fit(
        &skills,
        input.settings.description_budget,
        note(skills.len()).len(),
        &style,
    );
    text.push_str("<available_skills>\n");
    // Writing into a string cannot fail.
    let _ = fit.write(text, &style, |_| true);
    if fit.omitted > 0 {
        input.budget_exceeded(fit.omitted);
        text.push_str(&note(fit.omitted));
    }
    text.push_str("</available_skills>\n");
}

/// The location stays when the description goes: without it the skill could not be opened.
fn write_entry(out: &mut dyn fmt::Write, listed: &Listed<'_>, description: Option<&str>) -> fmt::Result {
    write!(
        out,
        "<skill>\n<name>\n{}\n</name>\n",
        xml_line(listed.skill.name.as_str())
    )?;
    if let Some(description) = description {
        write!(out, "<description>\n{description}\n</description>\n")?;
    }
    write!(
        out,
        "<location>\n{}\n</location>\n</skill>",
        xml_line(&listed.skill.path)
    )
}
