//! The network of one run: accepts on the sockets that the sandbox created, until the run ends.

use std::future::Future;
use std::io;
use std::net::{TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use skillbox_model::NetworkReport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::dns::{self, MAX_QUESTION_BYTES};
use crate::proxy::serve_proxy;
use crate::run_state::RunState;
use crate::serve::serve_accepted;

/// How long connections may continue after the last process of the run has ended, so that what it sent arrives.
const GRACE: Duration = Duration::from_millis(500);

/// How long the end of a run waits for its report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a failed accept, for example because the process has too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The sockets that listen inside a run.
#[derive(Debug)]
pub struct RunSockets {
    /// One for each port of an allowed host.
    pub hosts: Vec<OwnedFd>,
    /// The proxy port.
    pub proxy: OwnedFd,
    /// Questions for names, over UDP.
    pub dns_udp: OwnedFd,
    /// Questions for names, over TCP.
    pub dns_tcp: OwnedFd,
}

/// The network of one run. Dropping the value ends all its connections.
#[derive(Debug)]
pub struct RunNetwork {
    state: Arc<RunState>,
    runtime: Handle,
    accepting: DropGuard,
    open: DropGuard,
}

impl RunNetwork {
    /// Starts to accept. Must be called in the context of the runtime.
    pub(crate) fn start(state: RunState, sockets: RunSockets, runtime: &Handle) -> io::Result<Self> {
        let RunSockets {
            hosts,
            proxy,
            dns_udp,
            dns_tcp,
        } = sockets;
        let hosts = hosts.into_iter().map(listener).collect::<io::Result<Vec<_>>>()?;
        let (proxy, dns_tcp) = (listener(proxy)?, listener(dns_tcp)?);
        let dns_udp = StdUdpSocket::from(dns_udp);
        dns_udp.set_nonblocking(true)?;
        let dns_udp = UdpSocket::from_std(dns_udp)?;

        let state = Arc::new(state);
        let accepting = CancellationToken::new();
        let start = |task: BoxedTask| {
            let accepting = accepting.clone();
            state.spawn(async move {
                accepting.run_until_cancelled_owned(task).await;
            });
        };
        // Both ends of a connection are counted, and those whose host is not known yet.
        let clients = Arc::new(Semaphore::new(state.limits.open_connections.saturating_mul(2)));
        for host in hosts {
            start(Box::pin(accept(
                Arc::clone(&state),
                host,
                Arc::clone(&clients),
                serve_accepted,
            )));
        }
        start(Box::pin(accept(
            Arc::clone(&state),
            proxy,
            Arc::clone(&clients),
            serve_proxy,
        )));
        start(Box::pin(accept(Arc::clone(&state), dns_tcp, clients, answer_over_tcp)));
        start(Box::pin(answer_over_udp(Arc::clone(&state), dns_udp)));
        Ok(Self {
            open: state.cancel_guard(),
            state,
            runtime: runtime.clone(),
            accepting: accepting.drop_guard(),
        })
    }

    /// Ends the network of a run whose processes are dead, and returns what happened on it.
    pub fn finish(self) -> NetworkReport {
        let Self {
            state,
            runtime,
            accepting,
            open,
        } = self;
        drop(accepting);
        let (sender, receiver) = sync_channel(1);
        let finished = Arc::clone(&state);
        runtime.spawn(async move {
            // If nobody waits any more, nobody needs the report.
            let _ = sender.send(finished.finish(GRACE).await);
        });
        let report = receiver.recv_timeout(REPORT_TIMEOUT);
        drop(open);
        report.unwrap_or_else(|_| state.record.report())
    }
}

type BoxedTask = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let socket = StdTcpListener::from(socket);
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Accepts connections, and serves each in a task of its own. Connections above the limit wait in the kernel.
async fn accept<F, T>(state: Arc<RunState>, listener: TcpListener, clients: Arc<Semaphore>, serve: F)
where
    F: Fn(Arc<RunState>, TcpStream) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    while let Ok(permit) = Arc::clone(&clients).acquire_owned().await {
        match listener.accept().await {
            Ok((client, _)) => {
                let served = serve(Arc::clone(&state), client);
                state.spawn(async move {
                    served.await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn answer_over_udp(state: Arc<RunState>, socket: UdpSocket) {
    let mut question = [0; MAX_QUESTION_BYTES + 1];
    loop {
        match socket.recv_from(&mut question).await {
            Ok((length, client)) => {
                if let Some(answer) = answer(&state, &question[..length]) {
                    // A client that is gone needs no answer.
                    let _ = socket.send_to(&answer, client).await;
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn answer_over_tcp(state: Arc<RunState>, mut client: TcpStream) {
    let mut question = [0; MAX_QUESTION_BYTES];
    let answers = async {
        loop {
            let length = usize::from(client.read_u16().await?);
            let question = question
                .get_mut(..length)
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            client.read_exact(question).await?;
            let Some(answer) = answer(&state, question) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            client.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await?;
        }
    };
    // The client sees how the connection ended.
    let _: Result<io::Result<()>, _> = tokio::time::timeout(state.limits.first_bytes, answers).await;
}

fn answer(state: &RunState, question: &[u8]) -> Option<Vec<u8>> {
    let answer = dns::answer(question, &state.allowed, &state.names)?;
    if let Some((name, denial)) = answer.denied {
        state.record.add_denial(&name, None, &denial.to_string());
    }
    Some(answer.bytes)
}
