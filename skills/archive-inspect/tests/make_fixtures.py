#!/usr/bin/env python3
"""Write the archives of this directory again; the same Python and zlib give the same bytes.

Some of them are hostile. They are only ever listed, never unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def tar_bytes(members: list[tuple[str, dict[str, object], bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Build a tar archive of members with fixed times and owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, changes, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in changes.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_bytes(members: list[tuple[str, int, bytes]]) -> bytes:
    """Build a zip archive of names, modes and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, mode, content in members:
            info = zipfile.ZipInfo(name, (2024, 1, 2, 3, 4, 6))
            info.create_system = 3
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED if len(content) > 20 else zipfile.ZIP_STORED
            archive.writestr(info, content)
    return buffer.getvalue()


def good_members() -> list[tuple[str, dict[str, object], bytes]]:
    """An ordinary project."""
    return [
        ("project", {"type": tarfile.DIRTYPE, "mode": 0o755}, b""),
        ("project/README", {"mode": 0o644}, b"Read me.\n" * 20),
        ("project/src/größe-大きさ.py", {"mode": 0o644}, b"print('hello')\n"),
        ("project/" + "deep/" * 30 + "file", {"mode": 0o644}, b"x"),
        ("project/latest", {"type": tarfile.SYMTYPE, "linkname": "src/größe-大きさ.py", "mode": 0o777}, b""),
        ("project/copy", {"type": tarfile.LNKTYPE, "linkname": "project/README", "mode": 0o644}, b""),
    ]


def hostile_members() -> list[tuple[str, dict[str, object], bytes]]:
    """One member for each danger."""
    link = {"type": tarfile.SYMTYPE}
    return [
        ("../../etc/cron.d/evil", {}, b"* * * * * root sh\n"),
        ("/root/.ssh/authorized_keys", {}, b"ssh-rsa AAAA\n"),
        ("out", {**link, "linkname": "/etc"}, b""),
        ("out/passwd", {}, b"root::0:0\n"),
        ("up", {**link, "linkname": "a/../../.."}, b""),
        ("inner", {**link, "linkname": "up"}, b""),
        ("loop", {**link, "linkname": "loop"}, b""),
        ("hard", {"type": tarfile.LNKTYPE, "linkname": "../shadow"}, b""),
        ("dev/sda", {"type": tarfile.BLKTYPE, "devmajor": 8, "devminor": 0}, b""),
        ("pipe", {"type": tarfile.FIFOTYPE}, b""),
        ("bin/su", {"mode": 0o4755}, b"\x7fELF"),
        ("README", {}, b"1"),
        ("readme", {}, b"2"),
        ("README", {}, b"3"),
        ("README/inside", {}, b"4"),
        (".git/hooks/post-checkout", {"mode": 0o755}, b"#!/bin/sh\n"),
        ("photo\u202egpj.exe", {}, b"MZ"),
        ("line\nbreak", {}, b""),
        ("bad-\udcff-bytes", {}, b""),
        ("aux.txt", {"mode": 0o666}, b""),
        ("C:\\Windows\\evil.dll", {}, b""),
        ("n" * 300, {}, b""),
        ("inner.tar.gz", {}, b"\x1f\x8b"),
    ]


def hostile_zip() -> bytes:
    """A link, a local header with another name, shared data, and a size that is a lie."""
    raw = bytearray(
        zip_bytes(
            [
                ("docs/readme.html", 0o100644, b"<p>hello</p>\n" * 10),
                ("..\\..\\evil.bat", 0o100644, b"@echo off\n"),
                ("link", 0o120777, b"../../../etc/passwd"),
                ("tool", 0o104755, b"#!/bin/sh\nexit 0\n"),
                ("honest.gif", 0o100644, b"GIF89a"),
                ("small", 0o100644, b"\0" * 50_000),
                ("shared", 0o100644, b"twice"),
            ]
        )
    )
    local = raw.find(b"honest.gif")
    raw[local : local + 10] = b"hidden.exe"
    directory = raw.rfind(b"PK\x01\x02", 0, raw.rfind(b"small"))
    struct.pack_into("<L", raw, directory + 24, 1000)
    last = raw.rfind(b"PK\x01\x02")
    first_offset = struct.unpack_from("<L", raw, directory + 42)[0]
    local_name = raw.find(b"small", first_offset)
    struct.pack_into("<L", raw, last + 42, first_offset)
    assert local_name == first_offset + 30
    return bytes(raw)


def write(name: str, data: bytes) -> None:
    """Write one fixture."""
    (HERE / name).write_bytes(data)
    print(f"{len(data):>8} {name}")


def main() -> int:
    """Write them all."""
    good = tar_bytes(good_members())
    gnu = tar_bytes(good_members(), tarfile.GNU_FORMAT)
    write("good.tar.bz2", bz2.compress(good))
    write(
        "good.zip", zip_bytes([("a/", 0o40755, b""), ("a/größe.txt", 0o100644, b"text " * 50), ("a/b", 0o100755, b"x")])
    )
    write("hostile.tar.xz", lzma.compress(tar_bytes(hostile_members())))
    write("hostile.zip", hostile_zip())
    write("bomb.gz", gzip.compress(bytes(4 * 1024 * 1024), mtime=0))
    write("cut.tar.gz", gzip.compress(gnu, 0, mtime=0)[:4000])
    write("damaged.tar", gnu[:2000] + b"damage" + gnu[2006:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
