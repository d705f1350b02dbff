//! One job in a container of its own: lease, ship, watch, fetch, decide.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use rustix::io::Errno;
use skillbox_model::{ByteSize, Enforcement, Limits, ProfileName, RunEvent, Usage};
use skillbox_runner::{Facts, PROTOCOL, ToExecutor};
use skillbox_sandbox::{PlanError, Profile, Unconfined};

use super::container::{self, Complaint, Parked};
use super::daemon::Daemon;
use super::enforcement::Evidence as IsolationEvidence;
use super::examine::{DaemonFindings, ImageFindings};
use super::fetch::{Bring, fetch};
use super::image::{self, BuildOptions};
use super::line::{Heard, Line};
use super::pool::Pool;
use super::scratch::Scratch;
use super::supervise::{Watched, supervise, wait_for_start, with_complaint};
use super::{DockerError, configuration, enforcement, owner, scratch, ship, sweep};
use crate::job::JobSpec;
use crate::local::{Evidence, decide};
use crate::workspace::{Backing, Workspace};
use crate::{Cancel, EventSink, Finished, Placement};

/// A container whose runner has not greeted by then has none.
const GREETING: Duration = Duration::from_secs(20);
/// How long the end of this executor waits for containers to be gone.
const FAREWELL: Duration = Duration::from_secs(10);

/// How containers are had.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// The daemon's address.
    pub host: String,
    /// The image of runs.
    pub image: String,
    /// How many containers wait for runs; none for a program that makes one run.
    pub pool: usize,
    /// Where the host's side of workspaces lies while a run lasts.
    pub scratch: PathBuf,
    /// Whether a profile without isolation may be used.
    pub unconfined: Unconfined,
}

/// Runs jobs in containers. The daemon is looked for when the first one comes.
#[derive(Debug)]
pub struct DockerExecutor {
    options: DockerOptions,
    connected: Mutex<Option<Arc<Connected>>>,
}

/// A daemon, and what waits on it.
#[derive(Debug)]
struct Connected {
    daemon: Daemon,
    pool: Pool,
    owner: String,
    image: Mutex<Option<String>>,
    /// What was asked for before: writing it down takes longer than a warm run should.
    bodies: Mutex<Vec<(ProfileName, Limits, Arc<ContainerCreateBody>)>>,
}

/// So many kinds of containers are remembered.
const MAX_BODIES: usize = 16;

impl DockerExecutor {
    /// An executor; nothing is done yet.
    pub fn new(options: DockerOptions) -> Self {
        Self {
            options,
            connected: Mutex::default(),
        }
    }

    /// An empty workspace: the host's side of it.
    pub fn create_workspace(&self) -> Result<Workspace, DockerError> {
        // Whether there is a daemon is asked first: nothing is staged for nobody.
        self.connected()?;
        let scratch = Scratch::new(&self.options.scratch).map_err(DockerError::io("make a directory for the run"))?;
        let root = scratch.root().map_err(DockerError::io("open the run's directory"))?;
        Ok(Workspace::new(root, None, Backing::Disk).with_scratch(scratch))
    }

