//! What a client talks to: each request is handed to the part that answers it.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    PromptsCapability, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourcesCapability,
    ServerCapabilities, ServerConfig, SubscriptionFilter, TASKS_EXTENSION_ID, ToolsCapability, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use crate::host::{Host, in_background};
use crate::seat::Seat;
use crate::{call, changes, prompts, resources, skills, tools};

/// The server as one client sees it.
#[derive(Clone, Debug)]
pub(crate) struct SkillServer {
    host: Arc<Host>,
    seat: Seat,
}

impl SkillServer {
    /// For the client of one seat.
    pub(crate) fn new(host: Arc<Host>, seat: Seat) -> Self {
        Self { host, seat }
    }

    async fn with_host<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let host = self.host.clone();
        in_background(move || work(&host)).await
    }
}

fn capabilities() -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(true);
    let mut prompts = PromptsCapability::default();
    prompts.list_changed = Some(true);
    let mut resources = ResourcesCapability::default();
    resources.list_changed = Some(true);
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(prompts);
    capabilities.resources = Some(resources);
    let mut skills = JsonObject::new();
    skills.insert("directoryRead".to_owned(), json!(true));
    let extensions = [
        (skills::EXTENSION.to_owned(), skills),
        (TASKS_EXTENSION_ID.to_owned(), JsonObject::new()),
    ];
    capabilities.extensions = Some(extensions.into());
    capabilities
}

fn cursor(request: &Option<PaginatedRequestParams>) -> Option<String> {
    request.as_ref().and_then(|request| request.cursor.clone())
}

impl ServerHandler for SkillServer {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("skillbox", env!("CARGO_PKG_VERSION"));
        let config = ServerConfig::new(capabilities()).with_server_info(about);
        match self.host.overview() {
            Some(overview) => config.with_instructions(overview),
            None => config,
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.with_host(tools::list).await?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let seated = self.seat.take(&self.host, &context).await?;
        call::call(&self.host, seated, request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let session = self.seat.of_task(&self.host, &context, &request.task_id)?;
        session.tasks.get(&request.task_id).map(GetTaskResult::new)
    }

    /// No tool of ours ever asks for anything, so there is nothing that an answer could belong to.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.seat.of_task(&self.host, &context, &request.task_id).map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let session = self.seat.of_task(&self.host, &context, &request.task_id)?;
        session.tasks.cancel(&request.task_id)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let page = self
            .with_host(move |host| prompts::list(host, cursor(&request).as_deref()))
            .await?;
        let mut result = ListPromptsResult::with_all_items(page.items);
        result.next_cursor = page.next;
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let result = self.with_host(move |host| prompts::get(host, &request)).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.seat.look(&self.host, &context)?;
        let page = self
            .with_host(move |host| resources::list(host, session.as_deref(), cursor(&request).as_deref()))
            .await?;
        let mut result = ListResourcesResult::with_all_items(page.items);
        result.next_cursor = page.next;
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.seat.look(&self.host, &context)?;
        let contents = self
            .with_host(move |host| resources::read(host, session.as_deref(), &request.uri))
            .await?;
        let result = ReadResourceResult::new(vec![contents]).with_cache_scope(CacheScope::Private);
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        let answer = self
            .with_host(move |host| skills::answer(host, &request.method, request.params, version.as_ref()))
            .await?;
        Ok(CustomResult::new(answer))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let news = self.host.changes.subscribe();
        // Ends with the connection, which then takes no news any more.
        tokio::spawn(changes::tell_peer(context.peer, news));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let news = self.host.changes.subscribe();
        tokio::select! {
            () = changes::tell_subscriber(&subscription, news) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }
}
