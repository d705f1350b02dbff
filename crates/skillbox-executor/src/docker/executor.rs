//! Runs one job in its own container: lease, send, supervise, fetch, decide the outcome.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use rustix::io::Errno;
use skillbox_model::{ByteSize, Enforcement, Limits, ProfileName, ResourceUsage, RunEvent, with_causes};
use skillbox_runner::{ContainerFacts, PROTOCOL_VERSION, ToExecutor};
use skillbox_sandbox::{PlanError, Profile, UnconfinedPolicy};

use super::container::{self, RunnerStderr, StartedContainer};
use super::daemon::Daemon;
use super::daemon_findings::{DaemonFindings, ImageFindings};
use super::enforcement::ContainerEvidence;
use super::fetch::{FilesToFetch, fetch};
use super::image::{self, BuildOptions};
use super::pool::Pool;
use super::runner_connection::{ConnectionEvent, RunnerConnection};
use super::send_job::send_job;
use super::skills_root::skills_root_value;
use super::supervise::{SupervisionResult, supervise, wait_for_start, with_runner_stderr};
use super::{DockerError, abandoned, configuration, enforcement};
use crate::job::JobSpec;
use crate::outcome::{RunEvidence, decide_outcome};
use crate::process_identity;
use crate::workspace::{self, Backing, ScratchDirectory, Workspace};
use crate::{CancelToken, EventSink, ExecutionResult, StagedJob};

/// The runner of a container must report that it is ready within this time. Otherwise the image is unusable.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// The daemon must kill and remove a container within this time. The kernel can need a moment for a large process tree.
const CONTAINER_KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long dropping the executor waits for the removal of containers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of the executor.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// The address of the daemon.
    pub host: String,
    /// The image for runs.
    pub image: String,
    /// The number of idle containers; zero for a program that starts only one run.
    pub pool_size: usize,
    /// The parent directory for the host's side of workspaces.
    pub scratch: PathBuf,
    /// Whether profiles without isolation are allowed.
    pub unconfined: UnconfinedPolicy,
    /// Directories of skills, as absolute paths on the daemon's host, that containers see read-only.
    pub skills_roots: Vec<PathBuf>,
}

/// Runs jobs in containers. It connects to the daemon when the first job arrives.
#[derive(Debug)]
pub struct DockerExecutor {
    options: DockerOptions,
    daemon_state: Mutex<Option<Arc<DaemonState>>>,
}

/// A connected daemon with its pool and caches.
#[derive(Debug)]
struct DaemonState {
    daemon: Daemon,
    pool: Pool,
    /// The identity of this process.
    owner: String,
    skills_roots: Vec<PathBuf>,
    /// The id of the image, once it is known.
    image_id: Mutex<Option<String>>,
    /// A cache of create requests, most recent last. Building one for every run would be slow, because it contains the
    /// whole system call filter.
    body_cache: Mutex<Vec<(ProfileName, Limits, Arc<ContainerCreateBody>)>>,
}

/// The number of cached create requests.
const BODY_CACHE_CAPACITY: usize = 16;

impl DockerExecutor {
    /// Creates an executor without connecting.
    pub fn new(options: DockerOptions) -> Self {
        Self {
            options,
            daemon_state: Mutex::default(),
        }
    }

    /// Creates the host's side of an empty workspace.
    pub fn create_workspace(&self) -> Result<Workspace, DockerError> {
        // Connecting first ensures that nothing is staged if there is no daemon.
        self.connect()?;
        let scratch =
            ScratchDirectory::new(&self.options.scratch).map_err(DockerError::io("create a directory for the run"))?;
        let root = scratch
            .open_root()
            .map_err(DockerError::io("open the run's directory"))?;
        Ok(Workspace::new(root, None, Backing::Disk).with_scratch(scratch))
    }