    /// Runs a staged job until everything of it is dead and its files are here.
    #[expect(clippy::too_many_arguments, reason = "what a run is made of")]
    pub fn run(
        &self,
        spec: &JobSpec,
        profile: &Profile,
        placement: &Placement,
        workspace: &Workspace,
        bring: Bring<'_>,
        cancel: &Cancel,
        events: &mut EventSink<'_>,
    ) -> Result<Finished, DockerError> {
        if profile.is_unconfined() && self.options.unconfined == Unconfined::Refuse {
            return Err(DockerError::Isolation(PlanError::Unconfined(profile.name.clone())));
        }
        let connected = self.connected()?;
        let gone = |error: DockerError| connected.explain(error);
        let started = match self.start(&connected, spec, profile, placement, workspace) {
            // A container that waited may have gone with a daemon that was updated meanwhile. Nothing has run in it.
            Err(DockerError::Lost { .. }) => self.start(&connected, spec, profile, placement, workspace),
            started => started,
        };
        let Started {
            mut lease,
            enforcement,
            exec_error,
        } = started.map_err(gone)?;
        let complaint = lease.complaint();
        let complain = || complaint.text();
        let watched = supervise(&mut lease.line, &spec.limits, &spec.stdin, cancel, events, &complain).map_err(gone)?;
        let mut warnings = match watched.end {
            Some(_) => fetch(&mut lease.line, workspace, bring, &spec.limits).map_err(gone)?,
            None => vec!["the container did not answer and was ended: its files are lost".to_owned()],
        };
        // Nothing lives in it any more but its runner; that it is removed is waited for by nobody.
        drop(lease);
        let finished = finish(watched, exec_error, enforcement, &mut warnings);
        events.emit(|| RunEvent::Ended {
            ended_by: finished.outcome.ended_by,
        });
        Ok(finished)
    }

    /// Has a container take the job over, up to the start of the command.
    fn start(
        &self,
        connected: &Arc<Connected>,
        spec: &JobSpec,
        profile: &Profile,
        placement: &Placement,
        workspace: &Workspace,
    ) -> Result<Started, DockerError> {
        let mut lease = connected.lease(&self.options, profile, &spec.limits)?;
        let confinement = configuration::confinement(profile, lease.facts.landlock_abi);
        let nothing = ContainerInspectResponse::default();
        let inspected = lease.parked.as_ref().map_or(&nothing, |parked| &parked.inspected);
        let enforcement = enforcement::settle(
            profile,
            &IsolationEvidence {
                inspected,
                info: connected.daemon.info(),
                facts: &lease.facts,
                confinement: &confinement,
                limits: &spec.limits,
            },
        )?;
        let complaint = lease.complaint();
        ship::ship(&mut lease.line, spec, placement, workspace, confinement)?;
        let exec_error = wait_for_start(&mut lease.line, &|| complaint.text())?;
        Ok(Started {
            lease,
            enforcement,
            exec_error,
        })
    }

    /// Has containers of a profile ready before the first run asks for one.
    pub fn warm(&self, profile: &Profile) -> Result<(), DockerError> {
        let connected = self.connected()?;
        let image = connected.image(&self.options.image)?;
        let body = connected.body(profile, &profile.limits.default, &image);
        connected.pool.warm(&connected.daemon, body);
        Ok(())
    }

    /// How many containers wait for runs.
    pub fn waiting(&self) -> usize {
        let connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        connected.as_ref().map_or(0, |connected| connected.pool.waiting())
    }

    /// Removes containers whose makers are gone; gives how many there were.
    pub fn sweep(&self) -> Result<usize, DockerError> {
        scratch::sweep(&self.options.scratch);
        let connected = self.connected()?;
        connected.daemon.ask("remove old containers", sweep::sweep)
    }

    /// Builds the image from what is inside this program; `tell` hears the daemon's words.
    pub fn build_image(&self, how: &BuildOptions, tell: &mut dyn FnMut(&str)) -> Result<String, DockerError> {
        image::build(&self.connected()?.daemon, how, tell)
    }

    /// What there is to know about the daemon and the image.
    pub fn examine(&self) -> Result<DaemonFindings, DockerError> {
        let connected = self.connected()?;
        let id = match connected.image(&self.options.image) {
            Ok(id) => Some(id),
            Err(DockerError::ImageMissing { .. }) => None,
            Err(error) => return Err(error),
        };
        let image = ImageFindings {
            name: self.options.image.clone(),
            id,
        };
        let daemon = &connected.daemon;
        Ok(DaemonFindings::of(
            daemon.host(),
            daemon.api_version(),
            daemon.info(),
            image,
        ))
    }

