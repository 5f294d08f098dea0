#!/usr/bin/env python3
"""./dev bench outbox: durable jobs, enqueued and delivered to a loopback sink, next to other queues in the same run.

Every system gets the same jobs from the same client (64 at a time, each acknowledged before the next) and calls the same sink, 64 at a time. Delivery is
measured at the sink, from the first to the last arrival. Then the same with a kill -9 of the worker at 40 %: how many jobs reached the sink twice,
how many never did within the time given, and how many effects there were at a provider that takes keys."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import datetime, timedelta, timezone

from servers import Missing, Postgres, Redis, Semel, stop_process

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
CONCURRENCY = 64
POLICY = """version: 1
destinations:
  sink: {{provider: http, url: "http://127.0.0.1:{sink}", allow_private: true, timeout: 5s, concurrency: {concurrency}{more}}}
"""
KEYED = ", capability: idempotent, key_header: Idempotency-Key, window: 24h"


class Sink:
    def __init__(self):
        self.process = subprocess.Popen(["node", os.path.join(PEERS, "sink.mjs")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.port = int(self.process.stdout.readline())

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def wait(self, jobs, seconds, field="jobs"):
        end = time.monotonic() + seconds
        while (got := self.ask("/stats"))[field] < jobs and time.monotonic() < end:
            time.sleep(0.05)
        return got

    def stop(self):
        stop_process(self.process)


def run_peer(name, role, environment):
    command = ["node", os.path.join(PEERS, "peer.mjs"), name, role]
    environment = {**os.environ, "CONCURRENCY": str(CONCURRENCY), **{k: str(v) for k, v in environment.items()}}
    if role == "work":
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Missing(f"{name}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["seconds"]


class Peer:
    """A queue with a worker process of its own."""

    def __init__(self, name, sink, environment):
        self.name, self.sink, self.environment = name, sink, {"SINK": sink.port, **environment}
        self.worker = None

    def enqueue(self, first, jobs):
        return run_peer(self.name, "enqueue", {**self.environment, "FROM": first, "JOBS": jobs})

    def begin(self):
        self.worker = run_peer(self.name, "work", self.environment)

    def kill(self):
        self.worker.send_signal(signal.SIGKILL)
        self.worker.wait()

    def stop(self):
        stop_process(self.worker, signal.SIGKILL)


class Ours:
    """semel delivers by itself; jobs are held back with `at` until all are enqueued."""

    def __init__(self, binary, directory, sink, db, more):
        self.sink = sink
        with open(directory + ".yaml", "w", encoding="ascii") as f:
            f.write(POLICY.format(sink=sink.port, concurrency=CONCURRENCY, more=more))
        self.server = Semel(binary, directory, db)
        self.server.policy = directory + ".yaml"
        self.server.start()

    def enqueue(self, first, jobs):
        self.due = datetime.now(timezone.utc) + timedelta(seconds=max(3, jobs / 1000))
        return run_peer("semel", "enqueue", {"SEMEL": self.server.port, "FROM": first, "JOBS": jobs, "AT": self.due.isoformat()})

    def begin(self):
        if self.server.process is None:
            self.server.start()
        elif datetime.now(timezone.utc) > self.due:
            print("  (delivery began before all jobs were enqueued: the machine is slower than 1,000 a second)", file=sys.stderr)

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.server.process = None

    def stop(self):
        self.server.stop()


def measure(system, sink, jobs, patience):
    sink.ask("/reset")
    seconds = system.enqueue(0, jobs)
    system.begin()
    got = sink.wait(jobs, patience)
    clean = {"enqueued/s": jobs / seconds, "delivered/s": got["jobs"] / max(0.001, (got["last"] - got["first"]) / 1000), "twice": got["twice"]}
    sink.ask("/reset")
    system.enqueue(jobs, jobs)
    system.begin()
    sink.wait(jobs * 4 // 10, patience, "requests")
    system.kill()
    time.sleep(0.5)
    system.begin()
    got = sink.wait(jobs, patience)
    time.sleep(1)
    got = sink.ask("/stats")
    return {**clean, "kill: twice": got["twice"], "kill: never": jobs - got["jobs"], "kill: effects": got["effects"]}


def systems(binary, directory, sink):
    """(name, a function that makes it). One that is not installed raises Missing."""
    servers = {}

    def redis():
        servers["redis"] = servers.get("redis") or Redis(directory + "/redis").start()
        return servers["redis"].port

    def postgres(name):
        servers["postgres"] = servers.get("postgres") or Postgres(directory + "/postgres").start()
        return servers["postgres"].make_database(name)

    rows = [
        ("semel, SQLite, sink takes keys", lambda: Ours(binary, directory + "/keyed", sink, None, KEYED)),
        ("semel, SQLite, sink takes none", lambda: Ours(binary, directory + "/plain", sink, None, "")),
        ("semel, PostgreSQL, sink takes keys", lambda: Ours(binary, directory + "/pg", sink, postgres("semel"), KEYED)),
        ("BullMQ, Redis appendfsync always", lambda: Peer("bullmq", sink, {"REDIS": redis()})),
        ("pg-boss, PostgreSQL", lambda: Peer("pgboss", sink, {"POSTGRES": postgres("boss")})),
        ("graphile-worker, PostgreSQL", lambda: Peer("graphile", sink, {"POSTGRES": postgres("graphile")})),
    ]
    return rows, servers


def main():
    parser = argparse.ArgumentParser(prog="./dev bench outbox")
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--quick", action="store_true", help="3,000 jobs")
    parser.add_argument("--only", default="", help="only systems whose name has this text")
    parser.add_argument("--patience", type=int, default=120, help="seconds to wait for the last job")
    options = parser.parse_args()
    jobs = 3000 if options.quick else options.jobs
    results = {}
    with tempfile.TemporaryDirectory(prefix="semel-bench-") as directory:
        os.chmod(directory, 0o755)
        sink = Sink()
        rows, servers = systems(os.environ["SEMEL_BINARY"], directory, sink)
        try:
            for name, make in rows:
                if options.only.lower() not in name.lower():
                    continue
                print(f"{name} …", file=sys.stderr)
                system = None
                try:
                    system = make()
                    results[name] = measure(system, sink, jobs, options.patience)
                except Missing as missing:
                    print(f"  {missing}", file=sys.stderr)
                finally:
                    if system is not None:
                        system.stop()
        finally:
            sink.stop()
            for server in servers.values():
                server.stop()
    print_table(results, jobs)


def print_table(results, jobs):
    columns = ["enqueued/s", "delivered/s", "twice", "kill: twice", "kill: never", "kill: effects"]
    print(f"\n{jobs} jobs, {CONCURRENCY} at a time")
    print(f"{'':36}" + "".join(f"{column:>15}" for column in columns))
    for name, row in results.items():
        print(f"{name:36}" + "".join(f"{row[column]:15,.0f}" for column in columns))
    best = max((row["delivered/s"] for name, row in results.items() if not name.startswith("semel")), default=None)
    if best:
        for name, row in results.items():
            if name.startswith("semel"):
                print(f"{name}: {row['delivered/s'] / best:.2f} of the fastest of the others")


if __name__ == "__main__":
    main()
