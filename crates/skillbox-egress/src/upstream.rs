//! Decides about a connection, and connects to the addresses that were checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use skillbox_model::Host;
use tokio::net::TcpStream;

use crate::address_class::is_public;
use crate::denial::{Denial, Failure, Refusal, Target};
use crate::metered_stream::{Meter, MeteredStream};
use crate::run_state::RunState;

/// Connects to a host if a rule allows it. The order matters: nothing is asked about a name that is not allowed, and the
/// connection goes to an address that was checked, whatever the name resolves to a moment later.
pub(crate) async fn connect(run: &Arc<RunState>, target: &Target) -> Result<MeteredStream, Refusal> {
    if !run.allowed.allows(&target.host, target.port) {
        return Err(Denial::NotAllowed(target.clone()).into());
    }
    let permit = run.open_connection()?;
    let addresses = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            let resolved = run.resolver.resolve(name, run.limits.resolve).await;
            resolved.map_err(|error| Failure::Unresolved(error.to_string()))?
        }
    };
    check_addresses(run, &addresses, target.port)?;
    let stream = match tokio::time::timeout(run.limits.connect, connect_to_first(&addresses, target.port)).await {
        Ok(connected) => connected.map_err(|error| Failure::NotConnected(error.to_string()))?,
        Err(_) => return Err(Failure::NotConnected("no answer in time".to_owned()).into()),
    };
    Ok(MeteredStream::new(stream, Meter::new(run, target, permit)))
}

/// Refuses a host if any of its addresses may not be used: the others could be changed to it at any time.
fn check_addresses(run: &RunState, addresses: &[IpAddr], port: u16) -> Result<(), Denial> {
    let refused = addresses
        .iter()
        .find(|address| !is_public(**address) && !run.allowed.names_address(**address, port));
    match refused {
        None => Ok(()),
        Some(address) => Err(Denial::AddressNotPublic {
            address: *address,
            port,
        }),
    }
}

async fn connect_to_first(addresses: &[IpAddr], port: u16) -> std::io::Result<TcpStream> {
    let mut last_error = None;
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(*address, port)).await {
            Ok(stream) => {
                // Small requests are not delayed. Without the option the connection only is slower.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| std::io::ErrorKind::NotFound.into()))
}
