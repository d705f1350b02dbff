//! Every setting there is.
//!
//! `state_dir` below is the flag `--state-dir`, the variable `SKILLBOX_STATE_DIR` and the config key `state_dir`:
//! one line declares all three, its type says how it is read, and its default closes the row. A new setting is a
//! new line; settings that only some commands take are a new group, whose flags those commands flatten.

use std::ffi::OsString;
use std::path::PathBuf;

use skillbox_model::ExecutorKind;

use super::layers::{Declared, Layers, SettingError, Told};
use super::value::SettingValue;

macro_rules! settings {
    (
        $(#[doc = $group_doc:literal])*
        $flags:ident => $settings:ident;
        $( $(#[doc = $doc:literal])+ $name:ident: $kind:ty, $placeholder:literal, default $default:expr; )*
    ) => {
        /// The flags as they were written; [`Self::resolve`] merges them with the other layers.
        #[derive(clap::Args, Clone, Debug, Default)]
        pub struct $flags {
            $(
                $(#[doc = $doc])+
                #[arg(
                    long,
                    global = true,
                    value_name = $placeholder,
                    help_heading = "Settings",
                    action = <$kind as SettingValue>::action(),
                    num_args = <$kind as SettingValue>::words(),
                    default_missing_value = "true",
                    value_parser = clap::value_parser!(OsString),
                )]
                $name: Vec<OsString>,
            )*
        }

        $(#[doc = $group_doc])*
        #[derive(Clone, Debug)]
        pub struct $settings {
            $( $(#[doc = $doc])+ pub $name: $kind, )*
        }

        impl $flags {
            const DECLARED: &'static [Declared] = &[
                $( Declared {
                    key: stringify!($name),
                    placeholder: $placeholder,
                    about: concat!($($doc, " "),+),
                    separator: <$kind as SettingValue>::SEPARATOR,
                }, )*
            ];

            /// Merges the layers, highest first, and says where each value came from.
            pub fn resolve(&self, layers: &Layers) -> Result<($settings, Vec<Told>), SettingError> {
                let mut told = Vec::new();
                let mut declared = Self::DECLARED.iter();
                let settings = $settings {
                    $( $name: {
                        let setting = declared.next().expect("one declaration for each field");
                        layers.pick(setting, &self.$name, &mut told, || $default(layers))?
                    }, )*
                };
                Ok((settings, told))
            }
        }
    };
}

settings! {
    /// Settings that every command takes.
    GlobalFlags => GlobalSettings;

    /// A directory of skills, or one skill's own directory; may be repeated, the last wins
    skills: Vec<PathBuf>, "PATH", default |_: &Layers| Vec::new();

    /// A directory of sandbox profiles
    profiles: Option<PathBuf>, "DIR", default |_: &Layers| None;

    /// Where state is kept between runs
    state_dir: PathBuf, "DIR", default |layers: &Layers| layers.environment().default_state_dir();

    /// Give up discovery after this many directories
    max_directories: usize, "N", default |_: &Layers| 100_000;
}

settings! {
    /// What the host allows runs to do, and what they get where a request says nothing.
    HostFlags => HostSettings;

    /// Where runs take place: local or docker
    executor: ExecutorKind, "KIND", default |_: &Layers| ExecutorKind::Local;

    /// The Docker daemon: unix:///path or tcp://host:port
    docker_host: String, "ADDRESS", default |layers: &Layers| layers.environment().default_docker_host();

    /// The image of runs in containers
    docker_image: String, "IMAGE", default |_: &Layers| DEFAULT_IMAGE.to_owned();

    /// The sandbox profile of runs
    profile: String, "NAME", default |_: &Layers| "default".to_owned();

    /// Only these profiles may be used; may be repeated
    allow_profile: Vec<String>, "NAME", default |_: &Layers| Vec::new();

    /// Allow the profile that isolates nothing
    allow_unconfined: bool, "BOOL", default |_: &Layers| false;

    /// Let host:// inputs come from below this directory; may be repeated
    allow_host: Vec<PathBuf>, "DIR", default |_: &Layers| Vec::new();
}

/// Another version of skillbox is another image.
const DEFAULT_IMAGE: &str = concat!("skillbox-runner:", env!("CARGO_PKG_VERSION"));

impl GlobalFlags {
    /// The flags that may stand more than once.
    pub fn repeatable() -> impl Iterator<Item = String> {
        let listed = Self::DECLARED.iter().filter(|setting| setting.separator.is_some());
        listed.map(Declared::flag)
    }
}

/// Every declaration of every group: what a config file may say.
pub(super) fn all() -> impl Iterator<Item = &'static Declared> {
    GlobalFlags::DECLARED.iter().chain(HostFlags::DECLARED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique() {
        let keys: std::collections::BTreeSet<_> = all().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), all().count());
    }
}
