//! `skillbox help settings`: the reference of all settings, for a terminal, for programs, or as a Markdown document.

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, wrap};
use crate::settings::{
    AgentFlags, GlobalFlags, HostFlags, ResolvedSetting, ServeFlags, SettingGroup, TrustFlags, all_groups,
};

const PRECEDENCE: &str = "A flag overrides its environment variable, the variable overrides the config file, and the \
    config file overrides the default.";
const CONFIG_FILE: &str = "The config file is the one named by `--config` or `SKILLBOX_CONFIG`. Without one, \
    `./skillbox.toml` overrides `skillbox/skillbox.toml` in the user's config directory, key by key. Relative paths in a \
    file start at its directory.";
const PROJECT_FILE: &str = "Anyone can write the `./skillbox.toml` of a directory, so it may set only what the last column \
    of the tables allows: any value (`any`), or a value that is at least as strict as the one without the file \
    (`stricter`). If it sets anything else, commands end with the error `untrusted_setting`, until you have read the file \
    and run `skillbox config trust`. A change of the file, or of a profile in the directory that it names, ends the trust; \
    `skillbox config trusted` lists the trusted files, and `skillbox config revoke` removes one.";
const LIST_SEPARATORS: &str =
    "In an environment variable, colons separate the paths of a list, and commas the items of other lists.";
/// The width of prose in the Markdown document.
const MARKDOWN_WIDTH: usize = 120;

/// Environment variables that are not settings.
const OTHER_VARIABLES: &[(&str, &str)] = &[
    ("SKILLBOX_CONFIG", "Path of the config file, as `--config`"),
    (
        "SKILLS_ROOT",
        "List of skill directories, searched after the default ones; ignored if `skills` is set",
    ),
    (
        "XDG_CONFIG_HOME",
        "Where the user's config file is: `$XDG_CONFIG_HOME/skillbox/skillbox.toml`, default `~/.config`",
    ),
    (
        "XDG_STATE_HOME",
        "Where state is stored by default; `~/.local/state` if unset",
    ),
    ("DOCKER_HOST", "Default of `docker_host`"),
    (
        "AWS_*, GOOGLE_*, AZURE_*, HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        "Credentials and proxies for object stores, with their usual meaning",
    ),
    ("NO_COLOR", "Disables colour"),
];

/// One setting of the reference. `value` and `origin` are those of this invocation.
#[derive(Serialize)]
struct ReferenceEntry {
    group: &'static str,
    key: &'static str,
    flag: String,
    variable: String,
    about: &'static str,
    /// What an untrusted `./skillbox.toml` may set.
    project_file: &'static str,
    #[serde(rename = "type")]
    type_name: String,
    default: String,
    value: String,
    origin: String,
    #[serde(skip)]
    value_with_origin: String,
}

/// The tables of secrets, which are not settings: they have no flag and no variable.
const SECRETS_MARKDOWN: &str = "\n## Secrets\n\n\
    Each table `[secrets.NAME]` of the config file is a secret; `skillbox secrets check` reads their sources. A file of the working\n\
    directory may have them only if you trust it. See [network.md](network.md#secrets).\n\n\
    | key | type | default | meaning |\n|---|---|---|---|\n\
    | `from` | text | required | `env:VARIABLE`, `file:/absolute/path` or `command:COMMAND`, read when a run needs the value |\n\
    | `hosts` | list of hosts | required for `header` | The hosts that may receive the value |\n\
    | `skills` | list of names and digests | none | The skills that have the secret without an approval |\n\
    | `inject` | `header`, `env` | `header` | Whether the script holds a placeholder or the value |\n";

/// Prints the reference as text or as JSON.
pub fn run(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let entries = reference_entries(context)?;
    if context.as_json {
        return Ok(terminal.print_json(&entries)?);
    }
    let mut page = terminal.page();
    for text in [PRECEDENCE, CONFIG_FILE, PROJECT_FILE, LIST_SEPARATORS] {
        page.paragraph(0, Tone::Plain, text);
    }
    page.blank_line();
    let config_file: Vec<String> = context
        .layers
        .config_paths()
        .map(|path| path.display().to_string())
        .collect();
    let config_file = if config_file.is_empty() {
        "none".to_owned()
    } else {
        config_file.join(", ")
    };
    page.line(&[Span::new(Tone::Heading, "config file: "), Span::plain(config_file)]);
    for group in all_groups() {
        page.heading(&format!("{}: accepted by {}", group.title, group.accepted_by));
        for entry in entries.iter().filter(|entry| entry.group == group.title) {
            entry.render(&mut page);
        }
    }
    Ok(terminal.print(page)?)
}

