//! The flag that grants secrets for one invocation.

use std::collections::BTreeSet;

use clap::Args;
use skillbox_model::SecretName;

/// The secrets that the user grants for this invocation.
#[derive(Args, Clone, Debug, Default)]
pub struct SecretArgs {
    /// Let the script use a secret of the configuration, for this invocation; repeatable
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    secret: Vec<SecretName>,
}

impl SecretArgs {
    /// The names.
    pub fn names(&self) -> BTreeSet<SecretName> {
        self.secret.iter().cloned().collect()
    }
}

fn parse_name(text: &str) -> Result<SecretName, String> {
    SecretName::parse(text).map_err(|error| error.to_string())
}
