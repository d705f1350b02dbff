//! Renders the OpenAPI document as one HTML page without scripts, which works offline.

use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f24;background:#fff}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}h3{font:600 1rem/1.5 ui-monospace,\
monospace;margin:1.5rem 0 .2rem}h3 b{display:inline-block;min-width:4.5rem}p{margin:.2rem 0}table{border-collapse:\
collapse;margin:.4rem 0}td{border:1px solid #d0d7de;padding:.15rem .6rem;vertical-align:top}code{font-family:\
ui-monospace,monospace;font-size:.9em}summary{cursor:pointer}pre{background:#f6f8fa;padding:.8rem;overflow:auto;\
font-size:.85rem}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,h2{border-color:#30363d}\
pre{background:#161b22}a{color:#58a6ff}}";

/// Renders the page.
pub(super) fn render(document: &Value) -> String {
    let mut page = Page::default();
    let title = text(&document["info"]["title"]);
    page.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.raw("<meta name=\"viewport\" content=\"width=device-width\"><title>");
    page.text(title);
    page.raw(" API</title><style>")
        .raw(STYLE)
        .raw("</style></head><body><h1>");
    page.text(title)
        .raw(" ")
        .text(text(&document["info"]["version"]))
        .raw("</h1><p>");
    page.text(text(&document["info"]["description"]));
    page.raw(" For programs: <a href=\"/openapi.json\">openapi.json</a>.</p>");
    for tag in tags(document) {
        page.raw("<h2>").text(&tag).raw("</h2>");
        for (path, method, operation) in operations(document) {
            if text(&operation["tags"][0]) == tag {
                page.operation(path, method, operation);
            }
        }
    }
    page.raw("<h2>Types</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        page.raw("<details id=\"")
            .text(name)
            .raw("\"><summary><code>")
            .text(name);
        page.raw("</code> ")
            .text(text(&schema["description"]))
            .raw("</summary><pre>");
        page.text(&format!("{schema:#}")).raw("</pre></details>");
    }
    page.raw("</body></html>\n");
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
        let tag = text(&operation["tags"][0]).to_owned();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn raw(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
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

    fn operation(&mut self, path: &str, method: &str, operation: &Value) {
        self.raw("<h3><b>").text(&method.to_ascii_uppercase()).raw("</b> ");
        self.text(path)
            .raw("</h3><p>")
            .text(text(&operation["summary"]))
            .raw("</p><table>");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            self.raw("<tr><td><code>")
                .text(text(&parameter["name"]))
                .raw("</code></td><td>");
            self.text(text(&parameter["in"])).raw("</td><td>");
            self.text(text(&parameter["description"])).raw("</td></tr>");
        }
        if let Some(body) = operation.get("requestBody") {
            self.payload("body", "", body);
        }
        for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
            self.payload(status, text(&answer["description"]), answer);
        }
        self.raw("</table>");
    }

    fn payload(&mut self, name: &str, description: &str, payload: &Value) {
        self.raw("<tr><td><code>").text(name).raw("</code></td><td>");
        for (kind, content) in payload["content"].as_object().into_iter().flatten() {
            let reference = text(&content["schema"]["$ref"]);
            match reference.rsplit('/').next().filter(|name| !name.is_empty()) {
                Some(name) => {
                    self.raw("<a href=\"#").text(name).raw("\">").text(name).raw("</a>");
                }
                None => {
                    self.text(kind);
                }
            }
        }
        self.raw("</td><td>").text(description).raw("</td></tr>");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_escaped() {
        let page = render(&json!({
            "info": {"title": "<script>"},
            "paths": {"/a": {"get": {"tags": ["t"], "summary": "\"x\" & <b>"}}},
        }));
        assert!(page.contains("&lt;script&gt; API") && page.contains("&quot;x&quot; &amp; &lt;b&gt;"));
        assert!(!page.contains("<script"));
    }
}