    fn connected(&self) -> Result<Arc<Connected>, DockerError> {
        let mut held = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = &*held {
            return Ok(connected.clone());
        }
        let connected = Arc::new(Connected {
            daemon: Daemon::connect(&self.options.host)?,
            pool: Pool::new(self.options.pool),
            owner: owner::this_process(),
            image: Mutex::default(),
            bodies: Mutex::default(),
        });
        if self.options.pool > 0 {
            let docker = connected.daemon.client();
            connected.daemon.spawn(async move {
                if let Err(error) = sweep::sweep(docker).await {
                    tracing::warn!(%error, "old containers could not be looked for");
                }
            });
        }
        *held = Some(connected.clone());
        Ok(connected)
    }
}

impl Drop for DockerExecutor {
    fn drop(&mut self) {
        let held = self.connected.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = held.take() {
            connected.pool.empty(&connected.daemon);
            connected.daemon.wait_for_chores(FAREWELL);
        }
    }
}

/// A command that runs.
struct Started {
    lease: Lease,
    enforcement: Enforcement,
    /// Why it does not.
    exec_error: Option<i32>,
}

/// A container for one run; dropped, it is ended and removed.
struct Lease {
    connected: Arc<Connected>,
    /// Until it is given back.
    parked: Option<Parked>,
    line: Line,
    facts: Facts,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(parked) = self.parked.take() {
            self.connected.pool.give_back(&self.connected.daemon, parked);
        }
    }
}

impl Lease {
    /// What came on the container's standard error.
    fn complaint(&self) -> Complaint {
        self.parked
            .as_ref()
            .map(|parked| parked.complaint.clone())
            .unwrap_or_default()
    }
}

impl Connected {
    fn lease(
        self: &Arc<Self>,
        options: &DockerOptions,
        profile: &Profile,
        limits: &Limits,
    ) -> Result<Lease, DockerError> {
        let image = self.image(&options.image)?;
        let body = self.body(profile, limits, &image);
        let (parked, line) = match self.pool.take(&self.daemon, &body) {
            Some(ready) => ready,
            None => {
                let (docker, late) = (self.daemon.client(), self.daemon.client());
                let made = self.daemon.make(
                    "make a container",
                    container::make(docker, ContainerCreateBody::clone(&body)),
                    |parked| container::remove(late, parked.id),
                );
                let parked = made.map_err(|error| self.of_image(error, &options.image))?;
                let line = Line::new(
                    parked
                        .socket
                        .try_clone()
                        .map_err(DockerError::io("copy a descriptor"))?,
                );
                (parked, line)
            }
        };
        let mut lease = Lease {
            connected: self.clone(),
            parked: Some(parked),
            line,
            facts: Facts::default(),
        };
        lease.facts = greet(&mut lease, &options.image)?;
        Ok(lease)
    }

    /// What the daemon is asked for; profiles are told apart by their names, as everywhere in one process.
    fn body(&self, profile: &Profile, limits: &Limits, image: &str) -> Arc<ContainerCreateBody> {
        // What the runner and we look after ourselves makes no other container.
        let limits = Limits {
            wall: Duration::ZERO,
            file: ByteSize(0),
            output: ByteSize(0),
            ..limits.clone()
        };
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let known = bodies.iter().find(|(name, asked, body)| {
            *name == profile.name && *asked == limits && body.image.as_deref() == Some(image)
        });
        if let Some((.., body)) = known {
            return body.clone();
        }
        let body = Arc::new(configuration::container(profile, &limits, image, &self.owner));
        if bodies.len() >= MAX_BODIES {
            bodies.remove(0);
        }
        bodies.push((profile.name.clone(), limits, body.clone()));
        body
    }

    /// The image's identity: containers are made from that, whatever its name comes to mean.
    fn image(&self, name: &str) -> Result<String, DockerError> {
        let mut known = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = &*known {
            return Ok(id.clone());
        }
        let asked = name.to_owned();
        let found = self.daemon.ask(
            "find the image",
            |docker| async move { docker.inspect_image(&asked).await },
        );
        let id = found
            .map_err(|error| self.of_image(error, name))?
            .id
            .unwrap_or_default();
        *known = Some(id.clone());
        Ok(id)
    }

