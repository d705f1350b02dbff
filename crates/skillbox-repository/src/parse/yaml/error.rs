//! Why a text is not a YAML document that can be used.

/// The maximum size of a document. The largest frontmatter of 800 public skills has 2,202 bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The maximum number of values in a document, including those that aliases repeat.
pub(super) const MAX_NODES: usize = 10_000;
/// The maximum nesting depth of collections.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum number of aliases.
pub(super) const MAX_ALIASES: usize = 100;

/// Why a text cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub(in crate::parse) struct YamlError {
    pub offset: usize,
    pub kind: YamlErrorKind,
}

/// The reason for an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::parse) enum YamlErrorKind {
    #[error("{message}")]
    Syntax {
        message: String,
        hint: Option<&'static str>,
    },
    #[error("the tag `{0}` is not supported")]
    UnsupportedTag(String),
    #[error("a second document begins")]
    SecondDocument,
    #[error("an alias is inside the value that it repeats")]
    AliasCycle,
    #[error("more than {MAX_BYTES} bytes")]
    TooManyBytes,
    #[error("more than {MAX_NODES} values")]
    TooManyNodes,
    #[error("more than {MAX_DEPTH} nested collections")]
    TooDeep,
    #[error("more than {MAX_ALIASES} aliases")]
    TooManyAliases,
}

impl YamlErrorKind {
    /// How to fix the error.
    pub(in crate::parse) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Syntax { hint, .. } => *hint,
            Self::UnsupportedTag(_) => Some("remove the tag, or put the value in quotes if it is text"),
            Self::SecondDocument => Some("remove the line of three dots and what follows it"),
            Self::AliasCycle => Some("write the value without the alias"),
            Self::TooManyBytes | Self::TooManyNodes | Self::TooDeep => {
                Some("move data out of the frontmatter into a file")
            }
            Self::TooManyAliases => Some("replace aliases by their values"),
        }
    }

    /// Whether the text exceeds a limit, rather than being invalid.
    pub(in crate::parse) fn exceeds_limit(&self) -> bool {
        matches!(
            self,
            Self::TooManyBytes | Self::TooManyNodes | Self::TooDeep | Self::TooManyAliases
        )
    }
}
