//! Roots that are built once, and copied by every run of the same profile.
//!
//! The [`TemplateOp`]s of a plan depend on the profile and the host only. The spawner applies them for the first run, in a
//! mount namespace of its own. Later runs start from a copy of that namespace, which takes a twentieth of the time. When a
//! path of the host is replaced, the template is stale, and the spawner builds another one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use super::mount_namespaces::{MountNamespaces, own_mount_namespace};
use crate::kernel::mount::TreeCloner;
use crate::plan::{Step, TemplateOp, template_steps};
use crate::protocol::StepFailure;
use crate::root::{HOST_BIND_ATTRIBUTES, Skeleton};

/// The number of cached templates: enough for a server with several profiles. The least recently used is removed first.
const CACHE_CAPACITY: usize = 8;

/// The interval between two checks of the host's paths.
const SOURCE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The templates of this spawner, the most recently used one last.
#[derive(Default)]
pub(super) struct Templates {
    list: Vec<Template>,
    built_count: u64,
}

struct Template {
    /// Its number among all templates that were ever built.
    number: u64,
    /// The operations that built it.
    ops: Vec<TemplateOp>,
    namespace: OwnedFd,
    sources: Vec<Source>,
    checked_at: Instant,
}

/// A path of the host that a template binds.
struct Source {
    path: String,
    identity: Option<(u64, u64)>,
}

impl Templates {
    /// The mount namespace that a run with these steps starts from, and its number; none when the run has no root of its
    /// own. A stale template is replaced by one with another number.
    pub fn namespace(
        &mut self,
        namespaces: &MountNamespaces,
        steps: &[Step],
    ) -> Result<Option<(&OwnedFd, u64)>, StepFailure> {
        let wanted = template_steps(steps);
        if wanted.clone().next().is_none() {
            return Ok(None);
        }
        let is_same = |template: &Template| template.ops.iter().eq(wanted.clone().map(|(_, op)| op));
        let cached = self.list.iter().position(is_same).map(|index| self.list.remove(index));
        let fresh = cached.and_then(|mut template| (!template.is_stale(namespaces)).then_some(template));
        let template = match fresh {
            Some(template) => template,
            None => {
                self.built_count += 1;
                build(namespaces, wanted, self.built_count)?
            }
        };
        if self.list.len() == CACHE_CAPACITY {
            self.list.remove(0);
        }
        self.list.push(template);
        Ok(self.list.last().map(|template| (&template.namespace, template.number)))
    }
}

impl Template {
    fn is_stale(&mut self, namespaces: &MountNamespaces) -> bool {
        if self.checked_at.elapsed() < SOURCE_CHECK_INTERVAL {
            return false;
        }
        let is_same = namespaces.with_host(|| {
            self.sources
                .iter()
                .all(|source| identity(&source.path) == source.identity)
        });
        self.checked_at = Instant::now();
        !matches!(is_same, Ok(true))
    }
}

/// Device and inode of a path; none when it does not exist.
fn identity(path: &str) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

fn build<'a>(
    namespaces: &MountNamespaces,
    steps: impl Iterator<Item = (&'a Step, &'a TemplateOp)> + Clone,
    number: u64,
) -> Result<Template, StepFailure> {
    let outside_steps = |what: &'static str| move |error: io::Error| StepFailure::outside_steps(what, &error);
    let mut sources = Vec::new();
    let opened = namespaces.with_host(|| {
        steps
            .clone()
            .map(|(step, op)| match op {
                TemplateOp::BindHost { path, optional, .. } => {
                    let (mount, identity) = open_source(path, *optional, namespaces.tree_cloner)
                        .map_err(|error| StepFailure::of_step(step, "open", &error))?;
                    sources.push(Source {
                        path: path.clone(),
                        identity,
                    });
                    Ok(mount)
                }
                _ => Ok(None),
            })
            .collect::<Result<Vec<Option<OwnedFd>>, StepFailure>>()
    });
    let opened = opened.map_err(outside_steps("enter the host's mounts"))??;
    let built = namespaces.with_new(|| {
        // Before the pivot: afterwards there may be no /proc to open it through.
        let namespace = own_mount_namespace().map_err(outside_steps("find the mount namespace"))?;
        let mut skeleton = Skeleton::new(namespaces.tree_cloner);
        for ((step, op), source) in steps.clone().zip(opened) {
            skeleton
                .apply(op, source)
                .map_err(|error| StepFailure::of_step(step, "build the root", &error))?;
        }
        Ok(namespace)
    });
    let namespace = built.map_err(outside_steps("leave the template"))??;
    Ok(Template {
        number,
        ops: steps.map(|(_, op)| op.clone()).collect(),
        namespace,
        sources,
        checked_at: Instant::now(),
    })
}

/// A copy of a path and the identity of the path; none for an optional path that does not exist.
type OpenedSource = (Option<OwnedFd>, Option<(u64, u64)>);

/// A detached, read-only copy of a path of the host, and the identity of the path.
fn open_source(path: &str, optional: bool, tree_cloner: TreeCloner) -> io::Result<OpenedSource> {
    let source = match openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    ) {
        Err(rustix::io::Errno::NOENT) if optional => return Ok((None, None)),
        source => source?,
    };
    let stat = fstat(&source)?;
    let copy = tree_cloner.clone_tree(source.as_fd(), HOST_BIND_ATTRIBUTES)?;
    Ok((Some(copy), Some((stat.st_dev, stat.st_ino))))
}