    /// Runs a staged job until its last process has ended and its files are on the host.
    #[expect(clippy::too_many_arguments, reason = "the same parameters as `RunParams`")]
    pub fn run(
        &self,
        spec: &JobSpec,
        profile: &Profile,
        job: &StagedJob,
        workspace: &Workspace,
        files_to_fetch: FilesToFetch<'_>,
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> Result<ExecutionResult, DockerError> {
        if profile.is_unconfined() && self.options.unconfined == UnconfinedPolicy::Refuse {
            return Err(DockerError::Isolation(PlanError::UnconfinedRefused(
                profile.name.clone(),
            )));
        }
        let daemon_state = self.connect()?;
        let explain = |error: DockerError| daemon_state.explain_lost_container(error);
        let started = match self.start(&daemon_state, spec, profile, job, workspace) {
            // The daemon may have been restarted while the container was idle. Nothing has run in it, so a retry is
            // safe.
            Err(DockerError::ContainerLost { .. }) => self.start(&daemon_state, spec, profile, job, workspace),
            started => started,
        };
        let StartedCommand {
            mut lease,
            enforcement,
            exec_error,
        } = started.map_err(explain)?;
        let runner_stderr = lease.runner_stderr();
        let read_stderr = || runner_stderr.text();
        let supervised = supervise(
            &mut lease.connection,
            &spec.limits,
            &job.redactor,
            &spec.stdin,
            cancel,
            events,
            &read_stderr,
        )
        .map_err(explain)?;
        let mut warnings = match supervised.end {
            Some(_) => {
                lease.may_have_processes = false;
                fetch(&mut lease.connection, workspace, files_to_fetch, &spec.limits).map_err(explain)?
            }
            None => {
                lease.kill_container()?;
                vec!["the container did not answer and was killed: its files are lost".to_owned()]
            }
        };
        // Only the runner is left in the container. Its removal happens in the background.
        drop(lease);
        let result = build_result(supervised, exec_error, enforcement, &mut warnings, events);
        events.emit(|| RunEvent::Ended {
            ended_by: result.outcome.ended_by,
        });
        Ok(result)
    }

    /// Leases a container, sends the job, and waits until the command has started.
    fn start(
        &self,
        daemon_state: &Arc<DaemonState>,
        spec: &JobSpec,
        profile: &Profile,
        job: &StagedJob,
        workspace: &Workspace,
    ) -> Result<StartedCommand, DockerError> {
        let mut lease = daemon_state.lease(&self.options, profile, &spec.limits)?;
        let confinement = configuration::confinement(profile, lease.facts.landlock_abi);
        let no_inspection = ContainerInspectResponse::default();
        let inspected = lease
            .container
            .as_ref()
            .map_or(&no_inspection, |container| &container.inspected);
        let enforcement = enforcement::determine_enforcement(
            profile,
            &ContainerEvidence {
                inspected,
                info: daemon_state.daemon.info(),
                facts: &lease.facts,
                confinement: &confinement,
                limits: &spec.limits,
                skills_roots: &self.options.skills_roots,
            },
        )?;
        let runner_stderr = lease.runner_stderr();
        lease.may_have_processes = true;
        let skills_root = skills_root_value(&self.options.skills_roots);
        send_job(&mut lease.connection, spec, job, workspace, confinement, skills_root)?;
        let exec_error = wait_for_start(&mut lease.connection, &|| runner_stderr.text())?;
        Ok(StartedCommand {
            lease,
            enforcement,
            exec_error,
        })
    }

    /// Fills the pool with containers for a profile, before the first run.
    pub fn fill_pool(&self, profile: &Profile) -> Result<(), DockerError> {
        let daemon_state = self.connect()?;
        let image = daemon_state.find_image_id(&self.options.image)?;
        let container_body = daemon_state.container_body(profile, &profile.limits.default, &image);
        daemon_state.pool.fill_with(&daemon_state.daemon, container_body);
        Ok(())
    }

    /// The number of idle containers.
    pub fn idle_containers(&self) -> usize {
        let daemon_state = self.daemon_state.lock().unwrap_or_else(PoisonError::into_inner);
        daemon_state
            .as_ref()
            .map_or(0, |daemon_state| daemon_state.pool.idle_count())
    }

    /// Removes the containers and scratch directories of processes that have ended. Returns the number of containers.
    pub fn remove_abandoned(&self) -> Result<usize, DockerError> {
        workspace::remove_abandoned_scratch_directories(&self.options.scratch);
        let daemon_state = self.connect()?;
        daemon_state
            .daemon
            .send_request("remove abandoned containers", abandoned::remove_abandoned_containers)
    }

    /// Builds the image from the embedded runner. `on_output` receives the lines of the build.
    pub fn build_image(&self, options: &BuildOptions, on_output: &mut dyn FnMut(&str)) -> Result<String, DockerError> {
        image::build_image(&self.connect()?.daemon, options, on_output)
    }

    /// Describes the daemon and the image.
    pub fn describe_daemon(&self) -> Result<DaemonFindings, DockerError> {
        let daemon_state = self.connect()?;
        let id = match daemon_state.find_image_id(&self.options.image) {
            Ok(id) => Some(id),
            Err(DockerError::ImageMissing { .. }) => None,
            Err(error) => return Err(error),
        };
        let image = ImageFindings {
            name: self.options.image.clone(),
            id,
        };
        let daemon = &daemon_state.daemon;
        Ok(DaemonFindings::new(
            daemon.host(),
            daemon.api_version(),
            daemon.info(),
            image,
        ))
    }

    fn connect(&self) -> Result<Arc<DaemonState>, DockerError> {
        let mut state = self.daemon_state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(daemon_state) = &*state {
            return Ok(daemon_state.clone());
        }
        let daemon_state = Arc::new(DaemonState {
            daemon: Daemon::connect(&self.options.host)?,
            pool: Pool::new(self.options.pool_size),
            owner: process_identity::current_process_identity(),
            skills_roots: self.options.skills_roots.clone(),
            image_id: Mutex::default(),
            body_cache: Mutex::default(),
        });
        if self.options.pool_size > 0 {
            let docker = daemon_state.daemon.client();
            daemon_state.daemon.spawn_detached(async move {
                if let Err(error) = abandoned::remove_abandoned_containers(docker).await {
                    tracing::warn!(%error, "cannot search for abandoned containers");
                }
            });
        }
        *state = Some(daemon_state.clone());
        Ok(daemon_state)
    }
}

impl Drop for DockerExecutor {
    fn drop(&mut self) {
        let state = self.daemon_state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(daemon_state) = state.take() {
            daemon_state.pool.shut_down(&daemon_state.daemon);
            daemon_state.daemon.wait_for_background_tasks(SHUTDOWN_TIMEOUT);
        }
    }
}

/// A started command.
struct StartedCommand {
    lease: Lease,
    enforcement: Enforcement,
    /// The errno, if the command could not be executed.
    exec_error: Option<i32>,
}

/// A container for one run. Dropping the lease kills and removes it: at once if processes of the run may be alive, and
/// in the background otherwise.
struct Lease {
    daemon_state: Arc<DaemonState>,
    /// None only while the lease is dropped.
    container: Option<StartedContainer>,
    connection: RunnerConnection,
    facts: ContainerFacts,
    /// Whether a process of the run may be alive: from the request to start it until the runner reports the end of all.
    may_have_processes: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.may_have_processes {
            if let Err(error) = self.kill_container() {
                tracing::error!(error = with_causes(&error), "cannot kill the container of a failed run");
            }
        } else if let Some(container) = self.container.take() {
            self.daemon_state.pool.return_used(&self.daemon_state.daemon, container);
        }
    }
}

