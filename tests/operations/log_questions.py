"""Asks the log of a server about many mixed runs, with jq alone, and compares the answers with what was run.

usage: log_questions.py SKILLBOX [RUNS]

Starts `skillbox serve --log info` with three tenants, lets eight clients start RUNS runs (default 1,000) of two skills that end
in every usual way, and asks: who ran what, which failed and why, and how long the runs of each skill took. Prints the questions
with their answers. The exit code is 1 if an answer is wrong.
"""
import collections
import concurrent.futures
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

CLIENTS = 8
TENANTS = ["alice", "bob", "carol"]
# What is run, how its run ends as the log names it, and how many of a hundred runs are of this kind.
KINDS = [
    ({"skill": "python-math", "command": "true"}, "exit 0", 58),
    ({"skill": "csv-report", "command": "echo a,b > out/t.csv", "output_files": ["out/*"]}, "exit 0", 20),
    ({"skill": "python-math", "command": "echo broken >&2; exit 3"}, "exit 3", 8),
    ({"skill": "csv-report", "command": "kill -SEGV $$"}, "signal null", 4),
    ({"skill": "python-math", "command": "sleep 60", "timeout": 1}, "timeout null", 2),
    ({"skill": "csv-report", "command": "exit 7"}, "exit 7", 4),
    ({"skill": "python-math", "command": "true", "cwd": "../.."}, "path_escape null", 2),
    ({"skill": "none", "command": "true"}, "unknown_skill null", 2),
]
IS_RUN = 'select(.message == "run")'
QUESTIONS = {
    "who ran what": f'[inputs | {IS_RUN}] | group_by([.tenant, .skill])[] | "\\(.[0].tenant) \\(.[0].skill) \\(length)"',
    "which failed, and why": f'[inputs | {IS_RUN} | select(.exit_code != 0)] | group_by([.skill, .error // .ended_by, .exit_code])[]'
    ' | "\\(.[0].skill): \\(.[0].error // .[0].ended_by) \\(.[0].exit_code) \\(length)"',
    "p99 by skill": f'[inputs | {IS_RUN} | select(.duration_ms)] | group_by(.skill)[]'
    ' | "\\(.[0].skill) \\(length) runs, p50 \\(map(.duration_ms) | sort | .[length / 2 | floor]) ms,'
    ' p99 \\(map(.duration_ms) | sort | .[(length * 0.99 | ceil) - 1]) ms"',
    "the slowest run": f'[inputs | {IS_RUN}] | max_by(.duration_ms // 0) | "\\(.tenant) \\(.skill) \\(.ended_by) \\(.command)"',
}


def kind_of(index):
    """The kind of a run: the kinds are spread evenly."""
    at = index * 37 % 100
    for request, ending, share in KINDS:
        if at < share:
            return request, ending
        at -= share
    raise AssertionError(index)


class Server:
    """A server whose log goes to a file."""

    def __init__(self, skillbox, directory):
        base = [skillbox, "--skills", "skills", "--state-dir", f"{directory}/state"]
        self.tokens, entries = [], []
        for tenant in TENANTS:
            token = json.loads(subprocess.check_output([*base, "--json", "serve", "token", tenant]))
            self.tokens.append(token["token"])
            entries.append(token["line"])
        config = f"{directory}/skillbox.toml"
        with open(config, "w") as file:
            file.write(f"tokens = {json.dumps(entries)}\n")
        self.log = f"{directory}/log"
        words = [*base, "--config", config, "--log", "info", "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.address = None
        listening = threading.Event()
        self.reader = threading.Thread(target=self.copy_log, args=(listening,))
        self.reader.start()
        assert listening.wait(60) and self.address, "it does not listen"

    def copy_log(self, listening):
        with open(self.log, "w") as log:
            for line in self.process.stderr:
                log.write(line)
                event = json.loads(line)
                if event.get("message") == "listening":
                    self.address = event["address"].removeprefix("http://")
                    listening.set()
        listening.set()

    def run(self, index, connection):
        """Makes one run; returns what the log should say about it."""
        request, ending = kind_of(index)
        tenant = index % len(TENANTS)
        headers = {"Authorization": f"Bearer {self.tokens[tenant]}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/runs?wait=600", json.dumps(request), headers)
        response = connection.getresponse()
        response.read()
        return TENANTS[tenant], request["skill"], ending

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.reader.join()


def make_runs(server, count):
    def work(client):
        connection = http.client.HTTPConnection(server.address, timeout=900)
        return [server.run(index, connection) for index in range(client, count, CLIENTS)]

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        return [run for made in clients.map(work, range(CLIENTS)) for run in made]


def expected_answers(runs):
    """The answers to the questions that do not depend on time."""
    who = collections.Counter((tenant, skill) for tenant, skill, _ in runs)
    why = collections.Counter((skill, ending) for _, skill, ending in runs if ending != "exit 0")
    return {
        "who ran what": sorted(f"{tenant} {skill} {count}" for (tenant, skill), count in who.items()),
        "which failed, and why": sorted(f"{skill}: {ending} {count}" for (skill, ending), count in why.items()),
    }


def main():
    skillbox, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as directory:
        server = Server(skillbox, directory)
        try:
            runs = make_runs(server, count)
        finally:
            server.stop()
        expected = expected_answers(runs)
        failed = 0
        for question, program in QUESTIONS.items():
            answer = subprocess.check_output(["jq", "-nr", program, server.log], text=True).splitlines()
            verdict = ""
            if question in expected:
                is_right = sorted(answer) == expected[question]
                failed += not is_right
                verdict = " (right)" if is_right else f" (WRONG, expected {expected[question]})"
            print(f"{question}{verdict}\n$ jq -nr '{program}'")
            print("\n".join(f"  {line}" for line in answer) + "\n")
    print(f"log: {count} runs, {len(QUESTIONS)} questions, {failed} wrong answers")
    return int(failed > 0)


sys.exit(main())
