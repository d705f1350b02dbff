//! What a SKILL.md says about its skill.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use skillbox_model::SkillName;

/// The fields of a SKILL.md as the catalogue keeps them.
///
/// Catalogues hold tens of thousands of these: texts are boxed without spare capacity, and what few skills
/// have stands behind one pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillMeta {
    /// The name as written, without blanks around it.
    pub name: SkillName,
    /// What the skill does and when to use it: trimmed, not empty, at most 1,024 characters.
    pub description: Box<str>,
    /// Licence name, or the name of a bundled file.
    pub license: Option<Box<str>>,
    /// What the skill needs around it, at most 500 characters.
    pub compatibility: Option<Box<str>>,
    /// The `metadata` mapping in source order and source spelling.
    pub metadata: Vec<(Box<str>, Box<str>)>,
    /// The tools that the skill declares. `None`: it declares nothing. Empty: it declares that it needs none,
    /// or declares something that cannot be understood.
    pub allowed_tools: Option<Vec<Box<str>>>,
    /// Keys that say who may invoke the skill, and how.
    pub steering: Option<Box<Steering>>,
    /// Every other key, verbatim.
    pub extra: Option<Box<Map<String, Value>>>,
}

/// The keys, beyond the specification, that hosts act upon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steering {
    /// `disable-model-invocation`: only a person may start the skill.
    pub disable_model_invocation: Option<bool>,
    /// `user-invocable`: whether the skill is offered to people.
    pub user_invocable: Option<bool>,
    /// `argument-hint`: what to show after the name.
    pub argument_hint: Option<Box<str>>,
    /// `model`: the model that the author had in mind.
    pub model: Option<Box<str>>,
    /// `context`: where the skill wants to run.
    pub context: Option<Box<str>>,
    /// `hooks`: kept as data, never run.
    pub hooks: Option<Value>,
}

impl SkillMeta {
    /// Whether a model may not start the skill by itself.
    pub fn disable_model_invocation(&self) -> bool {
        self.steering
            .as_ref()
            .and_then(|steering| steering.disable_model_invocation)
            .unwrap_or(false)
    }

    /// Whether the skill is offered to people; it is, unless it says otherwise.
    pub fn user_invocable(&self) -> bool {
        self.steering
            .as_ref()
            .and_then(|steering| steering.user_invocable)
            .unwrap_or(true)
    }

    /// What to show after the name.
    pub fn argument_hint(&self) -> Option<&str> {
        self.steering.as_ref()?.argument_hint.as_deref()
    }

    /// The model that the author had in mind.
    pub fn model(&self) -> Option<&str> {
        self.steering.as_ref()?.model.as_deref()
    }

    /// Where the skill wants to run.
    pub fn context(&self) -> Option<&str> {
        self.steering.as_ref()?.context.as_deref()
    }

    /// Hooks as data.
    pub fn hooks(&self) -> Option<&Value> {
        self.steering.as_ref()?.hooks.as_ref()
    }
}

/// A flat object of what is there. Unknown keys stand below `extra`, where they cannot shadow a known one.
impl Serialize for SkillMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("description", &self.description)?;
        entry(&mut object, "license", self.license.as_ref())?;
        entry(&mut object, "compatibility", self.compatibility.as_ref())?;
        entry(&mut object, "allowed_tools", self.allowed_tools.as_ref())?;
        if !self.metadata.is_empty() {
            object.serialize_entry("metadata", &Pairs(&self.metadata))?;
        }
        if let Some(steering) = &self.steering {
            entry(
                &mut object,
                "disable_model_invocation",
                steering.disable_model_invocation.as_ref(),
            )?;
            entry(&mut object, "user_invocable", steering.user_invocable.as_ref())?;
            entry(&mut object, "argument_hint", steering.argument_hint.as_ref())?;
            entry(&mut object, "model", steering.model.as_ref())?;
            entry(&mut object, "context", steering.context.as_ref())?;
            entry(&mut object, "hooks", steering.hooks.as_ref())?;
        }
        entry(&mut object, "extra", self.extra.as_ref())?;
        object.end()
    }
}

fn entry<M: SerializeMap>(object: &mut M, key: &str, value: Option<&impl Serialize>) -> Result<(), M::Error> {
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
    fn json_is_flat_and_omits_what_is_absent() {
        let mut meta = SkillMeta {
            name: SkillName::parse("pdf").unwrap(),
            description: "Reads".into(),
            license: None,
            compatibility: None,
            metadata: vec![("version".into(), "1.0".into())],
            allowed_tools: None,
            steering: None,
            extra: None,
        };
        assert_eq!(
            serde_json::to_string(&meta).unwrap(),
            r#"{"name":"pdf","description":"Reads","metadata":{"version":"1.0"}}"#
        );
        assert!(!meta.disable_model_invocation() && meta.user_invocable());
        meta.allowed_tools = Some(vec!["Bash(git *)".into()]);
        meta.steering = Some(Box::new(Steering {
            user_invocable: Some(false),
            ..Steering::default()
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
