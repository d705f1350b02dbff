//! The catalog: every usable skill by name, and the difference between two catalogs.

mod change;
mod entries;
mod name_index;
mod nearest_names;

pub use change::CatalogChange;
pub use entries::{Catalog, ShadowedSkill};
pub(crate) use entries::{Replacement, UnloadedSkill};
pub(crate) use name_index::NameIndex;
pub use nearest_names::nearest_names;