impl Lease {
    /// Kills the container, and returns when it has no process left.
    fn kill_container(&mut self) -> Result<(), DockerError> {
        let Some(container) = self.container.take() else {
            return Ok(());
        };
        let id = container.id.clone();
        let daemon = &self.daemon_state.daemon;
        let killed = daemon.send_request_with_timeout(CONTAINER_KILL_TIMEOUT, "kill the container", |docker| {
            container::kill_container(docker, id)
        });
        if killed.is_err() {
            // The pool tries again to remove it, in the background.
            self.daemon_state.pool.return_used(daemon, container);
        }
        killed
    }

    /// The beginning of the runner's standard error.
    fn runner_stderr(&self) -> RunnerStderr {
        self.container
            .as_ref()
            .map(|container| container.runner_stderr.clone())
            .unwrap_or_default()
    }
}

impl DaemonState {
    fn lease(
        self: &Arc<Self>,
        options: &DockerOptions,
        profile: &Profile,
        limits: &Limits,
    ) -> Result<Lease, DockerError> {
        let image = self.find_image_id(&options.image)?;
        let container_body = self.container_body(profile, limits, &image);
        let (container, connection) = match self.pool.take(&self.daemon, &container_body) {
            Some(ready) => ready,
            None => {
                let (docker, cleanup_client) = (self.daemon.client(), self.daemon.client());
                let created = self.daemon.create_or_undo(
                    "create a container",
                    container::create_and_start(docker, ContainerCreateBody::clone(&container_body)),
                    |container| container::remove_container(cleanup_client, container.id),
                );
                let container = created.map_err(|error| self.with_image_name(error, &options.image))?;
                let connection = RunnerConnection::new(
                    container
                        .socket
                        .try_clone()
                        .map_err(DockerError::io("duplicate a descriptor"))?,
                );
                (container, connection)
            }
        };
        let mut lease = Lease {
            daemon_state: self.clone(),
            container: Some(container),
            connection,
            facts: ContainerFacts::default(),
            may_have_processes: false,
        };
        lease.facts = receive_ready_message(&mut lease, &options.image)?;
        Ok(lease)
    }

