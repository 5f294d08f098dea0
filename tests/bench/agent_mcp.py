#!/usr/bin/env python3
"""./dev bench agent, the part `mcp`: what `semel mcp` and /mcp add to a tool call, over a direct call to the same server, and the memory of a session.

The server does nothing but answer, so that what is measured is semel. One call after the other; the ways take turns, so that what disturbs the machine
disturbs all of them. A call is new (claimed, made, kept: durable before and after), known (replayed) or only reads (passes)."""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

from servers import Semel, fresh_dir

WARM = 20
SESSIONS = 20
POLICY = 'destinations: {{up: {{provider: http, url: "http://127.0.0.1:{port}", allow_private: true}}}}\nmcp: {{s: {{destination: up, tools: {{look: {{read_only: true}}}}}}}}\n'


def result(number):
    return b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}' % number


def serve_stdio():
    """The server itself: answers by the id alone, without reading the rest."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "tools/list" in message.get("method", ""):
            sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"act"}]}}\n' % message["id"])
        else:
            sys.stdout.buffer.write(result(b"%d" % message["id"]) + b"\n")
        sys.stdout.buffer.flush()


class Stdio:
    """A client of a server on pipes."""

    def __init__(self, words, env=None):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.number = 0
        self.ask("tools/list", {})

    def ask(self, method, params):
        self.number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode() + b"\n"
        start = time.perf_counter()
        self.process.stdin.write(line)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        taken = time.perf_counter() - start
        if b'"result"' not in answer:
            sys.exit(f"not a result: {answer!r}")
        return taken

    def call(self, tool, arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


class HttpServer:
    """Answers every POST at once; a GET is a stream that stays open."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.talk, args=(peer,), daemon=True).start()

    def talk(self, peer):
        got = b""
        while True:
            head, found, rest = got.partition(b"\r\n\r\n")
            if not found:
                more = peer.recv(65536)
                if not more:
                    return
                got += more
                continue
            if head.startswith(b"GET"):
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n")
                got = rest
                continue
            length = int(next(line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")))
            if len(rest) < length:
                got += peer.recv(65536)
                continue
            body = result(b"%d" % json.loads(rest[:length])["id"])
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            got = rest[length:]


class Http:
    def __init__(self, port, path):
        self.connection, self.path, self.number = http.client.HTTPConnection("127.0.0.1", port, timeout=30), path, 0

    def call(self, tool, arguments):
        self.number += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        start = time.perf_counter()
        self.connection.request("POST", self.path, body, {"Content-Type": "application/json", "Semel-Run": "bench"})
        answer = self.connection.getresponse().read()
        taken = time.perf_counter() - start
        if b'"result"' not in answer:
            sys.exit(f"not a result: {answer!r}")
        return taken

    def stop(self):
        self.connection.close()


def measure(peers, calls):
    """[(place, kind, p50 µs, p99 µs)]"""
    taken = {}
    for peer in peers.values():
        peer.call("act", {"key": "known"})
    for number in range(calls + WARM):
        for place, peer in peers.items():
            for kind, tool, arguments in (("new", "act", {"n": number}), ("known", "act", {"key": "known"}), ("reads", "look", {"n": 1})):
                took = peer.call(tool, arguments) * 1e6
                if number >= WARM:
                    taken.setdefault((place, kind), []).append(took)
    return [(*key, cuts[49], cuts[98]) for key, cuts in ((key, statistics.quantiles(values, n=100)) for key, values in taken.items())]


def proportional_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def family(pid):
    """The process and the one under it that works; not the server."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid, *map(int, file.read().split())]


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def listen(port, count):
    made = []
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/mcp/s")
        connection.getresponse().readline()
        made.append(connection)
    return made


def run(binary, directory, calls):
    upstream = HttpServer()
    fresh_dir(directory)
    semel = Semel(binary, os.path.join(directory, "data"))
    semel.policy = os.path.join(directory, "semel.yaml")
    with open(semel.policy, "w", encoding="ascii") as policy:
        policy.write(POLICY.format(port=upstream.port))
    semel.start()
    server, peers, memory, more = [sys.executable, os.path.abspath(__file__), "--serve"], {}, {}, []
    try:
        with_daemon, alone = {"SEMEL_URL": f"http://127.0.0.1:{semel.port}"}, {"SEMEL_URL": "http://127.0.0.1:1"}
        peers["stdio direct"] = Stdio(server)
        peers["stdio, daemon"] = Stdio([binary, "mcp", "--", *server], with_daemon)
        peers["stdio, data"] = Stdio([binary, "mcp", "--data", os.path.join(directory, "alone"), "--", *server], alone)
        peers["http direct"] = Http(upstream.port, "/mcp")
        peers["http, /mcp"] = Http(semel.port, "/mcp/s")
        rows = measure(peers, calls)
        for _ in range(SESSIONS):
            more.append(Stdio([binary, "mcp", "--", *server], with_daemon))
            more[-1].call("act", {"n": 1})
        memory["semel mcp, after a call (Pss)"] = statistics.mean(sum(proportional_kb(pid) for pid in family(one.process.pid)) for one in more)
        before = resident_kb(semel.process.pid)
        streams = listen(semel.port, 20 * SESSIONS)
        memory["/mcp, a client that listens"] = (resident_kb(semel.process.pid) - before) / len(streams)
        for stream in streams:
            stream.close()
    finally:
        for peer in [*peers.values(), *more]:
            peer.stop()
        semel.stop()
        upstream.listener.close()
    return rows, memory


def report(rows, memory):
    print(f"{'mcp':14} {'':6} {'p50 µs':>9} {'p99 µs':>9} {'added p50':>10} {'added p99':>10}")
    for place, kind, p50, p99 in rows:
        base = next(row for row in rows if row[:2] == (place.split()[0].rstrip(",") + " direct", kind))
        added = "" if place.endswith("direct") else f"{p50 - base[2]:10.0f} {p99 - base[3]:10.0f}"
        print(f"{place:14} {kind:6} {p50:9.0f} {p99:9.0f} {added}")
    for name, kilobytes in memory.items():
        print(f"memory per session: {name}: {kilobytes:.0f} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--dir", default="build/bench", help="where the data is, on a real disk")
    parser.add_argument("--json", help="write the figures here too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve_stdio()
        return
    directory = os.path.join(os.path.abspath(options.dir), "mcp")
    try:
        rows, memory = run(os.path.abspath(os.environ.get("SEMEL_BINARY", "build/semel")), directory, 100 if options.quick else 1000)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    report(rows, memory)
    if options.json:
        with open(options.json, "w", encoding="ascii") as out:
            json.dump({"mcp": [dict(zip(("place", "kind", "p50_us", "p99_us"), row)) for row in rows], "memory_kb": memory}, out, indent=1)


if __name__ == "__main__":
    main()
