#!/usr/bin/env python3
"""Runs a batch on a queue of three servers while workers, servers and the submitter are killed at random.

Every job must have exactly one result, none may be lost, and no more jobs may run again than were held by what was
killed. With --partition, one server is in a network namespace of its own and is cut off once (needs root). Prints one
line of JSON, and exits with 0 if everything holds.
"""

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

NODES = 3
NAMESPACE = f"skillbox-faults-{os.getpid()}"
# Addresses for tests of networks (RFC 2544), which are not routed.
OUTSIDE, INSIDE = "198.18.213.1", "198.18.213.2"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Processes:
    """Everything that this test starts, so that it can be killed and started again."""

    def __init__(self, args, root):
        self.args, self.root, self.running = args, root, {}
        ports = free_ports(2 * NODES)
        outside = OUTSIDE if args.partition else "127.0.0.1"
        hosts = [outside, outside, INSIDE if args.partition else outside]
        self.clients = [f"{host}:{port}" for host, port in zip(hosts, ports)]
        routes = [f"{host}:{port}" for host, port in zip(hosts, ports[NODES:])]
        for node in range(NODES):
            others = ", ".join(f'"nats://{route}"' for route in routes)
            with open(f"{root}/nats-{node}.conf", "w") as file:
                file.write(f'server_name: n{node}\nlisten: "{self.clients[node]}"\n')
                file.write(f'jetstream {{ store_dir: "{root}/nats-{node}", sync_interval: always }}\n')
                file.write(f'cluster {{ name: faults, listen: "{routes[node]}", routes: [{others}] }}\n')
        self.queue = ["--queue", ",".join(f"nats://{client}" for client in self.clients), "--artifacts", f"{root}/store"]

    def start(self, name):
        kind, _, number = name.partition("-")
        inside = kind == "node" and number == str(NODES - 1) and self.args.partition
        command = {
            "node": [self.args.nats, "-c", f"{self.root}/nats-{number}.conf"],
            "worker": [self.args.skillbox, "--state-dir", f"{self.root}/{name}", "--skills", f"{self.root}/none", "worker",
                       *self.queue, "--jobs", str(self.args.slots)],
            "submitter": [self.args.skillbox, "--state-dir", f"{self.root}/{name}", "--skills", f"{self.root}/skills",
                          "batch", "run", f"{self.root}/jobs.jsonl", *self.queue, "--name", "faults", "--resume", "--json",
                          "--out", f"{self.root}/out", "--ack-wait", str(self.args.ack_wait)],
        }[kind]
        if inside:
            command = ["ip", "netns", "exec", NAMESPACE, *command]
        with open(f"{self.root}/{name}.log", "ab") as log, open(f"{self.root}/{name}.out", "ab") as out:
            self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def kill(self, name):
        process = self.running[name]
        process.kill()
        process.wait()

    def end(self):
        for name in list(self.running):
            self.kill(name)


def results(root):
    try:
        return os.listdir(f"{root}/store/batches/faults/results")
    except FileNotFoundError:
        return []


def starts_again(root):
    """The number of times that a job was started again."""
    directory = f"{root}/store/batches/faults/starts"
    return sum(len(files) for _, _, files in os.walk(directory))


def write_jobs(root, count):
    os.makedirs(f"{root}/skills/faults")
    os.makedirs(f"{root}/none")
    with open(f"{root}/skills/faults/SKILL.md", "w") as file:
        file.write("---\nname: faults\ndescription: A skill of the fault test.\n---\n")
    with open(f"{root}/jobs.jsonl", "w") as file:
        for index in range(count):
            job = {"id": f"j{index}", "skill": "faults", "command": f"echo {index} > out/number"}
            file.write(json.dumps(job) + "\n")


