//! Guesses the MIME type of a file from its content and, if that is not enough, from its name.

/// Extensions that `mime_guess` does not know, or maps to a type that is wrong for the files that skills write.
const TYPE_BY_EXTENSION: [(&str, &str); 14] = [
    ("csv", "text/csv"),
    ("ipynb", "application/x-ipynb+json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("ndjson", "application/x-ndjson"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsx", "text/x-typescript"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Extensions of formats that are based on an archive format. For example, a `.docx` file starts like a zip file.
const ARCHIVE_BASED_EXTENSIONS: [(&str, &[&str]); 3] = [
    (
        "application/zip",
        &[
            "3mf", "apk", "docm", "docx", "dotx", "epub", "jar", "kmz", "odg", "odp", "ods", "odt", "potx", "ppsx",
            "pptm", "pptx", "vsdx", "war", "xlsm", "xlsx", "xltx", "xpi",
        ],
    ),
    ("application/gzip", &["svgz", "tgz"]),
    ("application/x-ole-storage", &["doc", "msg", "msi", "ppt", "vsd", "xls"]),
];

/// Documents that consist of printable characters but are not text.
const TEXT_ENCODED_DOCUMENTS: [(&[u8], &str); 3] = [
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
];

/// The type of a file with this name and these first bytes.
pub fn mime_type(name: &str, head: &[u8]) -> String {
    guess_mime_type(name, head, is_text(head, false) && !is_text_encoded_document(head))
}

/// Guesses the type from the first bytes and the name.
pub(super) fn guess_mime_type(name: &str, head: &[u8], is_text: bool) -> String {
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    if let Some(mime) = text_encoded_document_type(head) {
        return mime.to_owned();
    }
    if is_text {
        let mime_type = extension.as_deref().and_then(|extension| {
            TYPE_BY_EXTENSION
                .iter()
                .find(|(known, _)| *known == extension)
                .map(|(_, mime)| *mime)
        });
        if let Some(mime) = mime_type {
            return mime.to_owned();
        }
        let guessed = mime_guess::from_path(name).first_raw();
        return guessed
            .filter(|mime| may_be_text(mime))
            .unwrap_or("text/plain")
            .to_owned();
    }
    // Binary content never gets a text type, whatever its name is.
    let guessed = mime_guess::from_path(name).first_raw();
    if let Some(kind) = infer::get(head) {
        let outer = kind.mime_type();
        let is_archive_based = ARCHIVE_BASED_EXTENSIONS.iter().any(|(archive, extensions)| {
            *archive == outer
                && extension
                    .as_deref()
                    .is_some_and(|extension| extensions.contains(&extension))
        });
        return guessed.filter(|_| is_archive_based).unwrap_or(outer).to_owned();
    }
    guessed
        .filter(|mime| !mime.starts_with("text/"))
        .unwrap_or("application/octet-stream")
        .to_owned()
}

fn text_encoded_document_type(head: &[u8]) -> Option<&'static str> {
    let found = TEXT_ENCODED_DOCUMENTS.iter().find(|(start, _)| head.starts_with(start));
    found.map(|(_, mime)| *mime)
}

/// Whether the content is a document format that consists of printable characters.
pub(super) fn is_text_encoded_document(head: &[u8]) -> bool {
    text_encoded_document_type(head).is_some()
}

fn may_be_text(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+xml")
        || mime.ends_with("+json")
        || matches!(
            mime,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/sql"
                | "application/x-sh"
                | "application/x-tex"
                | "application/x-subrip"
                | "message/rfc822"
                | "application/x-httpd-php"
        )
}

/// Whether bytes are text: UTF-8 without NUL. Unless `is_whole`, an incomplete character at the end is allowed.
pub(super) fn is_text(head: &[u8], is_whole: bool) -> bool {
    if head.contains(&0) {
        return false;
    }
    match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_takes_precedence_over_the_name() {
        let check = |name: &str, content: &[u8], expected: &str| {
            let text = is_text(content, true);
            assert_eq!(guess_mime_type(name, content, text), expected, "{name}");
        };
        check("fib.txt", b"1\n1\n2\n", "text/plain");
        check("a.csv", b"a,b\n", "text/csv");
        check("a.json", b"{}", "application/json");
        check("chart.svg", b"<svg/>", "image/svg+xml");
        check("README", b"hello", "text/plain");
        check("Makefile", b"all:\n", "text/plain");
        check("x.log", b"line", "text/plain");
        check("x.ts", b"let a = 1", "text/x-typescript");
        check("x.png", b"not an image", "text/plain");
        check("x.txt", b"\x89PNG\r\n\x1a\n\0\0", "image/png");
        check("x.txt", b"\0\x01\x02", "application/octet-stream");
        check("x.pdf", b"%PDF-1.7\n\xff\xfe\0", "application/pdf");
        check("empty", b"", "text/plain");
    }

    #[test]
    fn documents_are_not_reported_as_their_archive_format() {
        let zip = b"PK\x03\x04\x14\0\0\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml";
        let check = |name: &str, content: &[u8], expected: &str| {
            assert_eq!(
                guess_mime_type(name, content, is_text(content, true)),
                expected,
                "{name}"
            );
        };
        let office = "application/vnd.openxmlformats-officedocument";
        check("a.docx", zip, &format!("{office}.wordprocessingml.document"));
        check("a.XLSX", zip, &format!("{office}.spreadsheetml.sheet"));
        check("a.pptx", zip, &format!("{office}.presentationml.presentation"));
        check("a.epub", zip, "application/epub+zip");
        check("a.jar", zip, "application/java-archive");
        check("a.zip", zip, "application/zip");
        // The name does not turn an archive into a picture, nor a text into a document.
        check("a.png", zip, "application/zip");
        check("a.docx", b"words", "text/plain");
        check("a.pdf", b"%PDF-1.4\n1 0 obj\n%%EOF\n", "application/pdf");
        check("figure.ps", b"%!PS-Adobe-3.0\n", "application/postscript");
        check("a.rtf", b"{\\rtf1\\ansi}", "application/rtf");
    }

    #[test]
    fn a_character_cut_by_the_head_is_still_text() {
        let cut = &"é".as_bytes()[..1];
        assert!(is_text(cut, false));
        assert!(!is_text(cut, true));
        assert!(!is_text(b"a\xff", false));
    }
}
