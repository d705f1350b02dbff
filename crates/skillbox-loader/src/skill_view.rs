//! What a session knows about a skill without opening it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillbox_model::SkillName;

use crate::derived::Derived;
use crate::one_line::{Flatness, Markup};
use crate::policy::{Entry, Grant};
use crate::steering::SkillHooks;

/// A skill as the catalogue described it when the turn began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillView {
    /// The name that tools take.
    pub name: SkillName,
    /// What it does and when to use it, as written.
    pub description: Box<str>,
    /// Path of its SKILL.md, as the catalogue shows it. It is for reading only: files are opened through the
    /// catalogue.
    pub path: Box<str>,
    /// The source it came from, for people.
    pub source: Box<str>,
    /// Whose skill it is.
    pub owner: Owner,
    /// Rank of its source: the list is in order of sources, then of paths.
    pub source_rank: u32,
    /// Where a skill of this name was first seen, if a later source then took the name over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Box<FirstSeen>>,
    /// Licence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<Box<str>>,
    /// What it needs around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<Box<str>>,
    /// Entries of `allowed-tools`; empty where it declares nothing.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub allowed_tools: Box<[Box<str>]>,
    /// Free entries of its author.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<Box<str>, Box<str>>,
    /// What steers how it is invoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Box<SteeringView>>,
    /// What it declares, read.
    #[serde(skip)]
    pub(crate) grants: Derived<Box<[Entry]>>,
    /// What of its texts can stand in a line as it is: every prompt asks, and the answer stays.
    #[serde(skip)]
    pub(crate) flatness: Derived<TextFlatness>,
}

/// What is known about the texts of a skill that stand in lists.
#[derive(Debug)]
pub(crate) struct TextFlatness {
    name: Flatness,
    description: Flatness,
    path: Flatness,
}

/// Frontmatter that steers how a skill is invoked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteeringView {
    /// Only a person may load it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual_only: bool,
    /// Hidden from the commands that people pick from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden_from_users: bool,
    /// What to write as arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<Box<str>>,
    /// The model it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// The context it asks for, such as `fork`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<str>>,
    /// Its hooks, as written.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub hooks: Value,
    /// The same, read.
    #[serde(skip)]
    pub(crate) read_hooks: Derived<SkillHooks>,
}

impl SteeringView {
    /// Its hooks as typed events.
    pub fn hooks(&self) -> &SkillHooks {
        self.read_hooks.get(|| SkillHooks::parse(&self.hooks))
    }
}

/// Whose skill it is; two of the dialects list them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// Built in, or from a home directory.
    User,
    /// From anywhere else.
    Project,
}

/// The place of a skill that another one of the same name has replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstSeen {
    /// Rank of its source.
    pub source_rank: u32,
    /// Path of its SKILL.md.
    pub path: Box<str>,
}

/// A place in the list: a source, and a path below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListPlace<'p> {
    source_rank: u32,
    path: &'p str,
}

impl Ord for ListPlace<'_> {
    /// By source, then by path, component for component.
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

impl PartialOrd for ListPlace<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FirstSeen {
    pub(crate) fn place(&self) -> ListPlace<'_> {
        ListPlace {
            source_rank: self.source_rank,
            path: &self.path,
        }
    }
}

impl SkillView {
    /// A skill of a project that says nothing but what it is for.
    pub fn new(name: SkillName, description: impl Into<Box<str>>, path: impl Into<Box<str>>) -> Self {
        Self {
            name,
            description: description.into(),
            path: path.into(),
            source: Box::default(),
            owner: Owner::Project,
            source_rank: 0,
            first_seen: None,
            license: None,
            compatibility: None,
            allowed_tools: Box::default(),
            metadata: BTreeMap::new(),
            steering: None,
            grants: Derived::default(),
            flatness: Derived::default(),
        }
    }

    /// What it declares. An entry that cannot be read covers nothing.
    pub(crate) fn grant(&self) -> Grant<'_> {
        let read = || {
            self.allowed_tools
                .iter()
                .filter_map(|text| Entry::parse(text))
                .collect()
        };
        Grant {
            is_declared: !self.allowed_tools.is_empty(),
            entries: self.grants.get(read),
        }
    }

    /// Its name as it may stand in one line of a prompt.
    pub(crate) fn name_line(&self, markup: Markup) -> Cow<'_, str> {
        self.flatness().name.line(self.name.as_str(), markup)
    }

    /// Its description as it may stand in one line of a prompt.
    pub(crate) fn description_line(&self, markup: Markup) -> Cow<'_, str> {
        self.flatness().description.line(&self.description, markup)
    }

    /// Its path as it may stand in one line of a prompt.
    pub(crate) fn path_line(&self, markup: Markup) -> Cow<'_, str> {
        self.flatness().path.line(&self.path, markup)
    }

    fn flatness(&self) -> &TextFlatness {
        self.flatness.get(|| TextFlatness {
            name: Flatness::of(self.name.as_str()),
            description: Flatness::of(&self.description),
            path: Flatness::of(&self.path),
        })
    }

    /// The skill's directory, as the catalogue shows it.
    pub fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// The place of this skill itself, by which lists are ordered.
    pub(crate) fn place(&self) -> ListPlace<'_> {
        ListPlace {
            source_rank: self.source_rank,
            path: &self.path,
        }
    }

    /// The place where its name was first seen.
    pub(crate) fn first_place(&self) -> ListPlace<'_> {
        self.first_seen
            .as_ref()
            .map_or_else(|| self.place(), |first| first.place())
    }

    /// Whether only a person may load it.
    pub fn is_manual_only(&self) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.manual_only)
    }

    /// What to write as arguments.
    pub fn argument_hint(&self) -> Option<&str> {
        self.steering
            .as_ref()
            .and_then(|steering| steering.argument_hint.as_deref())
    }
}
