#!/usr/bin/env python3
"""Query JSON and JSON lines with a subset of jq's language."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from jsonquery.access import Node  # noqa: E402
from jsonquery.lexer import QueryError  # noqa: E402
from jsonquery.parser import Parser  # noqa: E402
from jsonquery.reading import DECODER, Broken, decode, read_lines, read_values  # noqa: E402
from jsonquery.values import EvaluationError, Json, dump, is_true  # noqa: E402

MEBIBYTE = 1024 * 1024
OPERATOR_FIRST = re.compile(r"-[^A-Za-z-]")
LINE_SUFFIXES = (".jsonl", ".ndjson")


class UsageError(Exception):
    """The command line asks for something that cannot be done."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="query.py",
        description=__doc__,
        epilog="Example: python3 scripts/query.py '.users[] | select(.age > 30) | .name' work/inputs/users.json",
    )
    parser.add_argument("query", metavar="QUERY", nargs="?", help="the query; see references/grammar.md")
    parser.add_argument("files", metavar="FILE", nargs="*", help="JSON files; standard input without any")
    parser.add_argument("-f", "--query-file", metavar="FILE", help="read the query from a file")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the results here instead of to standard output")
    parser.add_argument(
        "-l", "--lines", action="store_true", help="one value a line; the default for .jsonl and .ndjson"
    )
    parser.add_argument("-s", "--slurp", action="store_true", help="read all inputs into one array")
    parser.add_argument("-n", "--null-input", action="store_true", help="read nothing; the input is null")
    parser.add_argument("-c", "--compact", action="store_true", help="one line for each result")
    parser.add_argument("-r", "--raw", action="store_true", help="print texts without quotes")
    parser.add_argument("-a", "--array", action="store_true", help="print all results as one array")
    parser.add_argument("-S", "--sort-keys", action="store_true", help="print the keys of objects in order")
    parser.add_argument(
        "-e", "--exit-status", action="store_true", help="exit with 1 when the last result is false or null"
    )
    parser.add_argument("--arg", nargs=2, action="append", default=[], metavar=("NAME", "TEXT"), help="bind $NAME")
    parser.add_argument("--argjson", nargs=2, action="append", default=[], metavar=("NAME", "JSON"), help="bind $NAME")
    parser.add_argument("--max-results", type=int, default=1_000_000, metavar="N", help="stop after N, default 1000000")
    parser.add_argument("--max-mib", type=int, default=64, metavar="N", help="largest input file, default 64 MiB")
    # A query such as -(.a) is no option.
    arguments = parser.parse_args([f" {word}" if OPERATOR_FIRST.match(word) else word for word in argv])
    if arguments.query_file and arguments.query is not None:
        arguments.files.insert(0, arguments.query)
    elif not arguments.query_file and arguments.query is None:
        parser.error("a query is needed")
    if arguments.max_mib < 1 or arguments.max_results < 1:
        parser.error("limits must be positive")
    return arguments


def read_file(name: str, limit: int) -> bytes:
    """Read one file whole, or standard input for a dash."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(limit + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    if len(raw) > limit:
        raise UsageError(f"{name} is larger than --max-mib allows")
    return raw


def bind(arguments: argparse.Namespace) -> dict[str, Json]:
    """Collect the variables of --arg and --argjson."""
    scope: dict[str, Json] = dict(arguments.arg)
    for name, text in arguments.argjson:
        try:
            scope[name] = DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--argjson {name} is not JSON") from error
    return scope


def compile_query(arguments: argparse.Namespace, scope: dict[str, Json]) -> Node:
    """Parse the query, and point at what is wrong with it."""
    text = arguments.query
    if arguments.query_file:
        text = read_file(arguments.query_file, MEBIBYTE).decode("utf-8-sig", "replace")
    try:
        return Parser(text, frozenset(scope)).parse_all()
    except QueryError as error:
        start = text.rfind("\n", 0, error.position) + 1
        line = text[start:].partition("\n")[0]
        pointer = " " * (error.position - start) + "^"
        raise UsageError(f"{error}\n  {line}\n  {pointer}") from error


class Run:
    """One query over all inputs, with what went wrong on the way."""

    def __init__(self, query: Node, scope: dict[str, Json], limit: int) -> None:
        self.query, self.scope, self.limit = query, scope, limit
        self.problems: list[str] = []
        self.problem_count = 0

    def complain(self, text: str) -> None:
        """Count a problem and keep the first few."""
        self.problem_count += 1
        if len(self.problems) < 20:
            self.problems.append(text)

    def inputs(self, arguments: argparse.Namespace) -> Iterator[tuple[str, Json]]:
        """Yield all inputs with their places."""
        if arguments.null_input:
            yield "no input", None
            return
        for name in arguments.files or ["-"]:
            text = decode(read_file(name, arguments.max_mib * MEBIBYTE))
            by_lines = arguments.lines or name.lower().endswith(LINE_SUFFIXES)
            shown = "standard input" if name == "-" else Path(name).name
            for item in read_lines(text) if by_lines else read_values(text):
                if isinstance(item, Broken):
                    self.complain(f"{shown}, {item.place}: {item.reason}")
                else:
                    yield f"{shown}, {item[0]}", item[1]

    def results(self, arguments: argparse.Namespace) -> Iterator[Json]:
        """Yield all outputs; an input that fails does not hide the next one."""
        inputs = self.inputs(arguments)
        if arguments.slurp and not arguments.null_input:
            inputs = iter([("all inputs", [value for _, value in inputs])])
        count = 0
        for place, value in inputs:
            try:
                for result in self.query.run(value, self.scope):
                    count += 1
                    if count > self.limit:
                        self.complain(f"stopped after {self.limit} results")
                        return
                    yield result
            except EvaluationError as error:
                self.complain(f"{place}: {error}")
            except RecursionError:
                self.complain(f"{place}: nested too deeply")


def render(value: Json, arguments: argparse.Namespace) -> str:
    """Spell one result."""
    if arguments.raw and isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return dump(value, None if arguments.compact else 2, sort=arguments.sort_keys)


def execute(arguments: argparse.Namespace) -> int:
    """Run the query, write the results and return the exit code."""
    scope = bind(arguments)
    run = Run(compile_query(arguments, scope), scope, arguments.max_results)
    last: Any = None
    with open_output(arguments.output) as output:
        if arguments.array:
            everything = list(run.results(arguments))
            last = everything[-1] if everything else None
            output.write(render(everything, arguments) + "\n")
        else:
            for last in run.results(arguments):
                output.write(render(last, arguments) + "\n")
        output.flush()
    for problem in run.problems:
        print(f"query.py: {problem}", file=sys.stderr)
    if run.problem_count > len(run.problems):
        print(f"query.py: {run.problem_count - len(run.problems)} more problems", file=sys.stderr)
    return 1 if run.problem_count or (arguments.exit_status and not is_true(last)) else 0


def open_output(name: str | None) -> Any:
    """Open the result file, or borrow standard output."""
    if name is None:
        return os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", newline="\n")
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        return open(name, "w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from error


def main(argv: list[str]) -> int:
    """Turn every failure into an exit code."""
    arguments = parse_arguments(argv)
    try:
        return execute(arguments)
    except UsageError as error:
        print(f"query.py: {error}", file=sys.stderr)
        return 2
    except RecursionError:
        print("query.py: a result is nested too deeply to print", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader closed early, as `head` does; that is no failure of ours.
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