    /// The request to create a container. Within one process, a profile is identified by its name.
    fn container_body(&self, profile: &Profile, limits: &Limits, image: &str) -> Arc<ContainerCreateBody> {
        // The runner or this process enforces these limits, so they are not part of the request.
        let limits = Limits {
            wall: Duration::ZERO,
            file: ByteSize(0),
            output: ByteSize(0),
            ..limits.clone()
        };
        let mut body_cache = self.body_cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = body_cache.iter().find(|(name, requested, container_body)| {
            *name == profile.name && *requested == limits && container_body.image.as_deref() == Some(image)
        });
        if let Some((.., container_body)) = cached {
            return container_body.clone();
        }
        let container_body = Arc::new(configuration::container_body(
            profile,
            &limits,
            image,
            &self.owner,
            &self.skills_roots,
        ));
        if body_cache.len() >= BODY_CACHE_CAPACITY {
            body_cache.remove(0);
        }
        body_cache.push((profile.name.clone(), limits, container_body.clone()));
        container_body
    }

    /// The id of the image. Containers are created from the id, so that a new image under the same name does not affect
    /// them.
    fn find_image_id(&self, name: &str) -> Result<String, DockerError> {
        let mut cached = self.image_id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = &*cached {
            return Ok(id.clone());
        }
        let requested = name.to_owned();
        let found = self.daemon.send_request("find the image", |docker| async move {
            docker.inspect_image(&requested).await
        });
        let id = found
            .map_err(|error| self.with_image_name(error, name))?
            .id
            .unwrap_or_default();
        *cached = Some(id.clone());
        Ok(id)
    }

    /// Replaces the image id in an error with the image name. If the image is missing, its cached id is cleared.
    fn with_image_name(&self, error: DockerError, name: &str) -> DockerError {
        match error {
            DockerError::ImageMissing { .. } => {
                if let Ok(mut cached) = self.image_id.try_lock() {
                    *cached = None;
                }
                DockerError::ImageMissing { image: name.to_owned() }
            }
            DockerError::ImageUnusable { reason, .. } => DockerError::ImageUnusable {
                image: name.to_owned(),
                reason,
            },
            error => error,
        }
    }

