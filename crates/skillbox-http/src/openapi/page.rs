//! Renders the OpenAPI document as one HTML page without scripts, which works offline.

use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f24;background:#fff}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}h3{font:600 1rem/1.5 ui-monospace,\
monospace;margin:1.5rem 0 .2rem}h3 b{display:inline-block;min-width:4.5rem}p{margin:.2rem 0}table{border-collapse:\
collapse;margin:.4rem 0}td{border:1px solid #d0d7de;padding:.15rem .6rem;vertical-align:top}code{font-family:\
ui-monospace,monospace;font-size:.9em}summary{cursor:pointer}pre{background:#f6f8fa;padding:.8rem;overflow:auto;\
font-size:.85rem}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,h2{border-color:#30363d}\
pre{background:#161b22}a{color:#58a6ff}}";

/// Renders the document as an HTML page.
pub(crate) fn render_page(document: &Value) -> String {
    let mut page = Page::default();
    let title = as_text(&document["info"]["title"]);
    page.push_html("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_html("<meta name=\"viewport\" content=\"width=device-width\"><title>");
    page.push_text(title);
    page.push_html(" API</title><style>")
        .push_html(STYLE)
        .push_html("</style></head><body><h1>");
    page.push_text(title)
        .push_html(" ")
        .push_text(as_text(&document["info"]["version"]))
        .push_html("</h1><p>");
    page.push_text(as_text(&document["info"]["description"]));
    page.push_html(" For programs: <a href=\"/openapi.json\">openapi.json</a>.</p>");
    for tag in tags(document) {
        page.push_html("<h2>").push_text(&tag).push_html("</h2>");
        for (path, method, operation) in operations(document) {
            if as_text(&operation["tags"][0]) == tag {
                page.push_operation(path, method, operation);
            }
        }
    }
    page.push_html("<h2>Types</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        page.push_html("<details id=\"")
            .push_text(name)
            .push_html("\"><summary><code>")
            .push_text(name);
        page.push_html("</code> ")
            .push_text(as_text(&schema["description"]))
            .push_html("</summary><pre>");
        page.push_text(&format!("{schema:#}")).push_html("</pre></details>");
    }
    page.push_html("</body></html>\n");
    page.0
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

fn tags(document: &Value) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for (_, _, operation) in operations(document) {
        let tag = as_text(&operation["tags"][0]).to_owned();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn push_html(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Appends escaped text.
    fn push_text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                other => self.0.push(other),
            }
        }
        self
    }

    fn push_operation(&mut self, path: &str, method: &str, operation: &Value) {
        self.push_html("<h3><b>")
            .push_text(&method.to_ascii_uppercase())
            .push_html("</b> ");
        self.push_text(path)
            .push_html("</h3><p>")
            .push_text(as_text(&operation["summary"]))
            .push_html("</p><table>");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            self.push_html("<tr><td><code>")
                .push_text(as_text(&parameter["name"]))
                .push_html("</code></td><td>");
            self.push_text(as_text(&parameter["in"])).push_html("</td><td>");
            self.push_text(as_text(&parameter["description"]))
                .push_html("</td></tr>");
        }
        if let Some(body) = operation.get("requestBody") {
            self.push_payload("body", "", body);
        }
        for (status, response) in operation["responses"].as_object().into_iter().flatten() {
            self.push_payload(status, as_text(&response["description"]), response);
        }
        self.push_html("</table>");
    }

    fn push_payload(&mut self, name: &str, description: &str, payload: &Value) {
        self.push_html("<tr><td><code>")
            .push_text(name)
            .push_html("</code></td><td>");
        for (kind, content) in payload["content"].as_object().into_iter().flatten() {
            let reference = as_text(&content["schema"]["$ref"]);
            match reference.rsplit('/').next().filter(|name| !name.is_empty()) {
                Some(name) => {
                    self.push_html("<a href=\"#")
                        .push_text(name)
                        .push_html("\">")
                        .push_text(name)
                        .push_html("</a>");
                }
                None => {
                    self.push_text(kind);
                }
            }
        }
        self.push_html("</td><td>")
            .push_text(description)
            .push_html("</td></tr>");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_escaped() {
        let page = render_page(&json!({
            "info": {"title": "<script>"},
            "paths": {"/a": {"get": {"tags": ["t"], "summary": "\"x\" & <b>"}}},
        }));
        assert!(page.contains("&lt;script&gt; API") && page.contains("&quot;x&quot; &amp; &lt;b&gt;"));
        assert!(!page.contains("<script"));
    }
}
