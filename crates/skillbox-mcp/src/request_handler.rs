//! Dispatches each request of a client to the module that answers it.

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

use crate::blocking::run_blocking;
use crate::output_uri::split_session;
use crate::server_state::ServerState;
use crate::session_resolver::{SessionResolver, needs_session_argument};
use crate::{call, changes, prompts, resources, skills, tools};

/// The request handler of one client.
#[derive(Clone, Debug)]
pub(crate) struct RequestHandler {
    server: Arc<ServerState>,
    resolver: SessionResolver,
}

impl RequestHandler {
    /// Creates the handler of one client.
    pub(crate) fn new(server: Arc<ServerState>, resolver: SessionResolver) -> Self {
        Self { server, resolver }
    }

    /// Runs blocking work on the state of the server.
    async fn with_server<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ServerState) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let server = self.server.clone();
        run_blocking(move || work(&server)).await
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

impl ServerHandler for RequestHandler {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("skillbox", env!("CARGO_PKG_VERSION"));
        let config = ServerConfig::new(capabilities()).with_server_info(implementation);
        match self.server.overview() {
            Some(overview) => config.with_instructions(overview),
            None => config,
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // With the handle of a session that has ended, a client sees what a new one sees.
        let session = self.resolver.find(&self.server, &context).unwrap_or_default();
        let mut tools = self
            .with_server(move |server| tools::list(server, session.as_deref()))
            .await?;
        if needs_session_argument(&context) {
            tools::add_session_argument(&mut tools);
        }
        let mut result = ListToolsResult::with_all_items(tools);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = &mut request.arguments;
        let session = self.resolver.find_or_create(&self.server, &context, arguments).await?;
        call::call(&self.server, session, request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let session = self.resolver.find_by_task(&self.server, &context, &request.task_id)?;
        session.tasks.get(&request.task_id).map(GetTaskResult::new)
    }

    /// Tools of skillbox never request input, so there is nothing to update.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.resolver
            .find_by_task(&self.server, &context, &request.task_id)
            .map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let session = self.resolver.find_by_task(&self.server, &context, &request.task_id)?;
        session.tasks.cancel(&request.task_id)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let page = self
            .with_server(move |server| prompts::list(server, cursor(&request).as_deref()))
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
        let result = self.with_server(move |server| prompts::get(server, &request)).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.resolver.find(&self.server, &context)?;
        let page = self
            .with_server(move |server| resources::list(server, session.as_deref(), cursor(&request).as_deref()))
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
        let (uri, link_session) = split_session(&request.uri);
        let session = match link_session {
            Some(name) => Some(self.resolver.find_by_link(&self.server, name)?),
            None => self.resolver.find(&self.server, &context)?,
        };
        let (uri, requested) = (uri.to_owned(), request.uri.clone());
        let mut contents = self
            .with_server(move |server| resources::read(server, session.as_deref(), &uri))
            .await?;
        resources::set_uri(&mut contents, requested);
        let result = ReadResourceResult::new(vec![contents]).with_cache_scope(CacheScope::Private);
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        let result = self
            .with_server(move |server| skills::answer(server, &request.method, request.params, version.as_ref()))
            .await?;
        Ok(CustomResult::new(result))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let changes = self.server.changes.subscribe();
        // Ends with the connection, which then rejects notifications.
        tokio::spawn(changes::notify_peer(context.peer, changes));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = self.server.changes.subscribe();
        tokio::select! {
            () = changes::notify_subscriber(&subscription, changes) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }
}
