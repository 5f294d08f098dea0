#!/usr/bin/env python3
"""./dev bench nodes: two nodes on one PostgreSQL. How soon does one know what the other did, and what does that cost?

    nodes.py [--quick] [--rounds N] [--only hand-over,help,claims,outbox] [--against BINARY] [--json FILE] [--dir DIR]

Hand-over: one node holds a claim, another waits for it; from the answer to `confirm` until the one who waits has the result. Help: one node has its hands
full with a slow call; from the 202 of the next effect until another node delivers it. Claims: durable cycles per second on one node, and on both at once.
Outbox: effects per second from the first to the last arrival, handed in at one node. With --against another build of semel takes turns with this one in
short slices, so that what disturbs the machine disturbs both; the median slice counts."""

import argparse
import concurrent.futures
import http.client
import http.server
import json
import os
import random
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it was

from ledger import load, new_seed
from servers import Postgres, Semel, fresh_dir, free_port

POLICY = """version: 1
destinations:
  quick: {{provider: http, url: "http://127.0.0.1:{port}", allow_private: true, timeout: 10s, concurrency: 32}}
  slow: {{provider: http, url: "http://127.0.0.1:{port}/slow", allow_private: true, timeout: 10s, concurrency: 1}}
"""
SLOW_SECONDS = 0.6


class Sink:
    """Notes when which effect came; a slow one is answered late."""

    def __init__(self):
        self.arrivals, self.changed = {}, threading.Condition()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                ref = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["ref"]
                with sink.changed:
                    sink.arrivals.setdefault(ref, time.monotonic())
                    sink.changed.notify_all()
                if self.path.startswith("/slow"):
                    time.sleep(SLOW_SECONDS)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, refs, seconds=60):
        with self.changed:
            if not self.changed.wait_for(lambda: all(ref in self.arrivals for ref in refs), seconds):
                raise SystemExit("nodes.py: an effect did not arrive in time")
            return [self.arrivals[ref] for ref in refs]


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


class Pair:
    """Two nodes of one build."""

    def __init__(self, name, binary, postgres, sink, directory):
        self.name, self.sink, self.found = name, sink, {}
        policy = os.path.join(directory, "nodes.yaml")
        with open(policy, "w", encoding="ascii") as f:
            f.write(POLICY.format(port=sink.server.server_port))
        db = postgres.make_database(name)
        self.nodes = [Semel(binary, os.path.join(directory, f"{name}-{n}"), db) for n in range(2)]
        for node in self.nodes:
            node.policy = policy
            node.start()
        self.clients = []
        self.waiting = concurrent.futures.ThreadPoolExecutor(1)
        self.count = 0

    def key(self):
        self.count += 1
        return f"{self.name}-{self.count}"

    def note(self, what, value):
        self.found.setdefault(what, []).append(value)

    def connect(self):
        """Anew for each slice: the nodes close what is idle."""
        self.clients = [Client(node.port) for node in self.nodes]

    def hand_over(self):
        claim = {"workflow": "wake", "key": self.key()}
        status, held = self.clients[0].post("/v1/claims", claim)
        assert status == 201, held
        waiter = self.waiting.submit(lambda: (self.clients[1].post("/v1/claims", {**claim, "wait_ms": 30000}), time.monotonic()))
        time.sleep(0.06 + random.random() * 0.2)  # not in step with anybody's clock
        status, _ = self.clients[0].post(f"/v1/claims/{held['intent']}/confirm", {"fence": held["fence"], "result": {"n": 1}})
        assert status == 200
        confirmed = time.monotonic()
        (status, answer), woken = waiter.result()
        assert (status, answer["answer"]) == (200, "replay"), answer
        self.note("hand-over ms", (woken - confirmed) * 1000)

    def help(self):
        first, second = self.key(), self.key()
        self.clients[0].post("/v1/effects", {"destination": "slow", "key": first, "payload": {"ref": first}})
        self.sink.wait([first])
        time.sleep(0.02 + random.random() * 0.2)
        status, _ = self.clients[0].post("/v1/effects", {"destination": "slow", "key": second, "payload": {"ref": second}})
        assert status == 202
        accepted = time.monotonic()
        self.note("help ms", max(0.0, self.sink.wait([second])[0] - accepted) * 1000)
        time.sleep(SLOW_SECONDS + 0.1)

    def claims(self, seconds):
        self.note("claims/s, one node", load(self.nodes[0], "fresh", clients=64, seconds=seconds, warm=100, seed=new_seed())["rate"])
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            rates = [both.submit(load, node, "fresh", clients=32, seconds=seconds, warm=100, seed=new_seed()) for node in self.nodes]
            self.note("claims/s, both nodes", sum(rate.result()["rate"] for rate in rates))

    def outbox(self, effects):
        keys = [self.key() for _ in range(effects)]
        port, begun = self.nodes[0].port, time.monotonic()

        def hand_in(part):
            client = Client(port)
            for key in part:
                status, _ = client.post("/v1/effects", {"destination": "quick", "key": key, "payload": {"ref": key}})
                assert status == 202

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(hand_in, [keys[n::8] for n in range(8)]))
        self.note("effects/s", effects / (max(self.sink.wait(keys, 300)) - begun))

    def stop(self):
        for node in self.nodes:
            node.stop()


WORK = {
    "hand-over": lambda pair: [pair.hand_over() for _ in range(10)],
    "help": lambda pair: [pair.help() for _ in range(3)],
    "claims": lambda pair: pair.claims(3),
    "outbox": lambda pair: pair.outbox(600),
}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default=",".join(WORK), type=lambda text: [part for part in text.split(",") if WORK[part]])
    parser.add_argument("--against", metavar="BINARY", help="another build of semel")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--dir", default="build/bench-nodes")
    given = parser.parse_args()
    given.rounds = given.rounds or (3 if given.quick else 9)
    return given


def measure(pairs, given):
    for _ in range(given.rounds):
        for part in given.only:
            for pair in random.sample(pairs, len(pairs)):
                pair.connect()
                WORK[part](pair)


def main():
    given = options()
    directory = fresh_dir(os.path.abspath(given.dir))
    os.chmod(directory, 0o755)
    builds = [("this", os.environ["SEMEL_BINARY"])] + ([("against", given.against)] if given.against else [])
    postgres, pairs = Postgres(os.path.join(directory, "postgres")).start(), []
    try:
        sink = Sink()
        pairs += [Pair(name, binary, postgres, sink, directory) for name, binary in builds]
        measure(pairs, given)
    finally:
        for pair in pairs:
            pair.stop()
        postgres.stop()
    for what in pairs[0].found:
        for pair in pairs:
            values = sorted(pair.found[what])
            print(f"{what:22} {pair.name:8} median {statistics.median(values):10.1f}   p99 {values[len(values) * 99 // 100]:10.1f}   of {len(values)}")
    if given.json:
        with open(given.json, "w", encoding="ascii") as f:
            json.dump({pair.name: pair.found for pair in pairs}, f)


if __name__ == "__main__":
    main()
