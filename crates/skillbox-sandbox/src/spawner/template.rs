//! Roots that are built once and copied by every run of the same profile.
//!
//! The steps of the plan's first phase depend on the profile and the host only. The first run that needs them has
//! them done, in a mount namespace of its own; later ones start from a copy of that namespace, which costs a
//! twentieth. A path of the host that was replaced since makes the template stale, and it is built anew.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use super::birth::failure;
use super::protocol::StepFailure;
use super::stage::{Stage, own_mount_namespace};
use crate::kernel::mount::Copying;
use crate::plan::{Op, Phase, Step};
use crate::root::{OF_HOST, Skeleton};

/// As many as a server with several profiles needs; the least used one makes room.
const KEPT: usize = 8;

/// How long the host's paths are trusted to be the same.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The templates of this spawner, the last used one last.
#[derive(Default)]
pub(super) struct Templates {
    list: Vec<Template>,
    built: u64,
}

struct Template {
    /// Which it is of all that were ever built.
    number: u64,
    /// The steps that it was built by.
    steps: Vec<Op>,
    namespace: OwnedFd,
    sources: Vec<Source>,
    checked: Instant,
}

/// A path of the host that a template shows.
struct Source {
    path: String,
    identity: Option<(u64, u64)>,
}

impl Templates {
    /// The mount namespace that a run with these steps starts from, and its number; none when it has no root of its
    /// own. A template whose sources changed on the host gets a successor, with another number.
    pub fn namespace(&mut self, stage: &Stage, steps: &[Step]) -> Result<Option<(&OwnedFd, u64)>, StepFailure> {
        let wanted = || steps.iter().filter(|step| step.phase == Phase::Template);
        if wanted().next().is_none() {
            return Ok(None);
        }
        let same = |template: &Template| {
            template.steps.len() == wanted().count()
                && template.steps.iter().zip(wanted()).all(|(have, want)| *have == want.op)
        };
        let template = match self.list.iter().position(same) {
            Some(index) => {
                let mut template = self.list.remove(index);
                if template.is_stale(stage) {
                    self.build(stage, wanted())?
                } else {
                    template
                }
            }
            None => self.build(stage, wanted())?,
        };
        if self.list.len() == KEPT {
            self.list.remove(0);
        }
        self.list.push(template);
        Ok(self.list.last().map(|template| (&template.namespace, template.number)))
    }

    fn build<'a>(
        &mut self,
        stage: &Stage,
        steps: impl Iterator<Item = &'a Step> + Clone,
    ) -> Result<Template, StepFailure> {
        self.built += 1;
        build(stage, steps, self.built)
    }
}

impl Template {
    fn is_stale(&mut self, stage: &Stage) -> bool {
        if self.checked.elapsed() < FRESH_FOR {
            return false;
        }
        let same = stage.at_host(|| {
            self.sources
                .iter()
                .all(|source| identity(&source.path) == source.identity)
        });
        self.checked = Instant::now();
        !matches!(same, Ok(true))
    }
}

/// Device and inode of a path; none when there is nothing.
fn identity(path: &str) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

fn build<'a>(
    stage: &Stage,
    steps: impl Iterator<Item = &'a Step> + Clone,
    number: u64,
) -> Result<Template, StepFailure> {
    let plain = |what: &str, error: &io::Error| StepFailure {
        step: 0,
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    };
    let mut sources = Vec::new();
    let opened = stage.at_host(|| {
        steps
            .clone()
            .map(|step| match &step.op {
                Op::BindHost { path, optional, .. } => {
                    let (mount, identity) =
                        open_source(path, *optional, stage.copying).map_err(|error| failure(step, "open", &error))?;
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
    let opened = opened.map_err(|error| plain("enter the host's mounts", &error))??;
    let built = stage.inside_new(|| {
        // Before the pivot: afterwards there may be no /proc to find it by.
        let namespace = own_mount_namespace().map_err(|error| plain("find the mount namespace", &error))?;
        let mut skeleton = Skeleton::new(stage.copying);
        for (step, source) in steps.clone().zip(opened) {
            skeleton
                .apply(&step.op, source)
                .map_err(|error| failure(step, "build the root", &error))?;
        }
        Ok(namespace)
    });
    let namespace = built.map_err(|error| plain("leave the template", &error))??;
    let steps = steps.map(|step| step.op.clone()).collect();
    Ok(Template {
        number,
        steps,
        namespace,
        sources,
        checked: Instant::now(),
    })
}

type Opened = (Option<OwnedFd>, Option<(u64, u64)>);

/// A detached, read-only copy of a path of the host, and what the path was.
fn open_source(path: &str, optional: bool, copying: Copying) -> io::Result<Opened> {
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
    let copy = copying.copy(source.as_fd(), OF_HOST)?;
    Ok((Some(copy), Some((stat.st_dev, stat.st_ino))))
}
