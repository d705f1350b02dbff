//! What a session knows about a skill without opening it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillbox_model::SkillName;

use crate::cached_field::CachedField;
use crate::hooks::SkillHooks;
use crate::policy::{AllowedTool, DeclaredTools};
use crate::sanitize::{Markup, SanitizeCheck};

/// A skill as the catalog described it when the turn began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillView {
    /// The name that tools accept.
    pub name: SkillName,
    /// What the skill does and when to use it, as its author wrote it.
    pub description: Box<str>,
    /// Path of its SKILL.md, for display only: files are opened through the catalog.
    pub path: Box<str>,
    /// The source it comes from, for display.
    pub source: Box<str>,
    /// The heading under which the `saa` dialect lists it.
    #[serde(rename = "owner")]
    pub group: SkillGroup,
    /// Rank of its source: lists are sorted by source, then by path.
    pub source_rank: u32,
    /// The location of the first skill of this name, if this skill shadows it.
    #[serde(rename = "first_seen", default, skip_serializing_if = "Option::is_none")]
    pub first_shadowed: Option<Box<ShadowedLocation>>,
    /// The licence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<Box<str>>,
    /// What it requires of its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<Box<str>>,
    /// Entries of `allowed-tools`; empty if the skill declares none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub allowed_tools: Box<[Box<str>]>,
    /// The author's own key-value pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<Box<str>, Box<str>>,
    /// Frontmatter that controls how the skill is invoked.
    #[serde(rename = "steering", default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Box<InvocationSettings>>,
    /// `allowed_tools`, parsed.
    #[serde(skip)]
    pub(crate) parsed_allowed_tools: CachedField<Box<[AllowedTool]>>,
    /// Which of its texts need no sanitizing.
    #[serde(skip)]
    pub(crate) sanitize_checks: CachedField<SkillTextChecks>,
}

/// The checks of the texts that lists show.
#[derive(Debug)]
pub(crate) struct SkillTextChecks {
    name: SanitizeCheck,
    description: SanitizeCheck,
    path: SanitizeCheck,
}

/// Frontmatter that controls how a skill is invoked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InvocationSettings {
    /// Only the user may load the skill, not the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual_only: bool,
    /// The skill is not among the commands that a user can pick.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden_from_users: bool,
    /// What to write as arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<Box<str>>,
    /// The model that the skill asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// The context that the skill asks for, such as `fork`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<str>>,
    /// The agent that should run the skill in a context of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<str>>,
    /// Its hooks, as written.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub hooks: Value,
    /// `hooks`, parsed.
    #[serde(skip)]
    pub(crate) parsed_hooks: CachedField<SkillHooks>,
}

impl InvocationSettings {
    /// Its hooks as typed events.
    pub fn hooks(&self) -> &SkillHooks {
        self.parsed_hooks.get_or_compute(|| SkillHooks::parse(&self.hooks))
    }
}

/// The heading under which the `saa` dialect lists a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillGroup {
    /// Built in, or from a home directory.
    User,
    /// From anywhere else.
    Project,
}

/// The location of a skill that a later skill of the same name shadows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowedLocation {
    /// Rank of its source.
    pub source_rank: u32,
    /// Path of its SKILL.md.
    pub path: Box<str>,
}

/// A position in the list of skills: a source, and a path below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListPosition<'p> {
    source_rank: u32,
    path: &'p str,
}

impl Ord for ListPosition<'_> {
    /// By source, then by path, component by component.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_path = || {
            let (a, b) = (self.path.as_bytes(), other.path.as_bytes());
            let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let next = |path: &[u8]| path.get(common).map(|b| if *b == b'/' { 0 } else { *b });
            next(a).cmp(&next(b))
        };
        self.source_rank.cmp(&other.source_rank).then_with(by_path)
    }
}

impl PartialOrd for ListPosition<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ShadowedLocation {
    pub(crate) fn position(&self) -> ListPosition<'_> {
        ListPosition {
            source_rank: self.source_rank,
            path: &self.path,
        }
    }
}

impl SkillView {
    /// Creates a project skill with nothing but a description.
    pub fn new(name: SkillName, description: impl Into<Box<str>>, path: impl Into<Box<str>>) -> Self {
        Self {
            name,
            description: description.into(),
            path: path.into(),
            source: Box::default(),
            group: SkillGroup::Project,
            source_rank: 0,
            first_shadowed: None,
            license: None,
            compatibility: None,
            allowed_tools: Box::default(),
            metadata: BTreeMap::new(),
            invocation: None,
            parsed_allowed_tools: CachedField::default(),
            sanitize_checks: CachedField::default(),
        }
    }

    /// The tools that the skill declares in `allowed-tools`. An entry that does not parse allows nothing.
    pub(crate) fn declared_tools(&self) -> DeclaredTools<'_> {
        let parse = || {
            self.allowed_tools
                .iter()
                .filter_map(|text| AllowedTool::parse(text))
                .collect()
        };
        DeclaredTools {
            declares_any: !self.allowed_tools.is_empty(),
            entries: self.parsed_allowed_tools.get_or_compute(parse),
        }
    }

    /// Its name, safe for one line of a prompt.
    pub(crate) fn name_line(&self, markup: Markup) -> Cow<'_, str> {
        self.sanitize_checks().name.sanitize(self.name.as_str(), markup)
    }

    /// Its description, safe for one line of a prompt.
    pub(crate) fn description_line(&self, markup: Markup) -> Cow<'_, str> {
        self.sanitize_checks().description.sanitize(&self.description, markup)
    }

    /// Its path, safe for one line of a prompt.
    pub(crate) fn path_line(&self, markup: Markup) -> Cow<'_, str> {
        self.sanitize_checks().path.sanitize(&self.path, markup)
    }

    fn sanitize_checks(&self) -> &SkillTextChecks {
        self.sanitize_checks.get_or_compute(|| SkillTextChecks {
            name: SanitizeCheck::new(self.name.as_str()),
            description: SanitizeCheck::new(&self.description),
            path: SanitizeCheck::new(&self.path),
        })
    }

    /// The skill's directory, as the catalog shows it.
    pub fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// The skill's own position.
    fn position(&self) -> ListPosition<'_> {
        ListPosition {
            source_rank: self.source_rank,
            path: &self.path,
        }
    }

    /// The position of the first skill with this name, by which lists are sorted.
    pub(crate) fn first_position(&self) -> ListPosition<'_> {
        self.first_shadowed
            .as_ref()
            .map_or_else(|| self.position(), |first| first.position())
    }

    /// Whether only the user may load it.
    pub fn is_manual_only(&self) -> bool {
        self.invocation
            .as_ref()
            .is_some_and(|invocation| invocation.manual_only)
    }

    /// Whether only the model may load it.
    pub fn is_model_only(&self) -> bool {
        self.invocation
            .as_ref()
            .is_some_and(|invocation| invocation.hidden_from_users)
    }

    /// Whether it asks for a context of its own.
    pub fn is_forked(&self) -> bool {
        let context = self
            .invocation
            .as_ref()
            .and_then(|invocation| invocation.context.as_deref());
        context.is_some_and(|context| context.trim() == "fork")
    }

    /// The model that it asks for.
    pub fn model(&self) -> Option<&str> {
        self.invocation
            .as_ref()
            .and_then(|invocation| invocation.model.as_deref())
    }

    /// What to write as arguments.
    pub fn argument_hint(&self) -> Option<&str> {
        self.invocation
            .as_ref()
            .and_then(|invocation| invocation.argument_hint.as_deref())
    }
}