/// Prints the reference as a Markdown document, which does not depend on the host.
pub fn print_markdown(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let entries = reference_entries(context)?;
    let paragraph = |text: &str| wrap(text, MARKDOWN_WIDTH).join("\n");
    let precedence = paragraph(&format!(
        "{PRECEDENCE} `skillbox config show` prints the values in force and where each came from."
    ));
    let config_file = paragraph(&format!("{CONFIG_FILE} The format is TOML:"));
    let lists = paragraph(&format!(
        "{LIST_SEPARATORS} A repeatable flag takes one item each time. A boolean flag without a value means `true`."
    ));
    let project_file = paragraph(PROJECT_FILE);
    let mut text = format!(
        "# Configuration\n\n\
         <!-- Generated by `skillbox help settings --markdown`; do not edit. -->\n\n\
         {precedence}\n\n\
         {config_file}\n\n\
         ```toml\n\
         skills = [\"./skills\", \"/srv/skills\"]\n\
         executor = \"local\"\n\
         allow_host = [\"/srv/data\"]\n\
         max_loaded = 5\n\
         ```\n\n\
         {lists}\n\n\
         {project_file}\n"
    );
    for group in all_groups() {
        text.push_str(&group_markdown(group, &entries));
    }
    text.push_str(SECRETS_MARKDOWN);
    text.push_str("\n## Other environment variables\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in OTHER_VARIABLES {
        let name = name.replace(", ", "`, `");
        text.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    Ok(terminal.write_stdout(text.as_bytes())?)
}

fn group_markdown(group: &SettingGroup, entries: &[ReferenceEntry]) -> String {
    let mut text = format!(
        "\n## {}\n\nFlags accepted by {}.\n\n\
         | config key | flag | variable | type | default | meaning | `./skillbox.toml` |\n|---|---|---|---|---|---|---|\n",
        group.title, group.accepted_by
    );
    for entry in entries.iter().filter(|entry| entry.group == group.title) {
        let cells = [
            format!("`{}`", entry.key),
            format!("`{}`", entry.flag),
            format!("`{}`", entry.variable),
            entry.type_name.clone(),
            entry.default.clone(),
            entry.about.to_owned(),
            entry.project_file.to_owned(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// Every setting, in the order of the table.
fn reference_entries(context: &Context<'_>) -> Result<Vec<ReferenceEntry>, Failure> {
    let layers = context.layers;
    let default_layers = layers.with_defaults_only();
    let in_force = [
        context.resolved_settings.to_vec(),
        HostFlags::default().resolve(layers)?.1,
        TrustFlags::default().resolve(layers)?.1,
        AgentFlags::default().resolve(layers)?.1,
        ServeFlags::default().resolve(layers)?.1,
    ];
    let defaults = [
        GlobalFlags::default().resolve(&default_layers)?.1,
        HostFlags::default().resolve(&default_layers)?.1,
        TrustFlags::default().resolve(&default_layers)?.1,
        AgentFlags::default().resolve(&default_layers)?.1,
        ServeFlags::default().resolve(&default_layers)?.1,
    ];
    let mut entries = Vec::new();
    for ((group, in_force), defaults) in all_groups().into_iter().zip(in_force).zip(defaults) {
        for (setting, default) in in_force.iter().zip(&defaults) {
            entries.push(ReferenceEntry::new(group, setting, default));
        }
    }
    Ok(entries)
}

impl ReferenceEntry {
    fn new(group: &SettingGroup, setting: &ResolvedSetting, default: &ResolvedSetting) -> Self {
        let declaration = setting.declaration;
        let default = match declaration.documented_default {
            Some(text) => text.to_owned(),
            None => match default.value.as_str() {
                "(none)" => "none".to_owned(),
                value => format!("`{value}`"),
            },
        };
        Self {
            group: group.title,
            key: declaration.key,
            flag: format!("{} {}", declaration.flag(), declaration.placeholder),
            variable: declaration.variable(),
            about: declaration.description(),
            project_file: declaration.project_file,
            type_name: (declaration.type_name)(),
            default,
            value: setting.value.clone(),
            origin: setting.origin.to_string(),
            value_with_origin: setting.value_with_origin(),
        }
    }

    fn render(&self, page: &mut Page) {
        page.blank_line();
        page.line(&[Span::plain("  "), Span::new(Tone::Name, &self.flag)]);
        page.paragraph(6, Tone::Plain, self.about);
        for (label, text) in [
            ("variable", self.variable.as_str()),
            ("config key", self.key),
            ("default", &self.default),
            ("project", self.project_file),
            ("value", &self.value_with_origin),
        ] {
            page.labelled(6, Span::new(Tone::Dim, label), 18, Tone::Plain, text);
        }
    }
}