    /// Adds to the error whether the daemon still answers.
    fn explain_lost_container(&self, error: DockerError) -> DockerError {
        let DockerError::ContainerLost { during, cause } = error else {
            return error;
        };
        let answer = self
            .daemon
            .send_request_with_timeout(
                Duration::from_secs(3),
                "answer",
                |docker| async move { docker.ping().await },
            );
        let cause = match answer {
            Ok(_) => format!("{cause}; the daemon answers, so something else ended the container"),
            Err(_) => format!("{cause}; the daemon at {} does not answer", self.daemon.host()),
        };
        DockerError::ContainerLost { during, cause }
    }
}

fn receive_ready_message(lease: &mut Lease, image: &str) -> Result<ContainerFacts, DockerError> {
    let runner_stderr = lease.runner_stderr();
    let unusable = |reason: String| DockerError::ImageUnusable {
        image: image.to_owned(),
        reason,
    };
    match lease.connection.next_event(Instant::now() + READY_TIMEOUT, None) {
        Ok(ConnectionEvent::Message(ToExecutor::Ready(facts))) if facts.protocol == PROTOCOL_VERSION => Ok(*facts),
        Ok(ConnectionEvent::Message(ToExecutor::Ready(facts))) => Err(unusable(format!(
            "its runner has protocol version {}; this program has {PROTOCOL_VERSION}",
            facts.protocol
        ))),
        Ok(ConnectionEvent::Closed) => Err(DockerError::ContainerLost {
            during: "before its runner answered",
            cause: with_runner_stderr("the connection closed", &|| runner_stderr.text()),
        }),
        Ok(ConnectionEvent::Timeout) => Err(unusable("its runner does not answer".to_owned())),
        Ok(_) | Err(DockerError::Protocol(_)) => Err(unusable("its entry point is not the runner".to_owned())),
        Err(error) => Err(error),
    }
}

const EXIT_CODE_NOT_EXECUTABLE: i32 = 126;

fn is_program_missing(errno: i32) -> bool {
    matches!(Errno::from_raw_os_error(errno), Errno::NOENT | Errno::NOTDIR)
}

fn build_result(
    supervised: SupervisionResult,
    exec_error: Option<i32>,
    enforcement: Enforcement,
    warnings: &mut Vec<String>,
    events: &mut EventSink<'_>,
) -> ExecutionResult {
    let end = supervised.end.unwrap_or_default();
    let (outcome, outcome_warnings) = decide_outcome(&RunEvidence {
        kill_reason: supervised.kill_reason,
        // The program exists but cannot be executed: the exit code that a shell gives.
        exit_code: match exec_error.filter(|errno| !is_program_missing(*errno)) {
            Some(_) => Some(EXIT_CODE_NOT_EXECUTABLE),
            None => end.exit_code,
        },
        signal: end.signal,
        memory_limit_hit: end.memory_limit_hit,
        pids_limit_hit: end.pids_limit_hit,
        workspace_full: end.workspace_full,
    });
    warnings.splice(0..0, outcome_warnings);
    if let Some(errno) = exec_error {
        let cause = std::io::Error::from_raw_os_error(errno);
        warnings.push(format!("cannot execute the command: {cause}"));
    }
    ExecutionResult {
        outcome,
        stdout: supervised.stdout.finish(events),
        stderr: supervised.stderr.finish(events),
        duration: supervised.duration,
        usage: ResourceUsage {
            cpu_ms: end.cpu_micros.div_ceil(1000),
            peak_memory_bytes: end.peak_memory,
        },
        enforcement,
        network: None,
        warnings: std::mem::take(warnings),
    }
}
