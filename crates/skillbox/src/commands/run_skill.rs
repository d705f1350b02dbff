//! Finds the skill that `skillbox run` names: by its name, or by the path of its directory.

use std::path::{Path, PathBuf};

use skillbox_model::{ErrorBody, ErrorCode, SkillName};
use skillbox_repository::{Catalog, ResourceKind, Scope, SkillEntry};

use super::run_request::is_path;
use crate::catalog::{find_skill, open_repository_with};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, escape_path};
use crate::sources::NamedSkill;

/// The number of scripts that are shown.
const MAX_SHOWN_SCRIPTS: usize = 10;

/// The directory of the skill that the command line names, if it contains one. A plain name means `./NAME` only with the
/// default sources and if none of them has a skill of that name: an operator who configured sources means those.
pub fn named_skill(skill: Option<&str>, context: &Context<'_>) -> Result<Option<NamedSkill>, Failure> {
    let Some(skill) = skill else { return Ok(None) };
    if is_path(skill) {
        let path = PathBuf::from(skill);
        return if has_skill_md(&path) {
            Ok(Some(NamedSkill::At(path)))
        } else {
            let message = format!(
                "{} is not the directory of a skill: it has no SKILL.md",
                escape_path(&path)
            );
            Err(
                Failure::from_body(ErrorBody::new(ErrorCode::UnknownSkill, message).with_field("skill"))
                    .with_hint("name the directory that contains SKILL.md, or a skill from `skillbox list`"),
            )
        };
    }
    let path = Path::new(".").join(skill);
    let is_candidate = context.settings.skills.is_empty() && SkillName::parse(skill).is_ok() && has_skill_md(&path);
    Ok(is_candidate.then_some(NamedSkill::Otherwise(path)))
}

fn has_skill_md(directory: &Path) -> bool {
    ["SKILL.md", "skill.md"]
        .iter()
        .any(|name| directory.join(name).is_file())
}

/// The skill of the catalog that the command line names.
fn find_named<'c>(catalog: &'c Catalog, skill: &str, named: Option<&NamedSkill>) -> Result<&'c SkillEntry, Failure> {
    let Some(NamedSkill::At(path)) = named else {
        return find_skill(catalog, skill).map_err(|failure| with_path_hint(failure, skill));
    };
    let directory = path.canonicalize().unwrap_or_else(|_| path.clone());
    let is_there = |entry: &&SkillEntry| entry.dir().canonicalize().is_ok_and(|found| found == directory);
    match catalog.skills().find(is_there) {
        Some(entry) => Ok(entry),
        None => {
            let name = directory.file_name().unwrap_or_default().to_string_lossy();
            find_skill(catalog, &name)
        }
    }
}

/// The name of the skill that the request names, where the command line gives something else than a name of the catalog.
pub fn resolve_name(catalog: &Catalog, skill: &str, named: Option<&NamedSkill>) -> Result<Option<String>, Failure> {
    let is_hidden = || catalog.get(skill).is_none() && has_skill_md(&Path::new(".").join(skill));
    if named.is_none() && !is_hidden() {
        return Ok(None);
    }
    Ok(Some(find_named(catalog, skill, named)?.name().to_string()))
}

/// Suggests the skill in the working directory that configured sources hide.
fn with_path_hint(failure: Failure, skill: &str) -> Failure {
    let path = Path::new(".").join(skill);
    if SkillName::parse(skill).is_ok() && has_skill_md(&path) {
        failure.with_hint(format!(
            "to run the skill in this directory, name its path: `skillbox run ./{skill}`"
        ))
    } else {
        failure
    }
}

/// The warning for a skill of a project that replaces a built-in one or one of the user.
pub fn shadow_warning(catalog: &Catalog, name: &str) -> Option<String> {
    let shadowed = catalog.shadowed().iter().rev().find(|shadowed| {
        shadowed.name.as_str() == name && shadowed.by_scope == Scope::Project && shadowed.scope != Scope::Project
    })?;
    let kind = match shadowed.scope {
        Scope::BuiltIn => "the built-in skill of this name",
        _ => "your own skill of this name",
    };
    Some(format!(
        "`{name}` is the skill of this project in {}; it replaces {kind} ({})",
        shadowed.by_path.parent().unwrap_or(&shadowed.by_path).display(),
        shadowed.source
    ))
}

/// The failure of `run NAME` without a command. On a terminal, the scripts of the skill are printed before it.
pub fn report_missing_command(skill: &str, context: &Context<'_>, terminal: &mut Terminal) -> Result<Failure, Failure> {
    let named = named_skill(Some(skill), context)?;
    let catalog = open_repository_with(context, named.as_ref(), terminal).catalog();
    let entry = find_named(&catalog, skill, named.as_ref())?;
    let directory = entry
        .open()
        .map_err(|error| Failure::from_error(ErrorCode::SkillUnreadable, &error))?;
    let scripts: Vec<String> = directory
        .list_resources()
        .resources
        .into_iter()
        .filter(|resource| resource.kind == ResourceKind::Script)
        .map(|resource| resource.path.to_string())
        .collect();
    let example = match scripts.first() {
        Some(script) => format!("skillbox run {skill} --script {script} -- ARGUMENTS"),
        None => format!("skillbox run {skill} -- 'COMMAND'"),
    };
    if !context.as_json {
        let mut page = terminal.page();
        render_usage(entry, skill, &scripts, &example, &mut page);
        terminal.print_message(page)?;
    }
    let body = ErrorBody::new(ErrorCode::InvalidRequest, "no command is given").with_field("command");
    let hint = match scripts.as_slice() {
        [] => format!("the skill has no scripts; put a command after `--`, as in `{example}`"),
        scripts => format!(
            "scripts of the skill: {}; for example `{example}`",
            shown_scripts(scripts).join(", ")
        ),
    };
    Ok(Failure::from_body(body).with_hint(hint))
}

fn shown_scripts(scripts: &[String]) -> &[String] {
    &scripts[..scripts.len().min(MAX_SHOWN_SCRIPTS)]
}

fn render_usage(entry: &SkillEntry, skill: &str, scripts: &[String], example: &str, page: &mut Page) {
    page.line(&[Span::new(Tone::Name, entry.name().as_str())]);
    page.paragraph(2, Tone::Plain, &entry.meta.description);
    if !scripts.is_empty() {
        page.heading("scripts");
        for script in shown_scripts(scripts) {
            page.line(&[Span::plain("  "), Span::plain(script)]);
        }
        if scripts.len() > MAX_SHOWN_SCRIPTS {
            let more = format!("and {} more; see `skillbox info`", scripts.len() - MAX_SHOWN_SCRIPTS);
            page.paragraph(2, Tone::Dim, &more);
        }
    }
    page.heading("examples");
    page.line(&[Span::plain("  "), Span::new(Tone::Hint, example)]);
    page.line(&[
        Span::plain("  "),
        Span::new(Tone::Hint, format!("skillbox run {skill} -- 'ls scripts'")),
    ]);
    page.blank_line();
}
