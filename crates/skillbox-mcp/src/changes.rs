//! Notifies clients when changed skills change the lists of tools, prompts and resources.

use std::sync::mpsc::Receiver;

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use skillbox_repository::CatalogChange;
use tokio::sync::broadcast;

/// Forwards the changes of the catalog to all subscribers until the watch ends.
pub(crate) fn broadcast_changes(changes: Receiver<CatalogChange>) -> broadcast::Sender<()> {
    let (sender, _) = broadcast::channel(16);
    let forwarding = sender.clone();
    std::thread::spawn(move || {
        for change in changes {
            if !change.is_empty() {
                // Fails only without subscribers.
                let _ = forwarding.send(());
            }
        }
    });
    sender
}

/// Waits for the next change; returns false when there are no more.
async fn next_change(changes: &mut broadcast::Receiver<()>) -> bool {
    use broadcast::error::RecvError;
    // Missed changes count as one: the client reads the whole list again anyway.
    !matches!(changes.recv().await, Err(RecvError::Closed))
}

/// Notifies a client that started with `initialize`, until it disconnects.
pub(crate) async fn notify_peer(peer: Peer<RoleServer>, mut changes: broadcast::Receiver<()>) {
    while next_change(&mut changes).await {
        let notified = async {
            peer.notify_tool_list_changed().await?;
            peer.notify_prompt_list_changed().await?;
            peer.notify_resource_list_changed().await
        };
        if notified.await.is_err() {
            return;
        }
    }
}

/// Notifies a client of the lists that it subscribed to.
pub(crate) async fn notify_subscriber(subscription: &SubscriptionContext, mut changes: broadcast::Receiver<()>) {
    let filter = subscription.accepted().clone();
    while next_change(&mut changes).await {
        let sink = subscription.sink();
        let notified = async {
            if filter.tools_list_changed == Some(true) {
                sink.notify_tool_list_changed().await?;
            }
            if filter.prompts_list_changed == Some(true) {
                sink.notify_prompt_list_changed().await?;
            }
            if filter.resources_list_changed == Some(true) {
                sink.notify_resource_list_changed().await?;
            }
            Ok::<_, rmcp::service::SubscriptionSendError>(())
        };
        if notified.await.is_err() {
            return;
        }
    }
}
