//! Reads the dependencies of `pyproject.toml`. The project itself is not installed: its files are those of the skill.

use serde::Deserialize;

use crate::declaration_error::DeclarationError;
use crate::python_table::{PythonDeclaration, PythonTable};

#[derive(Debug, Deserialize)]
struct ProjectFile {
    project: Option<PythonTable>,
}

/// The requirements of a project, and the line of Python that it needs; none if it has no `[project]` table.
pub fn parse_python_project(file: &str, text: &str) -> Result<Option<PythonDeclaration>, DeclarationError> {
    let parsed: ProjectFile = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = 1 + text[..offset.min(text.len())].matches('\n').count();
        DeclarationError::new(file, format!("not valid: {}", error.message())).at_line(line)
    })?;
    let Some(project) = parsed.project else {
        return Ok(None);
    };
    let line_of = |wanted: &str| 1 + text.lines().position(|line| line.contains(wanted)).unwrap_or(0);
    let requirements = project.requirements(file, line_of)?;
    Ok(Some(PythonDeclaration {
        requirements,
        requires_python: project.requires_python,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependencies_of_the_project_are_read() {
        let text = "[build-system]\nrequires = [\"x @ https://example.org\"]\n[project]\nname = \"s\"\n\
                    dependencies = [\n  \"numpy\",\n]\n[project.optional-dependencies]\ndev = [\"pytest\"]\n";
        let PythonDeclaration { requirements, .. } = parse_python_project("pyproject.toml", text).unwrap().unwrap();
        assert_eq!((requirements.len(), requirements[0].line), (1, 6));
        assert_eq!(parse_python_project("pyproject.toml", "[tool.x]\n"), Ok(None));
        let error = parse_python_project("pyproject.toml", "[project]\ndependencies = [\n\"a @ file:///x\"]\n");
        assert_eq!(error.unwrap_err().line, Some(3));
        assert_eq!(
            parse_python_project("pyproject.toml", "a\n[b").unwrap_err().line,
            Some(1)
        );
    }
}
