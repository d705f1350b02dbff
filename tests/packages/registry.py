"""A registry of packages for Python and Node on 127.0.0.1, with packages that attack whoever installs or imports them.

Usage: registry.py LOG CANARY WRITABLE. Prints its port. Each package with a payload tries to read the file CANARY, to write to the
directory WRITABLE and to reach this server; it prints what it achieved. LOG receives the path of every request.
"""

import base64
import hashlib
import http.server
import io
import json
import sys
import tarfile
import threading
import zipfile

LOG, CANARY, WRITABLE = sys.argv[1:4]

PAYLOAD = """
import json, os, sys, urllib.request
def attack(phase):
    done = []
    try:
        open({canary!r}).read()
        done.append("canary")
    except OSError:
        pass
    try:
        open(os.path.join({writable!r}, "written-by-" + phase), "w").close()
        done.append("write")
    except OSError:
        pass
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
        opener.open("http://127.0.0.1:{port}/hit/" + phase, timeout=3).read()
        done.append("network")
    except OSError:
        pass
    try:
        open("/env/changed", "w").close()
        done.append("environment")
    except OSError:
        pass
    return done
"""

NODE_PAYLOAD = """
const fs = require("fs"), http = require("http");
const done = [];
try {{ fs.readFileSync({canary}); done.push("canary"); }} catch (error) {{}}
try {{ fs.writeFileSync({writable} + "/written-by-node", ""); done.push("write"); }} catch (error) {{}}
try {{ fs.writeFileSync("/env/changed", ""); done.push("environment"); }} catch (error) {{}}
const request = http.get("http://127.0.0.1:{port}/hit/node", () => {{ done.push("network"); end(); }});
request.on("error", end);
function end() {{ console.log(JSON.stringify(done)); process.exit(0); }}
"""


def wheel(name, version, files, entry_points="", requires=()):
    module = name.replace("-", "_")
    info = "%s-%s.dist-info/" % (module, version)
    metadata = "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version)
    metadata += "".join("Requires-Dist: %s\n" % requirement for requirement in requires)
    files = dict(files)
    files[info + "METADATA"] = metadata
    files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if entry_points:
        files[info + "entry_points.txt"] = entry_points
    files[info + "RECORD"] = "".join("%s,,\n" % path for path in files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return "%s-%s-py3-none-any.whl" % (module, version), buffer.getvalue()


def tarball(root, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            data = content.encode()
            member = tarfile.TarInfo("%s/%s" % (root, path))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


class Registry:
    def __init__(self, port):
        self.port = port
        self.files = {}
        self.python = {}
        self.node = {}
        payload = PAYLOAD.format(canary=CANARY, writable=WRITABLE, port=port)
        self.add_wheel("good-pkg", "1.0", {"good_pkg.py": "VALUE = 'good 1.0'\ndef main():\n    print('tool ' + VALUE)\n"},
                       "[console_scripts]\ngood-tool = good_pkg:main\n")
        self.add_wheel("good-pkg", "1.1", {"good_pkg.py": "VALUE = 'good 1.1'\n"})
        self.add_wheel("needs-good", "2.0", {"needs_good.py": "import good_pkg\n"}, requires=["good-pkg<1.1"])
        # A line of a .pth file that starts with `import` is executed by every start of an interpreter.
        self.add_wheel(
            "pth-pkg", "1.0",
            {"pth_payload.py": payload + "\nDONE = attack('startup')\n", "pth-pkg.pth": "import pth_payload\n",
             "pth_pkg.py": "def main():\n    import pth_payload\n    print(json.dumps(pth_payload.attack('tool')))\nimport json\n"},
            "[console_scripts]\npth-tool = pth_pkg:main\n")
        # The name of a package inside a company, published by somebody else with a greater version.
        self.add_wheel("internal-name", "99.0", {"internal_name.py": payload + "\nDONE = attack('import')\n"})
        self.add_wheel("wrong-hash", "1.0", {"wrong_hash.py": ""}, digest="0" * 64)
        self.add_wheel("escaping", "1.0", {"../../../../../../escaped.py": "x = 1\n", "escaping.py": ""})
        setup = payload + "\nprint(json.dumps(attack('setup')))\n"
        sdist = tarball("source-only-1.0", {"setup.py": setup, "PKG-INFO": "Metadata-Version: 2.1\nName: source-only\nVersion: 1.0\n"})
        self.add_file("source-only", "source-only-1.0.tar.gz", sdist)
        self.python["elsewhere"] = ["http://127.0.0.1:1/elsewhere-1.0-py3-none-any.whl"]
        node_payload = NODE_PAYLOAD.format(canary=json.dumps(CANARY), writable=json.dumps(WRITABLE), port=port)
        self.add_node("plain", "1.0.0", {"index.js": "module.exports = 'plain ' + require('inner');\n"}, {"dependencies": {"inner": "^1.0.0"}})
        self.add_node("inner", "1.2.0", {"index.js": "module.exports = 'inner 1.2.0';\n", "tool.js": "#!/usr/bin/env node\nconsole.log('tool', require('./index.js'))\n"},
                      {"bin": {"inner-tool": "tool.js"}})
        self.add_node("modern", "1.0.0", {"index.js": "export default 'modern';\n"}, {"type": "module", "exports": "./index.js"})
        self.add_node("postinstall", "1.0.0", {"evil.js": node_payload, "index.js": node_payload},
                      {"scripts": {"preinstall": "node evil.js", "install": "node evil.js", "postinstall": "node evil.js"}})

    def add_file(self, name, file, data, digest=None):
        self.files["/files/" + file] = data
        digest = digest or hashlib.sha256(data).hexdigest()
        self.python.setdefault(name, []).append("/files/%s#sha256=%s" % (file, digest))

    def add_wheel(self, name, version, files, entry_points="", requires=(), digest=None):
        file, data = wheel(name, version, files, entry_points, requires)
        self.add_file(name, file, data, digest)

    def add_node(self, name, version, files, manifest):
        manifest = dict(manifest, name=name, version=version)
        data = tarball("package", dict(files, **{"package.json": json.dumps(manifest)}))
        path = "/tarballs/%s-%s.tgz" % (name, version)
        self.files[path] = data
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": "http://127.0.0.1:%d%s" % (self.port, path), "integrity": integrity}
        versions = {version: dict(manifest, dist=dist)}
        self.node[name] = {"name": name, "dist-tags": {"latest": version}, "versions": versions}

    def answer(self, path):
        if path.startswith("/simple/"):
            links = self.python.get(path.split("/")[2])
            if links is not None:
                page = "".join('<a href="%s">%s</a>\n' % (link, link.split("#")[0].split("/")[-1]) for link in links)
                return "text/html", ("<!DOCTYPE html><html><body>%s</body></html>" % page).encode()
        if path in self.files:
            return "application/octet-stream", self.files[path]
        if path.startswith("/hit/"):
            return "text/plain", b"hit"
        if path[1:] in self.node:
            return "application/json", json.dumps(self.node[path[1:]]).encode()
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        with self.server.lock, open(LOG, "a") as log:
            log.write(path + "\n")
        found = self.server.registry.answer(path)
        self.send_response(200 if found else 404)
        kind, body = found or ("text/plain", b"not found")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.lock = threading.Lock()
server.registry = Registry(server.server_address[1])
print(server.server_address[1], flush=True)
# The end of standard input is the end of the test.
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
server.serve_forever()
