//! The cost of a launch with every layer, beside a bare spawn and bubblewrap, interleaved in one run.
//!
//! `cargo run --release -p skillbox-sandbox --example measure -- [ROUNDS] [-- COMMAND…]`
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measuring program starts and prints things"
)]

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use skillbox_sandbox::{Job, LaunchFds, LaunchPlan, Profiles, Spawner, Unconfined, Workspace, plan};

fn main() {
    skillbox_sandbox::become_spawner_if_asked();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds: usize = words.first().and_then(|word| word.parse().ok()).unwrap_or(300);
    let command: Vec<String> = words.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let command = if command.is_empty() {
        ["bash", "-c", "true"].map(str::to_owned).to_vec()
    } else {
        command
    };
    let started = Instant::now();
    let profiles = Profiles::shipped();
    println!("profiles read in {:?}", started.elapsed());
    let started = Instant::now();
    let spawner = Spawner::start(&std::env::current_exe().unwrap()).unwrap();
    let facts = spawner.facts().unwrap();
    println!("spawner ready in {:?}", started.elapsed());
    let profile = profiles.get("default").unwrap();
    let facts = facts.clone().with_paths_of([profile]);
    let limits = &profile.limits.default;
    let job = Job {
        argv: command.iter().map(OsString::from).collect(),
        env: profile.environment(|_| None),
        cwd: "/workspace".to_owned(),
        workspace: Workspace::Tmpfs,
        workspace_target: "/workspace".to_owned(),
        binds: Vec::new(),
        unconfined: Unconfined::Refuse,
    };
    let started = Instant::now();
    let plan = plan(profile, limits, &facts, &job).unwrap();
    println!("planned in {:?}\n{plan}\n", started.elapsed());
    let sandboxed = || one_run(&spawner, &plan);
    let bare = || bare(&command);
    let bwrap = || bwrap(&command);
    let mut contenders: Vec<(&str, Box<dyn Fn()>, Vec<Duration>)> = vec![
        ("bare", Box::new(bare), vec![]),
        ("skillbox", Box::new(sandboxed), vec![]),
        ("bwrap", Box::new(bwrap), vec![]),
    ];
    if let Some(only) = words.iter().find_map(|word| word.strip_prefix("--only=")) {
        contenders.retain(|(name, ..)| *name == only);
    }
    for round in 0..rounds + 20 {
        for (_, run, times) in &mut contenders {
            let started = Instant::now();
            run();
            if round >= 20 {
                times.push(started.elapsed());
            }
        }
    }
    let bare = percentile(&mut contenders[0].2, 50);
    for (name, _, times) in &mut contenders {
        let (p50, p95) = (percentile(times, 50), percentile(times, 95));
        println!(
            "{name:>9}  p50 {p50:>10.1?}  p95 {p95:>10.1?}  {:.2}x bare",
            p50.as_secs_f64() / bare.as_secs_f64()
        );
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[times.len() * percent / 100]
}

fn one_run(spawner: &Spawner, plan: &LaunchPlan) {
    let workspace = spawner
        .create_workspace(skillbox_model::ByteSize::mib(512), 100_000)
        .unwrap();
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let (out_reader, out_writer) = std::io::pipe().unwrap();
    let (err_reader, err_writer) = std::io::pipe().unwrap();
    let fds = LaunchFds {
        workspace: Some(workspace.as_fd()),
        binds: Vec::new(),
        stdin: null.as_fd(),
        stdout: out_writer.as_fd(),
        stderr: err_writer.as_fd(),
    };
    let sandbox = spawner.launch(plan, &fds).unwrap();
    drop((out_writer, err_writer));
    let pidfd = sandbox.pidfd();
    poll(&mut [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)], None).unwrap();
    sandbox.finish().unwrap();
    drop((out_reader, err_reader));
}

fn bare(command: &[String]) {
    Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap();
}

fn bwrap(command: &[String]) {
    let tree = [
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--symlink",
        "usr/sbin",
        "/sbin",
    ];
    let rest = [
        "--ro-bind",
        "/etc/ld.so.cache",
        "/etc/ld.so.cache",
        "--ro-bind",
        "/etc/alternatives",
        "/etc/alternatives",
        "--ro-bind",
        "/etc/ssl/certs",
        "/etc/ssl/certs",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/workspace",
        "--chdir",
        "/workspace",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
    ];
    Command::new("bwrap")
        .args(tree)
        .args(rest)
        .args(command)
        .stdin(Stdio::null())
        .output()
        .unwrap();
}
