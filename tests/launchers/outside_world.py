#!/usr/bin/env python3
"""Runs a command in a network namespace of its own, which has servers that play the outside world.

usage: outside_world.py DIRECTORY COMMAND…

The servers listen on every address of the loopback interface, which also has the public addresses of the names below.
Each server writes a line to DIRECTORY/log for whatever reaches it. DIRECTORY/ca.pem is the certificate of the authority
that signed theirs. Needs root.

Servers: names on UDP 53; HTTP on 80 and 8080; HTTP over TLS on 443 and 8443; HTTP/2 over TLS on 9443, if there is
Node.js; echo on TCP 7000; UDP 9999.
"""
import asyncio
import os
import ssl
import struct
import subprocess
import sys

ADDRESSES = {
    "api.test": "93.184.215.14",
    "b.wild.test": "93.184.215.14",
    "evil.test": "93.184.215.15",
    "private.test": "10.1.2.3",
    "metadata.test": "169.254.169.254",
}
ON_LOOPBACK = ["93.184.215.14", "93.184.215.15", "10.1.2.3", "169.254.169.254"]
directory = sys.argv[1]


def log(text):
    with open(f"{directory}/log", "a", encoding="utf-8") as file:
        file.write(text + "\n")


class NameServer(asyncio.DatagramProtocol):
    """Answers A questions for the names above; `rebind.test` is public only the first time."""

    def __init__(self):
        self.rebinds = 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, client):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode("latin-1"))
            at += 1 + data[at]
        kind = struct.unpack("!H", data[at + 1 : at + 3])[0]
        name = ".".join(labels).lower()
        log(f"dns {name}")
        address = ADDRESSES.get(name)
        if name == "rebind.test" and kind == 1:
            self.rebinds += 1
            address = "93.184.215.14" if self.rebinds == 1 else "127.0.0.1"
        answer = b""
        if address and kind == 1:
            answer = struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + bytes(int(part) for part in address.split("."))
        code = 0 if address or name == "rebind.test" else 3
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, bool(answer), 0, 0)
        self.transport.sendto(head + data[12 : at + 5] + answer, client)


class Datagrams(asyncio.DatagramProtocol):
    def datagram_received(self, data, client):
        log("udp 9999")


async def serve_http(reader, writer):
    port = writer.get_extra_info("sockname")[1]
    tls = writer.get_extra_info("ssl_object")
    server_name = getattr(tls, "wanted_name", None) if tls else None
    log(f"connection {port}")
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split("\r\n")[0].split(" ")
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            host = headers.get("host", "-")
            log(f"http {port} {host} {path} {server_name or '-'}")
            if "upgrade" in headers:
                log(f"upgrade {headers['upgrade']}")
            if path == "/redirect":
                writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n")
            elif path == "/dies":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
                await writer.drain()
                break
            elif headers.get("upgrade") == "websocket":
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
                while data := await reader.read(4096):
                    writer.write(data)
                break
            else:
                size = int(path[6:]) if path.startswith("/size/") else 0
                text = b"x" * size if size else f"hello {host} {method} {len(body)}".encode()
                if path.startswith("/echo"):
                    text = head.encode("latin-1") + body
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    writer.close()


async def serve_echo(reader, writer):
    log("echo")
    writer.write(b"ready\n")
    while data := await reader.read(4096):
        writer.write(data)
    writer.close()


def tls_context():
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=directory, stderr=subprocess.DEVNULL)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=outside", "-days", "2",
            "-addext", "keyUsage=critical,keyCertSign")
    names = "subjectAltName=DNS:api.test,DNS:*.wild.test,DNS:evil.test,IP:93.184.215.14"
    with open(f"{directory}/names", "w", encoding="utf-8") as file:
        file.write(names)
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")

    def remember(connection, name, _):
        connection.wanted_name = name
        log(f"tls {name}")

    context.sni_callback = remember
    return context


HTTP2_SERVER = """
const fs = require("fs"), dir = process.argv[1];
const log = line => fs.appendFileSync(dir + "/log", line + "\\n");
const server = require("http2").createSecureServer(
  {key: fs.readFileSync(dir + "/server.key"), cert: fs.readFileSync(dir + "/server.pem"), allowHTTP1: true});
server.on("request", (request, response) => {
  const host = request.headers[":authority"] || request.headers.host;
  log(`http${request.httpVersionMajor} 9443 ${host} ${request.url}`);
  let size = 0;
  request.on("data", data => size += data.length);
  request.on("end", () => response.end(`hello ${host} ${request.method} ${size} HTTP/${request.httpVersionMajor}`));
});
server.on("error", () => {});
server.on("sessionError", () => {});
server.listen(9443, "0.0.0.0", () => console.log("ready"));
"""


async def start_http2_server():
    node = await asyncio.create_subprocess_exec("/usr/bin/node", "-e", HTTP2_SERVER, directory,
                                                stdout=asyncio.subprocess.PIPE)
    await node.stdout.readline()
    return node


async def main():
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(NameServer, ("0.0.0.0", 53))
    await loop.create_datagram_endpoint(Datagrams, ("0.0.0.0", 9999))
    context = tls_context()
    for port in (80, 8080):
        await asyncio.start_server(serve_http, "0.0.0.0", port)
    for port in (443, 8443):
        await asyncio.start_server(serve_http, "0.0.0.0", port, ssl=context)
    await asyncio.start_server(serve_echo, "0.0.0.0", 7000)
    os.chmod(f"{directory}/ca.pem", 0o644)
    with open(f"{directory}/log", "w", encoding="utf-8"):
        pass
    os.chmod(f"{directory}/log", 0o666)
    node = await start_http2_server() if os.path.exists("/usr/bin/node") else None
    command = await asyncio.create_subprocess_exec(*sys.argv[2:])
    code = await command.wait()
    if node:
        node.kill()
        await node.wait()
    return code


if os.environ.get("OUTSIDE_WORLD") != "entered":
    os.environ["OUTSIDE_WORLD"] = "entered"
    me = [sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
    os.execvp("unshare", ["unshare", "--net", "--mount", *me])
del os.environ["OUTSIDE_WORLD"]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for address in ON_LOOPBACK:
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
with open(f"{directory}/resolv.conf", "w", encoding="utf-8") as file:
    file.write("nameserver 127.0.0.1\n")
subprocess.run(["mount", "--bind", f"{directory}/resolv.conf", "/etc/resolv.conf"], check=True)
sys.exit(asyncio.run(main()))
