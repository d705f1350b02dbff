//! Plans are pure, so they can be tested for hosts that this machine is not.

use std::collections::BTreeMap;

use skillbox_model::{ErrorCode, Layer, LayerState, Tier};
use skillbox_sandbox::{
    Availability, Bind, BindAccess, BindKind, BindOwner, CgroupFacts, CgroupVersion, CopyMethod, HostFacts, Job,
    LaunchPlan, ListeningPorts, MountApi, Need, Op, PathType, Phase, PlanError, Profile, Profiles, Resource, UidGid,
    UnconfinedPolicy, WorkspaceSource, WritableSkill, plan,
};

/// A name, and what it changes.
type Change<T> = (&'static str, fn(&mut T));

fn missing(reason: &str, fix: &str) -> Availability {
    Availability::Missing {
        reason: reason.to_owned(),
        fix: fix.to_owned(),
    }
}

/// Root on a host with everything.
fn root() -> HostFacts {
    let path = |path: &str, fact: PathType| (path.to_owned(), fact);
    HostFacts {
        kernel: "6.18.0".to_owned(),
        privileged: true,
        script_ids: UidGid {
            uid: 1_900_001_000,
            gid: 1_900_001_000,
        },
        namespaces: Availability::Available,
        proc: Availability::Available,
        mount_api: MountApi::Descriptors,
        landlock_abi: 7,
        seccomp: Availability::Available,
        cgroup: CgroupFacts {
            version: Some(CgroupVersion::V1),
            memory: Availability::Available,
            swap: Availability::Available,
            pids: Availability::Available,
            cpu_quota: Availability::Available,
            cpu_time: Availability::Available,
        },
        hard_limits: BTreeMap::from([(Resource::OpenFiles, 512)]),
        paths: BTreeMap::from([
            path("/usr", PathType::Directory),
            path("/bin", PathType::Link("usr/bin".to_owned())),
            path("/lib", PathType::Directory),
            path("/etc/ld.so.cache", PathType::File),
        ]),
    }
}

/// An ordinary user on a cgroup v1 host with an older kernel.
fn user() -> HostFacts {
    let none = || missing("/sys/fs/cgroup/memory cannot be written to", "run as root");
    HostFacts {
        kernel: "5.15.0".to_owned(),
        privileged: false,
        script_ids: UidGid { uid: 1001, gid: 1001 },
        landlock_abi: 1,
        cgroup: CgroupFacts {
            version: None,
            memory: none(),
            swap: none(),
            pids: none(),
            cpu_quota: none(),
            cpu_time: none(),
        },
        ..root()
    }
}

fn job() -> Job {
    Job {
        argv: vec!["bash".into(), "-c".into(), "echo \"hello\"".into()],
        env: vec![
            ("PATH".into(), "/bin".into()),
            ("A".into(), "first".into()),
            ("A".into(), "last".into()),
        ],
        cwd: "/workspace/skills/demo".to_owned(),
        workspace: WorkspaceSource::Tmpfs,
        workspace_target: "/workspace".to_owned(),
        binds: vec![
            Bind {
                target: "/workspace/skills/demo".to_owned(),
                kind: BindKind::Directory,
                access: BindAccess::ReadOnly,
                owner: BindOwner::Unchanged,
            },
            Bind {
                target: "/workspace/work/inputs/private.csv".to_owned(),
                kind: BindKind::File,
                access: BindAccess::ReadOnly,
                owner: BindOwner::Script,
            },
        ],
        unconfined: UnconfinedPolicy::Refuse,
        writable_skill: None,
        listening_ports: None,
    }
}

fn profile(name: &str) -> Profile {
    Profiles::shipped().get(name).unwrap().clone()
}

fn planned(profile: &Profile, facts: &HostFacts, job: &Job) -> Result<LaunchPlan, PlanError> {
    plan(profile, &profile.limits.default, facts, job)
}

fn listening_ports(port: u16) -> ListeningPorts {
    ListeningPorts {
        hosts: vec![port],
        proxy: 3128,
    }
}

#[test]
fn allowed_hosts_are_ports_that_the_sandbox_listens_on() {
    let with_port = |port| Job {
        listening_ports: Some(listening_ports(port)),
        ..job()
    };
    let plan = planned(&profile("network"), &root(), &with_port(8443))
        .unwrap()
        .to_string();
    for line in [
        "new, with the loopback interface only",
        "ports of allowed hosts: 8443; proxy: 127.0.0.1:3128; names: 127.0.0.53",
        "no TCP except connections to port 53, 3128, 8443",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    let without = planned(&profile("network"), &root(), &job()).unwrap().to_string();
    assert!(without.contains("with no interface up") && without.contains("no TCP;") && !without.contains("listen "));
    for (name, port) in [("default", 443), ("loopback", 443), ("network", 3128), ("network", 53)] {
        let refused = planned(&profile(name), &root(), &with_port(port)).unwrap_err();
        assert!(
            refused.to_string().contains("listening_ports"),
            "{name} {port}: {refused}"
        );
    }
}

#[test]
fn default_as_root() {
    let plan = planned(&profile("default"), &root(), &job()).unwrap();
    insta::assert_snapshot!(plan);
    assert!(plan.steps.iter().zip(1..).all(|(step, number)| step.number == number));
    assert!(plan.steps.is_sorted_by_key(|step| step.phase()));
    let env: Vec<_> = plan.command.env.iter().map(|pair| pair.to_str().unwrap()).collect();
    assert_eq!(env, ["PATH=/bin", "A=last"]);
}

#[test]
fn default_as_an_ordinary_user() {
    let plan = planned(&profile("default"), &user(), &job()).unwrap();
    insta::assert_snapshot!(plan);
    let state = |layer| &plan.enforcement.layers[&layer];
    assert_eq!(plan.enforcement.tier, Tier::T1);
    assert_eq!(*state(Layer::Pids), LayerState::Enforced);
    assert!(matches!(state(Layer::Memory), LayerState::Absent { .. }));
    assert!(matches!(state(Layer::Cpu), LayerState::Partial { .. }));
    assert!(matches!(state(Layer::LandlockFiles), LayerState::Partial { .. }));
    assert!(matches!(state(Layer::LandlockScope), LayerState::Absent { .. }));
}

#[test]
fn loopback_with_version_2_and_a_workspace_on_disk() {
    let mut facts = root();
    facts.cgroup.version = Some(CgroupVersion::V2);
    let mut profile = profile("loopback");
    profile.limits.default.cpu_quota_millis = Some(1500);
    let mut job = job();
    job.workspace = WorkspaceSource::Directory {
        quota: LayerState::Partial {
            reason: "watched".to_owned(),
        },
    };
    job.binds.push(Bind {
        target: "/opt/data".to_owned(),
        kind: BindKind::Directory,
        access: BindAccess::ReadWrite,
        owner: BindOwner::Unchanged,
    });
    let plan = planned(&profile, &facts, &job).unwrap();
    insta::assert_snapshot!(plan);
    assert_eq!(
        plan.enforcement.layers[&Layer::LandlockNetwork],
        LayerState::NotRequested
    );
    assert_eq!(
        plan.enforcement.layers[&Layer::WorkspaceQuota],
        LayerState::Partial {
            reason: "watched".to_owned()
        }
    );
}

#[test]
fn unconfined() {
    let mut job = job();
    job.binds.clear();
    job.cwd = "/srv/work".to_owned();
    job.workspace_target = "/srv/work".to_owned();
    job.workspace = WorkspaceSource::Directory {
        quota: LayerState::NotRequested,
    };
    let refused = planned(&profile("unconfined"), &root(), &job).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ProfileUnknown);
    job.unconfined = UnconfinedPolicy::Allow;
    insta::assert_snapshot!(planned(&profile("unconfined"), &root(), &job).unwrap());
}

#[test]
fn as_data() {
    let mut profile = profile("default");
    profile.filesystem.masked.clear();
    profile.filesystem.files.clear();
    profile.layers.insert(Layer::Seccomp, Need::Off);
    let plan = planned(&profile, &root(), &job()).unwrap();
    insta::assert_json_snapshot!(plan);
    let back: LaunchPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(back, plan);
}

#[test]
fn a_required_layer_that_is_missing_refuses_the_run_with_cause_and_fix() {
    let gaps: [Change<HostFacts>; 7] = [
        ("user_namespace", |facts| {
            facts.namespaces = missing("it is off", "turn it on")
        }),
        ("proc", |facts| facts.proc = missing("it is covered", "uncover it")),
        ("landlock_files", |facts| facts.landlock_abi = 0),
        ("landlock_network", |facts| facts.landlock_abi = 3),
        ("landlock_scope", |facts| facts.landlock_abi = 5),
        ("seccomp", |facts| {
            facts.seccomp = missing("no filters", "another kernel")
        }),
        ("memory", |facts| {
            facts.cgroup.swap = missing("swap is not counted", "swapaccount=1")
        }),
    ];
    for (layer, take_away) in gaps {
        let mut facts = root();
        take_away(&mut facts);
        let error = planned(&profile("strict"), &facts, &job()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::IsolationUnavailable);
        assert!(
            error
                .to_string()
                .starts_with(&format!("profile \"strict\" requires {layer}, which")),
            "{error}"
        );
        assert!(!error.hint().unwrap().is_empty());
    }
}

#[test]
fn a_preferred_layer_that_is_missing_is_reported() {
    let mut facts = root();
    facts.landlock_abi = 0;
    facts.cgroup.memory = missing("not delegated", "delegate");
    let plan = planned(&profile("default"), &facts, &job()).unwrap();
    assert_eq!(plan.enforcement.tier, Tier::T1);
    assert_eq!(
        plan.enforcement.layers[&Layer::Memory],
        LayerState::Absent {
            reason: "not delegated".to_owned()
        }
    );
    let LayerState::Absent { reason } = &plan.enforcement.layers[&Layer::LandlockScope] else {
        panic!()
    };
    assert_eq!(reason, "the kernel 6.18.0 has no Landlock, or it is not enabled");
    assert!(!plan.to_string().contains("landlock"));
}

#[test]
fn tiers_follow_from_what_is_missing() {
    let mut facts = root();
    assert_eq!(facts.tier(), Tier::T0);
    facts.cgroup.pids = missing("no", "no");
    assert_eq!(facts.tier(), Tier::T1);
    facts.proc = missing("no", "no");
    assert_eq!(facts.tier(), Tier::T2);
    facts.namespaces = missing("no", "no");
    assert_eq!(facts.tier(), Tier::T3);
    (facts.landlock_abi, facts.seccomp) = (0, missing("no", "no"));
    assert_eq!(facts.tier(), Tier::T4);
}

#[test]
fn jobs_that_cannot_be_run_are_refused() {
    let wrong: [Change<Job>; 8] = [
        ("argv", |job| job.argv.clear()),
        ("argv", |job| job.argv[1] = "a\0b".into()),
        ("env", |job| job.env.push(("A=B".into(), "c".into()))),
        ("env", |job| job.env.push(("A".into(), "b\0c".into()))),
        ("cwd", |job| job.cwd = "/workspace/../etc".to_owned()),
        ("cwd", |job| job.cwd = "work".to_owned()),
        ("workspace_target", |job| job.workspace_target = "/".to_owned()),
        ("binds", |job| job.binds[0].target = "/workspace//x".to_owned()),
    ];
    for (field, change) in wrong {
        let mut job = job();
        change(&mut job);
        let error = planned(&profile("default"), &root(), &job).unwrap_err();
        assert!(
            matches!(&error, PlanError::InvalidJob { field: named, .. } if *named == field),
            "{field}: {error}"
        );
        assert_eq!(error.code(), ErrorCode::InvalidRequest);
    }
}

#[test]
fn nothing_of_a_run_is_needed_before_its_release() {
    let run = |script: &str| {
        let mut job = job();
        job.argv = vec!["sh".into(), script.into()];
        job.binds.pop();
        job.cwd = "/workspace".to_owned();
        planned(&profile("default"), &root(), &job).unwrap()
    };
    let before = |plan: &LaunchPlan| -> Vec<_> {
        plan.steps
            .iter()
            .filter(|step| step.phase() < Phase::Run)
            .cloned()
            .collect()
    };
    let first = planned(&profile("default"), &root(), &job()).unwrap();
    assert_eq!(
        before(&first),
        before(&run("other")),
        "a child could be prepared before the run is known"
    );
}

/// An entry of the documented order of confinement.
struct DocumentedStep {
    phase: Phase,
    /// The words of the printed plan that the entry is about.
    keywords: Vec<String>,
    /// Whether the reaper of a parked sandbox applies the step too.
    is_for_reaper: bool,
}

/// The numbered list at the top of `src/child/mod.rs`: one part for each phase.
fn documented_order() -> Vec<DocumentedStep> {
    let phases = [Phase::Template, Phase::Spawn, Phase::Prepare, Phase::Run];
    let mut order = Vec::new();
    let mut parts_begun = 0;
    let mut is_in_list = false;
    for line in include_str!("../../src/child/mod.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
    {
        let entry = line.trim_start().split_once(". ");
        let Some((number, text)) = entry.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) else {
            is_in_list &= line.trim().is_empty();
            continue;
        };
        parts_begun += usize::from(!is_in_list);
        is_in_list = true;
        let (keywords, _) = text.split_once(": ").unwrap();
        order.push(DocumentedStep {
            phase: phases[parts_begun - 1],
            keywords: keywords.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
            is_for_reaper: keywords.ends_with('*'),
        });
        assert_eq!(number, order.len().to_string(), "the list is not numbered in order");
    }
    order
}

#[test]
fn a_writable_skill_is_a_mounted_one_with_a_name_that_an_overlay_can_have() {
    let named = |name: &str| WritableSkill::new("/workspace/skills", name);
    let with = |skill| Job {
        writable_skill: skill,
        ..job()
    };
    let plan = planned(&profile("default"), &root(), &with(named("demo")))
        .unwrap()
        .to_string();
    assert!(
        plan.contains("writable     /workspace/skills/demo, by an overlay, or else by a copy"),
        "{plan}"
    );
    let error = planned(&profile("default"), &root(), &with(named("other"))).unwrap_err();
    assert!(error.to_string().contains("/workspace/skills/other"), "{error}");
    for name in ["a:b", "a,b", "a\\b", &"long".repeat(60)] {
        assert_eq!(named(name).unwrap().method, CopyMethod::Copy, "{name}");
    }
    assert_eq!(named(WritableSkill::WORK_DIRECTORY), None);
}

#[test]
fn the_documented_order_is_the_order_of_the_plan() {
    let mut with_version_2 = root();
    with_version_2.cgroup.version = Some(CgroupVersion::V2);
    let mut on_the_host = job();
    on_the_host.binds.clear();
    on_the_host.workspace = WorkspaceSource::Directory {
        quota: LayerState::NotRequested,
    };
    on_the_host.unconfined = UnconfinedPolicy::Allow;
    let mut with_hosts = job();
    with_hosts.listening_ports = Some(listening_ports(443));
    let mut with_writable_skill = job();
    with_writable_skill.writable_skill = WritableSkill::new("/workspace/skills", "demo");
    let plans = [
        planned(&profile("default"), &root(), &job()).unwrap(),
        planned(&profile("loopback"), &with_version_2, &job()).unwrap(),
        planned(&profile("unconfined"), &root(), &on_the_host).unwrap(),
        planned(&profile("network"), &root(), &with_hosts).unwrap(),
        planned(&profile("default"), &root(), &with_writable_skill).unwrap(),
    ];
    let order = documented_order();
    let mut has_step = vec![false; order.len()];
    for plan in &plans {
        let mut current = 0;
        for step in plan.steps.iter() {
            let text = step.op.to_string();
            let keyword = text[..12].trim_end();
            let is_about = |entry: &DocumentedStep| {
                entry.phase == step.phase() && entry.keywords.iter().any(|known| known == keyword)
            };
            let following = order[current..].iter().position(is_about);
            current += following.unwrap_or_else(|| panic!("`{text}` comes after step {} of the list", current + 1));
            has_step[current] = true;
            let is_for_reaper = matches!(step.op, Op::Confine(_));
            assert_eq!(order[current].is_for_reaper, is_for_reaper, "the mark of `{text}`");
        }
    }
    for (entry, has_step) in order.iter().zip(has_step) {
        assert!(has_step, "no plan has a step {:?}", entry.keywords);
    }
}
