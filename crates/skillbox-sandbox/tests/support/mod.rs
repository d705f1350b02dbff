//! A small executor for the tests: pipes, a workspace, a launch, and what came out.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use skillbox_sandbox::{Ended, Job, LaunchFds, Profile, Profiles, Spawner, Unconfined, Workspace, plan};

pub fn spawner() -> Spawner {
    Spawner::start(Path::new(env!("CARGO_BIN_EXE_sandbox-test-spawner"))).unwrap()
}

pub struct Run {
    pub profile: Profile,
    pub job: Job,
}

pub struct Done {
    pub stdout: String,
    pub stderr: String,
    pub ended: Ended,
    pub workspace: OwnedFd,
}

impl Run {
    pub fn bash(script: &str) -> Self {
        Self::argv(&["bash", "-c", script])
    }

    pub fn argv(words: &[&str]) -> Self {
        let profile = Profiles::shipped().get("default").unwrap().clone();
        let env = profile.environment(|_| None);
        let job = Job {
            argv: words.iter().map(OsString::from).collect(),
            env,
            cwd: "/workspace".to_owned(),
            workspace: Workspace::Tmpfs,
            workspace_target: "/workspace".to_owned(),
            binds: Vec::new(),
            unconfined: Unconfined::Refuse,
        };
        Self { profile, job }
    }

    pub fn launch(&self, spawner: &Spawner) -> Done {
        let facts = spawner.facts().unwrap().clone().with_paths_of([&self.profile]);
        let limits = &self.profile.limits.default;
        let plan = plan(&self.profile, limits, &facts, &self.job).unwrap();
        let workspace = spawner
            .create_workspace(limits.workspace, limits.workspace_inodes)
            .unwrap();
        for directory in ["tmp", "home", "work", "out"] {
            rustix::fs::mkdirat(&workspace, directory, rustix::fs::Mode::from_raw_mode(0o777)).unwrap();
            rustix::fs::chmodat(
                &workspace,
                directory,
                rustix::fs::Mode::from_raw_mode(0o777),
                rustix::fs::AtFlags::empty(),
            )
            .unwrap();
        }
        let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        let (mut out_reader, out_writer) = std::io::pipe().unwrap();
        let (mut err_reader, err_writer) = std::io::pipe().unwrap();
        let sandbox = spawner
            .launch(
                &plan,
                &LaunchFds {
                    workspace: Some(workspace.as_fd()),
                    binds: Vec::new(),
                    stdin: null.as_fd(),
                    stdout: out_writer.as_fd(),
                    stderr: err_writer.as_fd(),
                },
            )
            .unwrap();
        drop((out_writer, err_writer));
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            err_reader.read_to_string(&mut text).unwrap();
            text
        });
        let mut stdout = String::new();
        out_reader.read_to_string(&mut stdout).unwrap();
        let stderr = errors.join().unwrap();
        let ended = sandbox.finish().unwrap();
        Done {
            stdout,
            stderr,
            ended,
            workspace,
        }
    }
}
