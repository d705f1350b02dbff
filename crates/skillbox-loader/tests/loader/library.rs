//! Fixture: skills on disk, and a host that uses them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use skillbox_loader::{
    AgentName, AgentSpec, Caller, CatalogSnapshotCache, Dialect, HistoryCompleteness, OperationOutcome, Session,
    Settings, SkillsState, SourceView, ToolCallReply, TurnStartEffects,
};
use skillbox_model::ErrorBody;
use skillbox_repository::{Catalog, Repository, ScanOptions, Scope, Source};
use tempfile::TempDir;

/// A directory of skills.
pub struct Library {
    root: Arc<TempDir>,
}

impl Library {
    pub fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("skills")).unwrap();
        Self { root }
    }

    /// Two skills with scripts, references and documents.
    pub fn sample() -> Self {
        let library = Self::new();
        library.skill(
            "pdf",
            "description: Extract text from PDFs.\nlicense: MIT\nallowed-tools: Bash(pdftotext:*) Read",
            "# PDF\n\nRead [forms](references/forms.md).\n",
        );
        library.file("pdf/scripts/extract.py", "print('x')\n");
        library.file("pdf/scripts/merge.py", "print('y')\n");
        library.file("pdf/references/forms.md", "# Forms\n\nFill them.\n");
        library.skill("csv-report", "description: Summarise CSV files.", "# CSV\n\nRun it.\n");
        library.file("csv-report/USAGE.md", "Usage of the report.\n");
        library.file("csv-report/references/columns.md", "Columns.\n");
        library
    }

    /// The directory of skills.
    pub fn path(&self) -> std::path::PathBuf {
        self.root.path().join("skills")
    }

    /// Writes a SKILL.md; `fields` are the lines of its frontmatter except the name.
    pub fn skill(&self, name: &str, fields: &str, body: &str) -> &Self {
        self.file(
            &format!("{name}/SKILL.md"),
            format!("---\nname: {name}\n{fields}\n---\n{body}"),
        )
    }

    /// Writes a file below the directory of skills.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn catalog(&self) -> Catalog {
        catalog(&[(&self.path(), Scope::Project)])
    }

    /// A host that has started its first turn.
    pub fn host(&self, dialect: Dialect) -> Host {
        self.host_with(Settings::new(dialect))
    }

    pub fn host_with(&self, settings: Settings) -> Host {
        let mut host = Host::before_first_turn(self.catalog(), settings);
        host.library = Some(self.root.clone());
        host.start_turn();
        host
    }
}

pub fn catalog(sources: &[(&Path, Scope)]) -> Catalog {
    let source = |(path, scope): &(&Path, Scope)| Source::Directory {
        path: path.to_path_buf(),
        scope: *scope,
    };
    Repository::open(sources.iter().map(source).collect(), ScanOptions::default()).catalog()
}

/// The default settings of a dialect with some changes.
pub fn settings(dialect: Dialect, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::new(dialect);
    change(&mut settings);
    settings
}

/// A host with one session and the main agent.
pub struct Host {
    pub session: Session,
    pub catalog: Catalog,
    pub agent: AgentName,
    /// Keeps the files on disk while the host exists.
    library: Option<Arc<TempDir>>,
}

impl Host {
    pub fn before_first_turn(catalog: Catalog, mut settings: Settings) -> Self {
        if settings.sources.is_empty() {
            settings.sources = vec![SourceView::from_path("/srv/team/skills")];
        }
        Self {
            session: Session::new(settings, Arc::new(CatalogSnapshotCache::default())),
            catalog,
            agent: AgentName::default(),
            library: None,
        }
    }

    pub fn start_turn(&self) -> Option<TurnStartEffects> {
        self.session.before_agent(&self.catalog, &AgentSpec::main())
    }

    /// Scans the library again and starts the next turn.
    pub fn next_turn(&mut self) -> Option<TurnStartEffects> {
        if let Some(root) = &self.library {
            self.catalog = catalog(&[(&root.path().join("skills"), Scope::Project)]);
        }
        self.start_turn()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Result<OperationOutcome<Value>, ErrorBody> {
        self.call_as(Caller::Model, tool, arguments)
    }

    pub fn call_as(&self, caller: Caller, tool: &str, arguments: Value) -> Result<OperationOutcome<Value>, ErrorBody> {
        let reply = self.session.call(&self.catalog, &self.agent, caller, tool, &arguments);
        match reply.map_err(|error| error.to_error_body(self.session.settings().dialect))? {
            ToolCallReply::Done { outcome, .. } => Ok(outcome),
            ToolCallReply::Run(request) => panic!("{tool} asks for a run: {request:?}"),
            ToolCallReply::Fork(request) => panic!("{tool} asks for a session of its own: {request:?}"),
        }
    }

    /// Calls a tool that must succeed.
    pub fn ok(&self, tool: &str, arguments: Value) -> OperationOutcome<Value> {
        let shown = arguments.to_string();
        self.call(tool, arguments)
            .unwrap_or_else(|error| panic!("{tool} {shown}: {error:?}"))
    }

    /// Calls a tool that must be refused, and checks that the state did not change.
    pub fn refused(&self, tool: &str, arguments: Value) -> ErrorBody {
        let before = self.state();
        let error = self
            .call(tool, arguments)
            .expect_err("the call should have been refused");
        assert_eq!(self.state(), before, "a refused call changes nothing");
        error
    }

    /// The prompt section, or an empty string.
    pub fn prompt(&self) -> String {
        self.prompt_after(HistoryCompleteness::Complete)
    }

    pub fn prompt_after(&self, history: HistoryCompleteness) -> String {
        let section = self.session.modify_request(&self.catalog, &self.agent, history, &[]);
        section.map(|section| section.text).unwrap_or_default()
    }

    /// Whether the policy allows a call.
    pub fn passes(&self, tool: &str, arguments: Value) -> bool {
        self.session.wrap_tool_call(&self.agent, tool, &arguments).is_ok()
    }

    pub fn state(&self) -> SkillsState {
        self.session.state()
    }

    pub fn loaded(&self) -> Vec<String> {
        self.loaded_by(&self.agent)
    }

    pub fn loaded_by(&self, agent: &AgentName) -> Vec<String> {
        self.state()
            .loaded(agent)
            .map(|loaded| loaded.skill.to_string())
            .collect()
    }
}
