//! Reads the metadata block of a Python script (PEP 723).

use crate::declaration_error::DeclarationError;
use crate::python_table::{PythonDeclaration, PythonTable};

const START: &str = "# /// script";
const END: &str = "# ///";

/// The requirements of a script, and the line of Python that it needs; none if it has no metadata block.
pub fn parse_script_metadata(file: &str, source: &str) -> Result<Option<PythonDeclaration>, DeclarationError> {
    let Some((start, toml)) = script_block(file, source)? else {
        return Ok(None);
    };
    let table: PythonTable = toml::from_str(&toml).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = start + 1 + toml[..offset.min(toml.len())].matches('\n').count();
        DeclarationError::new(file, format!("the script metadata is not valid: {}", error.message())).at_line(line)
    })?;
    let line_of = |text: &str| {
        let found = toml.lines().position(|line| line.contains(text));
        start + 1 + found.unwrap_or(0)
    };
    let requirements = table.requirements(file, line_of)?;
    Ok(Some(PythonDeclaration {
        requirements,
        requires_python: table.requires_python,
    }))
}

/// The TOML of the block and the number of its first line. The comment prefix of each line is removed; the number of
/// lines stays the same.
fn script_block(file: &str, source: &str) -> Result<Option<(usize, String)>, DeclarationError> {
    let lines: Vec<&str> = source.lines().map(str::trim_end).collect();
    let Some(start) = lines.iter().position(|line| *line == START) else {
        return Ok(None);
    };
    let comments = lines[start + 1..]
        .iter()
        .take_while(|line| line.starts_with("# ") || **line == "#")
        .count();
    // The last end line counts, because the block may contain one.
    let block = &lines[start + 1..start + 1 + comments];
    let Some(end) = block.iter().rposition(|line| *line == END) else {
        return Err(DeclarationError::new(file, "the script metadata has no end line `# ///`").at_line(start + 1));
    };
    if lines[start + 1 + end..].contains(&START) {
        return Err(DeclarationError::new(file, "the script has two metadata blocks").at_line(start + 1));
    }
    let toml: Vec<&str> = block[..end]
        .iter()
        .map(|line| line.strip_prefix("# ").unwrap_or(""))
        .collect();
    Ok(Some((start + 1, toml.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let PythonDeclaration { requirements, .. } = parse_script_metadata("a.py", source).unwrap().unwrap();
        requirements
            .into_iter()
            .map(|declared| declared.requirement.text)
            .collect()
    }

    #[test]
    fn a_block_is_read() {
        let source = "#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\n#   \
                      \"numpy>=1\",\n#   \"rich\",\n# ]\n#\n# [tool.x]\n# a = 1\n# ///\nimport numpy\n";
        assert_eq!(names(source), ["numpy>=1", "rich"]);
        let PythonDeclaration {
            requirements,
            requires_python: python,
        } = parse_script_metadata("a.py", source).unwrap().unwrap();
        assert_eq!((requirements[1].line, python.as_deref()), (6, Some(">=3.9")));
        assert_eq!(names("# /// script\n# dependencies = []\n# ///"), Vec::<String>::new());
        assert_eq!(parse_script_metadata("a.py", "import numpy\n"), Ok(None));
        assert_eq!(parse_script_metadata("a.py", "# /// other\n# ///\n"), Ok(None));
    }

    #[test]
    fn a_broken_block_names_its_line() {
        for (source, line) in [
            ("# /// script\n# dependencies = [\nimport x\n", 1),
            ("x\n# /// script\n# dependencies = 5\n# ///\n", 3),
            ("# /// script\n# dependencies = [\"a\",\n# \"./b\"]\n# ///\n", 3),
            ("# /// script\n# ///\nx\n# /// script\n# ///\n", 1),
        ] {
            let error = parse_script_metadata("a.py", source).unwrap_err();
            assert_eq!(error.line, Some(line), "{source:?}: {error}");
        }
    }
}
