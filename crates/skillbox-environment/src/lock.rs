//! What a build installed, and the digest that it is known by.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use skillbox_model::Digest;

/// One installed package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its archive, as its registry states it: `sha256:` for Python, an integrity value for Node.
    pub hash: String,
}

/// The interpreter that packages were installed for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterpreterBuild {
    /// The implementation and the version, such as `cpython 3.11.2` or `node v20.1.0`.
    pub version: String,
    /// Everything else that distinguishes builds: the ABI, the compiler, the libraries.
    pub build: String,
    /// The path inside the sandbox.
    pub path: String,
}

/// The identity of an environment. Two hosts with equal identities have interchangeable environments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The packages of Python, sorted.
    pub python: Vec<LockedPackage>,
    /// The packages of Node, sorted.
    pub node: Vec<LockedPackage>,
    /// The interpreters.
    pub interpreters: Vec<InterpreterBuild>,
    /// The operating system, the processor and the C library.
    pub platform: String,
    /// The installing programs with their versions.
    pub tools: Vec<String>,
    /// The options of the build.
    pub options: Vec<String>,
}

/// The version of the layout of environments. A change makes all digests different.
const LAYOUT_VERSION: u32 = 1;

impl Identity {
    /// Sorts the lists that have no order.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.python.sort();
        self.node.sort();
        self.tools.sort();
        self.options.sort();
        self
    }

    /// The digest of the environment.
    pub fn digest(&self) -> Digest {
        let json = serde_json_canonicalizer::to_vec(&(LAYOUT_VERSION, self)).expect("strings serialize");
        Digest::from_sha256(Sha256::digest(json).into())
    }

    /// Which languages have packages.
    pub fn kind(&self) -> &'static str {
        match (self.python.is_empty(), self.node.is_empty()) {
            (true, false) => "node",
            (false, false) => "python+node",
            (_, true) => "python",
        }
    }

    /// The number of packages.
    pub fn package_count(&self) -> usize {
        self.python.len() + self.node.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_covers_everything_and_no_order() {
        let package = |name: &str, version: &str| LockedPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            hash: "sha256:0".to_owned(),
        };
        let base = Identity {
            python: vec![package("a", "1"), package("b", "1")],
            platform: "linux".to_owned(),
            tools: vec!["pip 23".to_owned()],
            ..Identity::default()
        };
        let reversed = Identity {
            python: vec![package("b", "1"), package("a", "1")],
            ..base.clone()
        };
        let digest = base.clone().sorted().digest();
        assert_eq!(digest, reversed.sorted().digest());
        let others = [
            Identity {
                python: vec![package("a", "1"), package("b", "2")],
                ..base.clone()
            },
            Identity {
                node: vec![package("a", "1")],
                ..base.clone()
            },
            Identity {
                platform: "other".to_owned(),
                ..base.clone()
            },
            Identity {
                tools: vec!["pip 24".to_owned()],
                ..base.clone()
            },
            Identity {
                options: vec!["builds".to_owned()],
                ..base.clone()
            },
            Identity {
                interpreters: vec![InterpreterBuild {
                    version: "3.11".to_owned(),
                    build: String::new(),
                    path: String::new(),
                }],
                ..base
            },
        ];
        for other in others {
            assert_ne!(other.clone().sorted().digest(), digest, "{other:?}");
        }
    }
}
