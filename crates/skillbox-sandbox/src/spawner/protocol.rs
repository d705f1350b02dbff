//! What server, spawner and child say to each other. Every request carries the socket for its answers.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::host::HostFacts;
use crate::kernel::socket;
use crate::plan::{Command, Namespace, Op, Step};
use crate::spawner::SpawnerOptions;

/// A request to the spawner. The first descriptor of the message is the socket for the answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request<'a> {
    /// Begin: the first request. Answer: `Facts`, what this host gives.
    Begin(SpawnerOptions),
    /// Make an empty filesystem in memory. Answer: `Workspace` with its descriptor.
    CreateWorkspace { bytes: u64, inodes: u64 },
    /// Launch. Further descriptors: stdin, stdout, stderr, the workspace, the binds. Answers: `Launched` with a pidfd,
    /// then the child's own words, then `Reaped`.
    Launch {
        #[serde(borrow)]
        steps: Encoded<'a>,
        command: Cow<'a, Command>,
    },
    /// Make a slot for launches with the same steps. No answer: a launch that finds none makes its own.
    Prepare {
        #[serde(borrow)]
        steps: Encoded<'a>,
    },
    /// Keep so many slots from now on. No answer.
    KeepSlots { limit: u8 },
    /// The same as `Launch` with the plan in a file in memory, for plans that no message holds; it is the second descriptor.
    LaunchFromFile { length: u64 },
}

/// Steps as bytes: whoever has seen the same bytes before need not read them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded<'a>(pub Cow<'a, [u8]>);

impl Encoded<'_> {
    pub fn of(steps: &[Step]) -> io::Result<Encoded<'static>> {
        let bytes = postcard::to_stdvec(steps).map_err(io::Error::other)?;
        Ok(Encoded(Cow::Owned(bytes)))
    }

    pub fn read(&self) -> io::Result<Vec<Step>> {
        decode(&self.0)
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Encoded<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'de [u8]>::deserialize(deserializer)?;
        Ok(Self(Cow::Borrowed(bytes)))
    }
}

/// The part of a plan that spawner and child carry out.
#[derive(Debug)]
pub(crate) struct Orders<'a> {
    pub steps: Cow<'a, [Step]>,
    pub command: Cow<'a, Command>,
}

/// What a sandbox that was made ahead is sent: the steps of its run, in their order, and the command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part<'a> {
    pub steps: Vec<PartStep<'a>>,
    pub command: Cow<'a, Command>,
}

/// One of them. Steps are counted through a whole plan, so the run says the numbers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PartStep<'a> {
    /// The next one of those that the sandbox knows already.
    Known { number: u16 },
    /// One that depends on the run.
    Brought(Cow<'a, Step>),
}

/// Whether the kernel kills everything in the sandbox together with its first process.
pub(crate) fn has_pid_namespace(steps: &[Step]) -> bool {
    steps
        .iter()
        .any(|step| matches!(&step.op, Op::Clone { namespaces, .. } if namespaces.contains(&Namespace::Pid)))
}

/// An answer, from the spawner or from the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Facts(Box<HostFacts>),
    Workspace,
    /// The child exists. Descriptors: its pidfd, and the meters that the mask names.
    Launched {
        pid: i32,
        meters: u8,
        /// Whether the child was there before the run. It then says nothing but what went wrong, and how the command
        /// ended.
        was_parked: bool,
    },
    /// The command runs.
    Started,
    /// A preferred step failed and the launch went on.
    Degraded(StepFailure),
    /// A step failed and the launch is over.
    Failed(StepFailure),
    /// Everything is in place, and the command itself could not be executed.
    NotExecuted {
        errno: i32,
    },
    /// The command ended, with the status as wait(2) encodes it.
    Ended {
        status: i32,
    },
    /// Everything in the sandbox is dead.
    Reaped(Reaped),
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    /// Its number; 0 for what is done before the first.
    pub step: u16,
    /// What was tried, in a few words.
    pub what: String,
    /// The error of the kernel.
    pub errno: i32,
}

/// The last word about a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reaped {
    /// CPU time of everything in the sandbox.
    pub cpu: Duration,
    /// The most memory in use at once.
    pub peak_memory: Option<u64>,
    /// Whether the memory limit killed something.
    pub memory_hit: bool,
    /// Whether the limit of processes refused something.
    pub pids_hit: bool,
}

/// Sends a request with its answer socket and descriptors.
pub(crate) fn ask(
    spawner: BorrowedFd<'_>,
    request: &Request<'_>,
    answers: BorrowedFd<'_>,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = postcard::to_stdvec(request).map_err(io::Error::other)?;
    let mut all = vec![answers];
    let file;
    if bytes.len() > socket::MAX_MESSAGE {
        file = in_memory(&bytes)?;
        all.push(file.as_fd());
        let length = bytes.len() as u64;
        bytes = postcard::to_stdvec(&Request::LaunchFromFile { length }).map_err(io::Error::other)?;
    }
    all.extend_from_slice(descriptors);
    socket::send(spawner, &bytes, &all)
}

/// Reads the bytes of a request that came in a file.
pub(crate) fn from_file(file: &OwnedFd, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64)? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => filled += count,
        }
    }
    Ok(bytes)
}

fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("skillbox-plan", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    Ok(file)
}

/// Reads one message.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends an answer.
pub(crate) fn answer(to: BorrowedFd<'_>, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = postcard::to_stdvec(answer).map_err(io::Error::other)?;
    socket::send(to, &bytes, descriptors)
}

/// Sends an answer to a server that may be gone by now; its sandbox is then ended.
pub(crate) fn tell(to: &OwnedFd, what: &Answer, descriptors: &[BorrowedFd<'_>]) {
    let _: io::Result<()> = answer(to.as_fd(), what, descriptors);
}

/// Waits for an answer; none when everyone who could give one is gone.
pub(crate) fn next_answer(from: BorrowedFd<'_>) -> io::Result<Option<(Answer, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; 16 << 10];
    let received = socket::receive(from, &mut buffer)?.whole()?;
    if received.length == 0 {
        return Ok(None);
    }
    Ok(Some((decode(&buffer[..received.length])?, received.descriptors)))
}
