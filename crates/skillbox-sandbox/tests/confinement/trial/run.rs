//! One run of the tests: a workspace, pipes, a launch with a deadline, and what came out.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, mkdirat, openat};
use skillbox_model::{Layer, LayerState};
use skillbox_sandbox::{
    Access, Bind, BindKind, Job, LaunchError, LaunchFds, LaunchPlan, Need, Ownership, PlanError, Profile, Profiles,
    Sandbox, SandboxResult, ScriptEnd, Spawner, Unconfined, WorkspaceSource, plan,
};

/// No test run takes longer.
const DEADLINE: Duration = Duration::from_secs(60);

/// One run of a shell script under a profile.
pub struct Run {
    pub profile: Profile,
    pub job: Job,
    pub stdin: Vec<u8>,
    pub binds: Vec<OwnedFd>,
    pub workspace: Option<OwnedFd>,
}

pub struct Done {
    pub stdout: String,
    pub stderr: String,
    pub ended: SandboxResult,
    pub workspace: Option<OwnedFd>,
    pub took: Duration,
}

impl Run {
    pub fn bash(script: &str) -> Self {
        Self::argv(&["bash", "-c", script])
    }

    pub fn python(script: &str) -> Self {
        Self::argv(&["python3", "-c", script])
    }

    pub fn argv(words: &[&str]) -> Self {
        let run = Self {
            profile: Profiles::shipped().get("default").unwrap().clone(),
            job: Job {
                argv: words.iter().map(OsString::from).collect(),
                env: Vec::new(),
                cwd: "/workspace".to_owned(),
                workspace: WorkspaceSource::Tmpfs,
                workspace_target: "/workspace".to_owned(),
                binds: Vec::new(),
                unconfined: Unconfined::Refuse,
            },
            stdin: Vec::new(),
            binds: Vec::new(),
            workspace: None,
        };
        run.profile("default")
    }

    pub fn profile(mut self, name: &str) -> Self {
        self.profile = Profiles::shipped().get(name).unwrap().clone();
        self.job.env = self.profile.environment(|_| None);
        self
    }

    /// Switches every layer off but these, and the deadline.
    pub fn only(mut self, layers: &[Layer]) -> Self {
        for layer in Layer::ALL {
            let keep = layer == Layer::WallClock || layers.contains(&layer);
            self.profile
                .layers
                .insert(layer, if keep { Need::Required } else { Need::Off });
        }
        self.job.unconfined = Unconfined::Allow;
        self
    }

    /// A run without mounts of its own works in a directory of the host.
    pub fn in_directory(mut self, directory: &Path) -> Self {
        let path = directory.to_str().unwrap().to_owned();
        self.job.cwd.clone_from(&path);
        self.job.workspace_target = path;
        self.job.workspace = WorkspaceSource::Directory {
            quota: LayerState::NotRequested,
        };
        self.workspace = Some(File::open(directory).unwrap().into());
        self
    }

    /// A directory of the host stands where a skill does.
    pub fn with_skill(mut self, directory: &Path) -> Self {
        self.job.binds.push(Bind {
            target: "/workspace/skill".to_owned(),
            kind: BindKind::Directory,
            access: Access::ReadOnly,
            owner: Ownership::Kept,
        });
        self.binds.push(File::open(directory).unwrap().into());
        self
    }

    pub fn plan(&self, spawner: &Spawner) -> Result<LaunchPlan, PlanError> {
        let facts = spawner.facts().unwrap().clone().with_profile_paths([&self.profile]);
        plan(&self.profile, &self.profile.limits.default, &facts, &self.job)
    }

    /// Starts the run and leaves it running, with the reading ends of its output.
    pub fn start(self, spawner: &Spawner) -> Result<Started, LaunchError> {
        let plan = self.plan(spawner).unwrap();
        self.start_by(plan, spawner)
    }

    /// The same by a plan that is not quite what was planned.
    pub fn start_by(self, plan: LaunchPlan, spawner: &Spawner) -> Result<Started, LaunchError> {
        let limits = &self.profile.limits.default;
        let workspace = match self.workspace {
            Some(workspace) => Some(workspace),
            None => Some(new_workspace(spawner, limits.workspace, limits.workspace_inodes)),
        };
        let mounted = plan.to_string().contains("workspace    ");
        let (stdin_reader, mut stdin_writer) = std::io::pipe().unwrap();
        let (stdout, stdout_writer) = std::io::pipe().unwrap();
        let (stderr, stderr_writer) = std::io::pipe().unwrap();
        let sandbox = spawner.launch(
            &plan,
            &LaunchFds {
                workspace: workspace.as_ref().filter(|_| mounted).map(AsFd::as_fd),
                binds: self.binds.iter().map(AsFd::as_fd).collect(),
                stdin: stdin_reader.as_fd(),
                stdout: stdout_writer.as_fd(),
                stderr: stderr_writer.as_fd(),
            },
        )?;
        drop(stdin_reader);
        let input = self.stdin;
        std::thread::spawn(move || stdin_writer.write_all(&input));
        Ok(Started {
            sandbox,
            plan,
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            workspace,
            since: Instant::now(),
        })
    }

    pub fn launch(self, spawner: &Spawner) -> Done {
        self.start(spawner).unwrap().wait()
    }
}

pub struct Started {
    pub sandbox: Sandbox,
    pub plan: LaunchPlan,
    stdout: Box<dyn Read + Send>,
    stderr: Box<dyn Read + Send>,
    workspace: Option<OwnedFd>,
    since: Instant,
}

impl Started {
    /// Waits for the death of everything, kills at the deadline, and collects what was printed.
    pub fn wait(mut self) -> Done {
        let reader = |mut from: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let (stdout, stderr) = (reader(self.stdout), reader(self.stderr));
        if !wait_for(self.sandbox.pidfd(), DEADLINE) {
            self.sandbox.kill().unwrap();
        }
        let ended = self.sandbox.finish(&self.plan).unwrap();
        let took = self.since.elapsed();
        Done {
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
            ended,
            workspace: self.workspace,
            took,
        }
    }
}

/// Whether a descriptor becomes readable in time.
pub fn wait_for(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: patience.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&patience)).unwrap() > 0
}

fn new_workspace(spawner: &Spawner, size: skillbox_model::ByteSize, inodes: u64) -> OwnedFd {
    let workspace = spawner.create_workspace(size, inodes).unwrap();
    for directory in ["tmp", "home", "work", "out"] {
        mkdirat(&workspace, directory, Mode::empty()).unwrap();
        chmodat(&workspace, directory, Mode::from_raw_mode(0o777), AtFlags::empty()).unwrap();
    }
    workspace
}

impl Done {
    /// The output of a run that ended well.
    pub fn ok(&self) -> &str {
        assert_eq!(
            self.ended.end,
            ScriptEnd::Exited(0),
            "stdout {:?}, stderr {:?}",
            self.stdout,
            self.stderr
        );
        self.stdout.trim_end()
    }

    /// A file of the workspace, read after the end.
    pub fn file(&self, path: &str) -> String {
        let file = openat(
            self.workspace.as_ref().unwrap(),
            path,
            OFlags::RDONLY | OFlags::NOFOLLOW,
            Mode::empty(),
        );
        let mut text = String::new();
        File::from(file.unwrap()).read_to_string(&mut text).unwrap();
        text
    }
}
