//! The list of the format's reference: XML, each description on one line.

use std::fmt;

use super::bodies::loaded_block;
use super::fit::{EntryStyle, fit};
use super::guidance::omitted_note;
use super::listed::{Listed, listed};
use super::section::PromptInput;
use crate::one_line::Markup;

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
        markup: Markup::Xml,
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
    let skill = listed.skill;
    for part in ["<skill>\n<name>\n", &skill.name_line(Markup::Xml), "\n</name>\n"] {
        out.write_str(part)?;
    }
    if let Some(description) = description {
        for part in ["<description>\n", description, "\n</description>\n"] {
            out.write_str(part)?;
        }
    }
    for part in ["<location>\n", &skill.path_line(Markup::Xml), "\n</location>\n</skill>"] {
        out.write_str(part)?;
    }
    Ok(())
}