def run(args, root):
    write_jobs(root, args.jobs)
    processes = Processes(args, root)
    if args.partition:
        ip("netns", "add", NAMESPACE)
        ip("link", "add", "skb-faults", "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE)
        ip("addr", "add", f"{OUTSIDE}/30", "dev", "skb-faults")
        ip("link", "set", "skb-faults", "up")
        for words in (["addr", "add", f"{INSIDE}/30", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            ip("-n", NAMESPACE, *words)
    chance = random.Random(args.seed)
    names = [f"node-{node}" for node in range(NODES)] + [f"worker-{worker}" for worker in range(args.workers)] + ["submitter"]
    kills, held, cut, down = [], 0, None, {}
    begin = time.monotonic()
    # Kills are spread over the results, so that they happen while jobs run.
    marks = sorted(chance.randrange(1, max(2, args.jobs * 9 // 10)) for _ in range(args.kills))
    cut_mark = args.jobs // 2 if args.partition else None
    try:
        for name in names:
            processes.start(name)
        while True:
            if time.monotonic() - begin > args.deadline:
                raise SystemExit(f"not done after {args.deadline} s: {len(results(root))} results; kills: {kills}")
            now = time.monotonic()
            for name, since in list(down.items()):
                # Only one server is down at a time: the others are most of the servers.
                if now - since > args.downtime:
                    processes.start(name)
                    del down[name]
            if cut and now - cut > args.downtime:
                ip("link", "set", "skb-faults", "up")
                cut = None
            done = len(results(root))
            nodes_are_up = not cut and not any(name.startswith("node") for name in down)
            if cut_mark is not None and done >= cut_mark and nodes_are_up:
                ip("link", "set", "skb-faults", "down")
                cut, cut_mark = now, None
                held += args.workers * args.slots * 2
            elif marks and done >= marks[0]:
                choices = [name for name in names if name not in down and (nodes_are_up or not name.startswith("node"))]
                name = chance.choice(choices)
                marks.pop(0)
                kills.append(name)
                processes.kill(name)
                down[name] = now
                # A worker holds at most two jobs for each slot. A server can lose the heartbeats of all.
                held += {"worker": args.slots * 2, "node": args.workers * args.slots * 2, "submitter": 0}[name.split("-")[0]]
            submitter = processes.running["submitter"]
            if "submitter" not in down and submitter.poll() is not None:
                if submitter.returncode == 0 and not marks and cut_mark is None:
                    break
                if submitter.returncode != 0:
                    processes.start("submitter")
                elif marks or cut_mark is not None:
                    break
            time.sleep(0.02)
        took = time.monotonic() - begin
    finally:
        processes.end()
        if args.partition:
            subprocess.run(["ip", "link", "del", "skb-faults"], check=False)
            subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)
    lines = [json.loads(line) for line in open(f"{root}/out/results.jsonl")]
    wrong = [line["id"] for line in lines
             if line["status"] != "ok"
             or open(f"{root}/out/jobs/{line['id']}/out/number").read().strip() != line["id"][1:]]
    again = starts_again(root)
    report = {
        "jobs": args.jobs, "manifests": len(results(root)), "lines": len(lines),
        "distinct_jobs": len({line["id"] for line in lines}), "wrong": wrong[:5],
        "kills": {kind: sum(name.startswith(kind) for name in kills) for kind in ("node", "worker", "submitter")},
        "partitions": int(args.partition), "started_again": again, "held_at_the_kills": held, "seconds": round(took, 1),
    }
    print(json.dumps(report))
    holds = (report["manifests"] == report["lines"] == report["distinct_jobs"] == args.jobs
             and not wrong and again <= held and len(kills) == args.kills)
    return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skillbox", required=True)
    parser.add_argument("--nats", required=True)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--partition", action="store_true")
    parser.add_argument("--ack-wait", type=int, default=20)
    parser.add_argument("--downtime", type=float, default=3.0)
    parser.add_argument("--deadline", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix="skillbox-faults-")
    try:
        code = run(args, root)
    finally:
        if os.environ.get("KEEP_FILES") != "1":
            shutil.rmtree(root, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
