//! 3.12: clients of the Model Context Protocol that create sessions and never use them.

use std::time::Duration;

use crate::harness::wait_until;
use crate::mcp::{McpFixture, McpHttpServer};

#[test]
fn h189_sessions_of_mcp_clients_are_bounded() {
    let fixture = McpFixture::new();
    let server = McpHttpServer::start(&fixture);
    let initialize = || server.status_line("Host: ADDRESS");
    assert!(initialize().contains(" 200 "));
    let refused = (0..1100).find(|_| !initialize().contains(" 200 "));
    // Sessions that were used a moment ago do not make way, so their number is reached.
    let number = refused.expect("a session over the limit is refused");
    assert!((900..1001).contains(&number), "{number}");
    assert!(initialize().contains(" 503 "));
    // Under pressure, idle sessions end.
    wait_until("a session makes way for another", || {
        std::thread::sleep(Duration::from_millis(200));
        initialize().contains(" 200 ")
    });
    server.stop(&fixture);
}
