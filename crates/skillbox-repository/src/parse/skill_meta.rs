//! The metadata of a skill.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use skillbox_model::SkillName;

/// The fields of a SKILL.md as the catalog stores them.
///
/// A catalog can hold tens of thousands of these. Texts are therefore boxed without spare capacity, and rarely used
/// fields are behind one pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillMeta {
    /// The name as written, without surrounding blanks.
    pub name: SkillName,
    /// What the skill does and when to use it: trimmed, not empty, at most 1,024 characters.
    pub description: Box<str>,
    /// The name of a license or of a bundled license file.
    pub license: Option<Box<str>>,
    /// The environment that the skill needs, at most 500 characters.
    pub compatibility: Option<Box<str>>,
    /// The `metadata` mapping in source order and source spelling.
    pub metadata: Vec<(Box<str>, Box<str>)>,
    /// The tools that the skill declares. `None`: the field is missing. Empty: the skill declares that it needs no
    /// tools, or the declaration is not understood.
    pub allowed_tools: Option<Vec<Box<str>>>,
    /// Who may invoke the skill, and how.
    pub invocation: Option<Box<InvocationSettings>>,
    /// All other keys, verbatim.
    pub extra: Option<Box<Map<String, Value>>>,
}

/// Keys beyond the specification that control how a host invokes the skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvocationSettings {
    /// `disable-model-invocation`: only a user may invoke the skill.
    pub disable_model_invocation: Option<bool>,
    /// `user-invocable`: whether the skill is offered to users.
    pub user_invocable: Option<bool>,
    /// `argument-hint`: the text to show after the name.
    pub argument_hint: Option<Box<str>>,
    /// `model`: the model for which the skill is written.
    pub model: Option<Box<str>>,
    /// `context`: the context in which the skill should run.
    pub context: Option<Box<str>>,
    /// `hooks`: stored as data; this crate never runs them.
    pub hooks: Option<Value>,
}

impl SkillMeta {
    /// Whether the model must not invoke the skill on its own; false by default.
    pub fn disable_model_invocation(&self) -> bool {
        self.invocation
            .as_ref()
            .and_then(|invocation| invocation.disable_model_invocation)
            .unwrap_or(false)
    }

    /// Whether the skill is offered to users; true by default.
    pub fn user_invocable(&self) -> bool {
        self.invocation
            .as_ref()
            .and_then(|invocation| invocation.user_invocable)
            .unwrap_or(true)
    }

    /// The text to show after the name.
    pub fn argument_hint(&self) -> Option<&str> {
        self.invocation.as_ref()?.argument_hint.as_deref()
    }

    /// The model the skill is written for.
    pub fn model(&self) -> Option<&str> {
        self.invocation.as_ref()?.model.as_deref()
    }

    /// The context the skill should run in.
    pub fn context(&self) -> Option<&str> {
        self.invocation.as_ref()?.context.as_deref()
    }

    /// The agent that should run the skill in a context of its own.
    pub fn agent(&self) -> Option<&str> {
        self.extra.as_ref()?.get("agent")?.as_str()
    }

    /// The hooks, as data.
    pub fn hooks(&self) -> Option<&Value> {
        self.invocation.as_ref()?.hooks.as_ref()
    }
}

/// Writes a flat object that omits missing fields. Unknown keys are below `extra`, where they cannot shadow known
/// ones.
impl Serialize for SkillMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("description", &self.description)?;
        write_field(&mut object, "license", self.license.as_ref())?;
        write_field(&mut object, "compatibility", self.compatibility.as_ref())?;
        write_field(&mut object, "allowed_tools", self.allowed_tools.as_ref())?;
        if !self.metadata.is_empty() {
            object.serialize_entry("metadata", &Pairs(&self.metadata))?;
        }
        if let Some(invocation) = &self.invocation {
            write_field(
                &mut object,
                "disable_model_invocation",
                invocation.disable_model_invocation.as_ref(),
            )?;
            write_field(&mut object, "user_invocable", invocation.user_invocable.as_ref())?;
            write_field(&mut object, "argument_hint", invocation.argument_hint.as_ref())?;
            write_field(&mut object, "model", invocation.model.as_ref())?;
            write_field(&mut object, "context", invocation.context.as_ref())?;
            write_field(&mut object, "hooks", invocation.hooks.as_ref())?;
        }
        write_field(&mut object, "extra", self.extra.as_ref())?;
        object.end()
    }
}

fn write_field<M: SerializeMap>(object: &mut M, key: &str, value: Option<&impl Serialize>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| object.serialize_entry(key, value))
}

struct Pairs<'a>(&'a [(Box<str>, Box<str>)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_flat_and_omits_missing_fields() {
        let mut meta = SkillMeta {
            name: SkillName::parse("pdf").unwrap(),
            description: "Reads".into(),
            license: None,
            compatibility: None,
            metadata: vec![("version".into(), "1.0".into())],
            allowed_tools: None,
            invocation: None,
            extra: None,
        };
        assert_eq!(
            serde_json::to_string(&meta).unwrap(),
            r#"{"name":"pdf","description":"Reads","metadata":{"version":"1.0"}}"#
        );
        assert!(!meta.disable_model_invocation() && meta.user_invocable());
        meta.allowed_tools = Some(vec!["Bash(git *)".into()]);
        meta.invocation = Some(Box::new(InvocationSettings {
            user_invocable: Some(false),
            ..InvocationSettings::default()
        }));
        meta.extra = serde_json::from_str(r#"{"source":"x"}"#).ok();
        let json = serde_json::to_value(&meta).unwrap();
        assert_eq!(json["allowed_tools"][0], "Bash(git *)");
        assert_eq!(json["user_invocable"], false);
        assert_eq!(json["extra"]["source"], "x");
    }

    #[test]
    fn metadata_is_small_in_memory() {
        assert!(size_of::<SkillMeta>() <= 128, "{}", size_of::<SkillMeta>());
    }
}
