//! Tells clients that the lists of tools, prompts and resources have changed with the skills.

use std::sync::mpsc::Receiver;

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use skillbox_repository::CatalogChange;
use tokio::sync::broadcast;

/// Passes the watch's news on to whoever listens, until the watch ends.
pub(crate) fn announce(news: Receiver<CatalogChange>) -> broadcast::Sender<()> {
    let (sender, _) = broadcast::channel(16);
    let announcing = sender.clone();
    std::thread::spawn(move || {
        for change in news {
            if !change.is_empty() {
                // Nobody listens: then nobody needs to know.
                let _unheard = announcing.send(());
            }
        }
    });
    sender
}

/// Waits for the next change; false once there will be none.
async fn next(news: &mut broadcast::Receiver<()>) -> bool {
    use broadcast::error::RecvError;
    // Several changes that were missed are one change to a client that asks for the whole list anyway.
    !matches!(news.recv().await, Err(RecvError::Closed))
}

/// Tells a client that began with `initialize`, for as long as it is there.
pub(crate) async fn tell_peer(peer: Peer<RoleServer>, mut news: broadcast::Receiver<()>) {
    while next(&mut news).await {
        let told = async {
            peer.notify_tool_list_changed().await?;
            peer.notify_prompt_list_changed().await?;
            peer.notify_resource_list_changed().await
        };
        if told.await.is_err() {
            return;
        }
    }
}

/// Tells a client that subscribed, what it subscribed to.
pub(crate) async fn tell_subscriber(subscription: &SubscriptionContext, mut news: broadcast::Receiver<()>) {
    let wants = subscription.accepted().clone();
    while next(&mut news).await {
        let sink = subscription.sink();
        let told = async {
            if wants.tools_list_changed == Some(true) {
                sink.notify_tool_list_changed().await?;
            }
            if wants.prompts_list_changed == Some(true) {
                sink.notify_prompt_list_changed().await?;
            }
            if wants.resources_list_changed == Some(true) {
                sink.notify_resource_list_changed().await?;
            }
            Ok::<_, rmcp::service::SubscriptionSendError>(())
        };
        if told.await.is_err() {
            return;
        }
    }
}
