//! Templates: mount namespaces with a finished root, which are built once and copied for every run with the same
//! operations.
//!
//! The [`TemplateOp`]s of a plan depend only on the profile and the host. The spawner applies them for the first run,
//! in a new mount namespace. Each run starts from a copy of that namespace, which takes a twentieth of the time. A
//! template is stale when one of its host paths was replaced; the spawner then builds another one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use super::mount_namespaces::{MountNamespaces, open_own_mount_namespace};
use crate::kernel::mount::MountCloner;
use crate::plan::{Step, TemplateOp, template_steps};
use crate::protocol::StepFailure;
use crate::root::{HOST_BIND_ATTRIBUTES, TemplateRoot};

/// The maximum number of cached templates: enough for a server with several profiles. The least recently used one is
/// removed first.
const CACHE_CAPACITY: usize = 8;

/// The minimum time between two checks whether the host paths of a template were replaced.
const SOURCE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The templates of this spawner, the most recently used one last.
#[derive(Default)]
pub(super) struct Templates {
    list: Vec<Template>,
    built_count: u64,
}

struct Template {
    /// Its number among all templates that this spawner has built.
    number: u64,
    /// The operations that built it.
    ops: Vec<TemplateOp>,
    namespace: OwnedFd,
    sources: Vec<Source>,
    checked_at: Instant,
}

/// A host path that a template binds.
struct Source {
    path: String,
    identity: Option<(u64, u64)>,
}

impl Templates {
    /// The template for these steps, as its mount namespace and its number; none if the run has no root of its own. A
    /// missing or stale template is built, with a new number.
    pub fn get_or_build(
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
                build_template(namespaces, wanted, self.built_count)?
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
        let is_same = namespaces.run_in_host_namespace(|| {
            self.sources
                .iter()
                .all(|source| identity(&source.path) == source.identity)
        });
        self.checked_at = Instant::now();
        !matches!(is_same, Ok(true))
    }
}

/// The device and inode of a path; none if it does not exist.
fn identity(path: &str) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

fn build_template<'a>(
    namespaces: &MountNamespaces,
    steps: impl Iterator<Item = (&'a Step, &'a TemplateOp)> + Clone,
    number: u64,
) -> Result<Template, StepFailure> {
    let outside_steps = |what: &'static str| move |error: io::Error| StepFailure::outside_steps(what, &error);
    let mut sources = Vec::new();
    let opened = namespaces.run_in_host_namespace(|| {
        steps
            .clone()
            .map(|(step, op)| match op {
                TemplateOp::BindHost { path, optional, .. } => {
                    let (mount, identity) = open_source(path, *optional, namespaces.mount_cloner)
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
    let built = namespaces.run_in_new_namespace(|| {
        // Must be opened before the pivot: the new root may have no /proc.
        let namespace = open_own_mount_namespace().map_err(outside_steps("find the mount namespace"))?;
        let mut root = TemplateRoot::new(namespaces.mount_cloner);
        for ((step, op), source) in steps.clone().zip(opened) {
            root.apply(op, source)
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

/// A detached mount of a host path, and the device and inode of the path; none for an optional path that does not
/// exist.
type OpenedSource = (Option<OwnedFd>, Option<(u64, u64)>);

/// Opens a host path as a detached, read-only mount.
fn open_source(path: &str, optional: bool, mount_cloner: MountCloner) -> io::Result<OpenedSource> {
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
    let copy = mount_cloner.clone_tree(source.as_fd(), HOST_BIND_ATTRIBUTES)?;
    Ok((Some(copy), Some((stat.st_dev, stat.st_ino))))
}
