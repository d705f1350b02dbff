//! Packages that skills use most, from the registries of this host.

use std::process::Stdio;

use serde_json::json;

use crate::harness::{Fixture, Invocation, need, program};

/// Whether the registry of pip of this host can be reached.
fn need_registry(fixture: &Fixture) -> bool {
    let directory = fixture.path("scratch/probe");
    let status = program("/usr/bin/python3")
        .args([
            "-I",
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
        ])
        .arg(directory)
        .args(["--retries", "1", "--timeout", "20", "six"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    need(
        status.is_ok_and(|status| status.success()),
        "the registry of pip, and pip of /usr/bin/python3",
    )
}

/// Gives skillbox the variables that configure pip of this machine, as the check above has them.
fn with_pip_variables(invocation: Invocation<'_>) -> Invocation<'_> {
    let variables = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("PIP_")));
    variables.fold(invocation, |invocation, (name, value)| {
        invocation.env(name.to_str().unwrap_or_default(), value)
    })
}

#[test]
fn numpy_of_a_script_and_tables_of_a_skill_are_installed_once() {
    let fixture = Fixture::new();
    if !need_registry(&fixture) {
        return;
    }
    let numbers =
        "# /// script\n# dependencies = [\"numpy\"]\n# ///\nimport numpy\nprint(int(numpy.arange(5).sum()))\n";
    fixture.add_skill("numbers", &[("scripts/sum.py", numbers)]);
    let tables = "import pandas, os\nframe = pandas.DataFrame({'a': [1, 2]})\n\
                  path = os.environ['OUTPUT_DIR'] + '/t.xlsx'\nframe.to_excel(path)\nprint(pandas.read_excel(path)['a'].sum())\n";
    fixture.add_skill(
        "tables",
        &[("requirements.txt", "openpyxl\npandas\n"), ("scripts/table.py", tables)],
    );
    for (skill, script, expected) in [("numbers", "scripts/sum.py", "10"), ("tables", "scripts/table.py", "3")] {
        let run = || {
            let request = json!({"skill": skill, "script": script, "timeout": 100});
            with_pip_variables(fixture.request(request)).run().expect_report()
        };
        let first = run();
        assert_eq!(first.stdout().trim(), expected, "{}", first.describe());
        assert!(first.json()["environment"]["built_ms"].is_u64());
        let second = run();
        assert_eq!(second.stdout().trim(), expected);
        assert_eq!(second.json()["environment"].get("built_ms"), None);
        assert_eq!(second.json().get("network"), None, "the run itself has no network");
    }
}

/// The tasks of public skills for documents, tables, PDF files and images.
const OFFICE_TASKS: &str = r#"
import io, os, shutil, subprocess, zipfile
import docx, lxml.etree, matplotlib, openpyxl, pypdf
from PIL import Image
from pypdf.generic import (ArrayObject, BooleanObject, DictionaryObject, FloatObject, NameObject, TextStringObject)

out = os.environ["OUTPUT_DIR"]
path = lambda name: os.path.join(out, name)

book = openpyxl.Workbook()
book.active.append(["a", 2])
book.active["C1"] = "=B1*2"
book.save(path("t.xlsx"))
assert openpyxl.load_workbook(path("t.xlsx")).active["C1"].value == "=B1*2"

writer = pypdf.PdfWriter()
page = writer.add_blank_page(200, 200)
field = DictionaryObject({
    NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Widget"), NameObject("/FT"): NameObject("/Tx"),
    NameObject("/T"): TextStringObject("name"), NameObject("/V"): TextStringObject(""),
    NameObject("/Rect"): ArrayObject([FloatObject(n) for n in (10, 10, 100, 30)]),
})
reference = writer._add_object(field)
page[NameObject("/Annots")] = ArrayObject([reference])
writer._root_object[NameObject("/AcroForm")] = DictionaryObject({
    NameObject("/Fields"): ArrayObject([reference]), NameObject("/NeedAppearances"): BooleanObject(True)})
writer.write(path("form.pdf"))
filled = pypdf.PdfWriter(clone_from=path("form.pdf"))
filled.update_page_form_field_values(filled.pages[0], {"name": "Ada"}, auto_regenerate=False)
filled.write(path("filled.pdf"))
assert pypdf.PdfReader(path("filled.pdf")).get_fields()["name"]["/V"] == "Ada"

document = docx.Document()
document.add_heading("Title")
document.add_paragraph("one paragraph")
document.save(path("d.docx"))
with zipfile.ZipFile(path("d.docx")) as archive:
    parts = {name: archive.read(name) for name in archive.namelist()}
tree = lxml.etree.fromstring(parts["word/document.xml"])
next(node for node in tree.iter() if node.text == "one paragraph").text = "changed"
parts["word/document.xml"] = lxml.etree.tostring(tree)
with zipfile.ZipFile(path("e.docx"), "w") as archive:
    for name, data in parts.items():
        archive.writestr(name, data)
assert [p.text for p in docx.Document(path("e.docx")).paragraphs] == ["Title", "changed"]

Image.new("RGB", (64, 64), "red").resize((16, 16)).save(path("i.png"))
assert Image.open(path("i.png")).size == (16, 16)

matplotlib.use("Agg")
from matplotlib import pyplot
pyplot.plot([1, 2, 3])
pyplot.savefig(path("p.png"))
pyplot.savefig(path("p.svg"))
assert Image.open(path("p.png")).size[0] > 100 and "<svg" in open(path("p.svg")).read()

if shutil.which("pandoc"):
    subprocess.run(["pandoc", path("e.docx"), "-o", path("e.md")], check=True)
    assert "changed" in open(path("e.md")).read()
if shutil.which("soffice"):
    subprocess.run(["soffice", "--headless", "--convert-to", "pdf", "--outdir", out, path("e.docx")], check=True)
    assert len(pypdf.PdfReader(path("e.pdf")).pages) == 1
print("done")
"#;

#[test]
fn documents_tables_pdf_files_and_images_are_made_as_public_skills_do() {
    let fixture = Fixture::new();
    if !need_registry(&fixture) {
        return;
    }
    let packages = "openpyxl\npypdf\npython-docx\nlxml\npillow\nmatplotlib\n";
    fixture.add_skill(
        "office",
        &[("requirements.txt", packages), ("scripts/tasks.py", OFFICE_TASKS)],
    );
    let request = json!({"skill": "office", "script": "scripts/tasks.py", "timeout": 100});
    let answer = with_pip_variables(fixture.request(request)).run().expect_report();
    assert_eq!(answer.stdout().trim(), "done", "{}", answer.describe());
}