    /// An image that is gone is looked for again next time, under the name that the caller knows.
    fn of_image(&self, error: DockerError, name: &str) -> DockerError {
        match error {
            DockerError::ImageMissing { .. } => {
                if let Ok(mut known) = self.image.try_lock() {
                    *known = None;
                }
                DockerError::ImageMissing { image: name.to_owned() }
            }
            DockerError::ImageUnfit { reason, .. } => DockerError::ImageUnfit {
                image: name.to_owned(),
                reason,
            },
            error => error,
        }
    }

    /// Tells a daemon that went away from a container that did.
    fn explain(&self, error: DockerError) -> DockerError {
        let DockerError::Lost { during, cause } = error else {
            return error;
        };
        let answer = self.daemon.ask_within(
            Duration::from_secs(3),
            "answer",
            |docker| async move { docker.ping().await },
        );
        let cause = match answer {
            Ok(_) => format!("{cause}; the daemon is there, so something else ended the container"),
            Err(_) => format!("{cause}; the daemon at {} does not answer", self.daemon.host()),
        };
        DockerError::Lost { during, cause }
    }
}

fn greet(lease: &mut Lease, image: &str) -> Result<Facts, DockerError> {
    let complaint = lease.complaint();
    let unfit = |reason: String| DockerError::ImageUnfit {
        image: image.to_owned(),
        reason,
    };
    match lease.line.hear(Instant::now() + GREETING, None) {
        Ok(Heard::Message(ToExecutor::Hello(facts))) if facts.protocol == PROTOCOL => Ok(*facts),
        Ok(Heard::Message(ToExecutor::Hello(facts))) => Err(unfit(format!(
            "its runner speaks version {}, and this program {PROTOCOL}",
            facts.protocol
        ))),
        Ok(Heard::Closed) => Err(DockerError::Lost {
            during: "before it greeted",
            cause: with_complaint("its line ended", &|| complaint.text()),
        }),
        Ok(Heard::Nothing) => Err(unfit("its runner does not greet".to_owned())),
        Ok(_) | Err(DockerError::Speech(_)) => Err(unfit("what answers is not the runner".to_owned())),
        Err(error) => Err(error),
    }
}

const NOT_EXECUTABLE: i32 = 126;

fn is_missing(errno: i32) -> bool {
    matches!(Errno::from_raw_os_error(errno), Errno::NOENT | Errno::NOTDIR)
}

fn finish(watched: Watched, exec_error: Option<i32>, enforcement: Enforcement, warnings: &mut Vec<String>) -> Finished {
    let end = watched.end.unwrap_or_default();
    let (outcome, told) = decide(&Evidence {
        killed: watched.killed,
        // A program that is there and cannot be executed, as a shell tells it.
        exit_code: match exec_error.filter(|errno| !is_missing(*errno)) {
            Some(_) => Some(NOT_EXECUTABLE),
            None => end.exit_code,
        },
        signal: end.signal,
        memory_hit: end.memory_hit,
        pids_hit: end.pids_hit,
        workspace_full: end.workspace_full,
    });
    warnings.splice(0..0, told);
    if let Some(errno) = exec_error {
        let cause = std::io::Error::from_raw_os_error(errno);
        warnings.push(format!("the command could not be executed: {cause}"));
    }
    Finished {
        outcome,
        stdout: watched.stdout.finish(),
        stderr: watched.stderr.finish(),
        duration: watched.duration,
        usage: Usage {
            cpu_ms: end.cpu_micros.div_ceil(1000),
            peak_memory_bytes: end.peak_memory,
        },
        enforcement,
        warnings: std::mem::take(warnings),
    }
}
