#!/usr/bin/env python3
"""Records the answers of the reference tool in `expect` of every case in cases.json.

    python3 -m venv venv && venv/bin/pip install skills-ref==0.1.1
    tests/parity/record.py venv/bin/agentskills            # rewrite cases.json
    tests/parity/record.py venv/bin/agentskills --check    # only compare, exit 1 on a difference

This script writes `expect`, `free_after` (the message of the YAML parser follows: only the text before it is compared)
and `usage` (the reference prints its usage text: only the exit code and the empty stdout are compared). Everything else
is written by hand, above all `differs` and `ours`, where the answer of skillbox differs on purpose.
"""

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CASES = Path(__file__).with_name("cases.json")
FREE_AFTER = "Invalid YAML in frontmatter:"
TRACEBACK = "Traceback (most recent call last):"
EXCEPTION = re.compile(r"^(?:\w+\.)*(\w+Error)\b", re.MULTILINE)
USAGE_EXIT_CODE = 2
VERSIONS = """
import importlib.metadata, json, platform
names = ["skills-ref", "strictyaml", "click"]
print(json.dumps({"python": platform.python_version(), **{n: importlib.metadata.version(n) for n in names}}))
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", type=Path, help="the agentskills command")
    arguments.add_argument("--check", action="store_true", help="compare with cases.json instead of rewriting it")
    options = arguments.parse_args()
    command = options.command.absolute()

    document = json.loads(CASES.read_text(encoding="utf-8"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        recorded = list(pool.map(lambda case: record(case, command), document["cases"]))
    for case in recorded:
        if TRACEBACK in case["expect"]["stderr"] and case["differs"] is None:
            print(f"{case['name']}: the reference crashes; write the reason to `differs` and the answer of skillbox to `ours`", file=sys.stderr)

    if options.check:
        changed = [new["name"] for old, new in zip(document["cases"], recorded) if old != new]
        print("\n".join(changed) or f"{len(recorded)} cases unchanged")
        return 1 if changed else 0
    document = {"recorded_with": versions(command), "cases": recorded}
    CASES.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recorded)} cases recorded")
    return 0


def record(case: dict, command: Path) -> dict:
    """Returns the case with the answer of the reference, with its keys in a readable order."""
    expect = run(case, command)
    words = expect["stderr"].partition(FREE_AFTER)
    expect["stderr"] = words[0] + words[1]
    fields = {key: case[key] for key in ("name", "files", "cwd", "args") if key in case}
    fields["expect"] = expect
    answers = [expect, case.get("ours", expect)]
    if any(FREE_AFTER in answer["stderr"] for answer in answers):
        fields["free_after"] = FREE_AFTER
    if expect["exit_code"] == USAGE_EXIT_CODE:
        fields["usage"] = True
    fields["differs"] = case["differs"]
    if case["differs"] is not None:
        fields["ours"] = case["ours"]
    return fields


def run(case: dict, command: Path) -> dict:
    with tempfile.TemporaryDirectory(prefix="parity-") as directory:
        # The prompt contains resolved paths, so the directory must have no symbolic links.
        root = Path(directory).resolve()
        for entry in case["files"]:
            create_entry(root, entry)
        finished = subprocess.run(
            [command, *(argument.replace("$DIR", str(root)) for argument in case["args"])],
            cwd=root / case.get("cwd", "."),
            env={"PATH": os.environ["PATH"], "HOME": str(root), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return {
            "stdout": redact(finished.stdout, root),
            "stderr": without_frames(redact(finished.stderr, root)),
            "exit_code": finished.returncode,
        }


def create_entry(root: Path, entry: dict) -> None:
    path = root / entry["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.get("dir"):
        path.mkdir(exist_ok=True)
    elif "symlink_to" in entry:
        path.symlink_to(entry["symlink_to"].replace("$DIR", str(root)))
    elif "base64" in entry:
        path.write_bytes(base64.b64decode(entry["base64"]))
    else:
        path.write_bytes(entry["text"].encode("utf-8"))


def redact(output: bytes, root: Path) -> str:
    return output.decode("utf-8").replace(str(root), "$DIR")


def without_frames(stderr: str) -> str:
    """Reduces a traceback to the class of its exception: frames and message depend on the installation."""
    if TRACEBACK not in stderr:
        return stderr
    return f"{TRACEBACK} {EXCEPTION.findall(stderr)[-1]}\n"


def versions(command: Path) -> dict:
    interpreter = command.read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")
    return json.loads(subprocess.run([interpreter, "-c", VERSIONS], check=True, capture_output=True).stdout)


if __name__ == "__main__":
    sys.exit(main())
