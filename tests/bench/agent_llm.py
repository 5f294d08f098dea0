#!/usr/bin/env python3
"""./dev bench agent, the part `llm`: what /llm/… adds to a model call, over a direct call to the same provider.

The provider stands on loopback and answers at once, so that what is measured is semel and not a model. One client, one connection, one call after the
other; direct, new to the memo (a miss: durable before and after the call) and known to it (a hit) take turns, so that what disturbs the machine
disturbs all of them. Every answer is compared byte for byte."""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import sys
import threading
import time

from servers import Semel, fresh_dir

POLICY = 'destinations: {{openai: {{url: "http://127.0.0.1:{port}", allow_private: true}}}}\n'
PATH = "/v1/chat/completions"
ANSWER = json.dumps({"id": "x", "choices": [{"message": {"role": "assistant", "content": "word " * 200}}], "usage": {"prompt_tokens": 9, "completion_tokens": 200}}).encode()
EVENTS = [b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'] * 50 + [b"data: [DONE]\n\n"]
WAYS = ("direct", "miss", "hit")


class Provider:
    """Answers every request at once: an answer of 1 KiB, or a stream of 51 events when the body asks for one."""

    def __init__(self):
        self.calls = 0
        plain = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in EVENTS) + b"0\r\n\r\n"
        stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
        self.answers = plain, stream
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        while block := connection.recv(65536):
            data += block
            head, found, body = data.partition(b"\r\n\r\n")
            if not found:
                continue
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            if len(body) < length:
                continue
            self.calls += 1
            connection.sendall(self.answers[b'"stream"' in body[:length]])
            data = body[length:]

    def stop(self):
        self.listener.close()


class Caller:
    def __init__(self, port, prefix=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = prefix + PATH

    def call(self, body, wanted):
        """Microseconds of one call."""
        begin = time.perf_counter_ns()
        self.connection.request("POST", self.path, body, {"Content-Type": "application/json", "Semel-Run": "bench"})
        got = self.connection.getresponse().read()
        taken = (time.perf_counter_ns() - begin) / 1000
        if got != wanted:
            sys.exit(f"a wrong answer: {got[:200]!r}")
        return taken


def body_of(number, stream):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": f"prompt {number} " + "x" * 2000}], **({"stream": True} if stream else {})}).encode()


def measure(binary, directory, calls):
    """[(what, way, p50 µs, p99 µs)]"""
    rows = []
    provider = Provider()
    fresh_dir(directory)
    os.makedirs(directory, exist_ok=True)
    semel = Semel(binary, os.path.join(directory, "data"))
    semel.policy = os.path.join(directory, "semel.yaml")
    with open(semel.policy, "w", encoding="ascii") as policy:
        policy.write(POLICY.format(port=provider.port))
    semel.start()
    try:
        direct, memo = Caller(provider.port), Caller(semel.port, "/llm/openai")
        for stream in (False, True):
            wanted = b"".join(EVENTS) if stream else ANSWER
            known, taken = body_of("known", stream), {way: [] for way in WAYS}
            memo.call(known, wanted)
            before = provider.calls
            for number in range(calls + 20):
                once = {"direct": direct.call(known, wanted), "miss": memo.call(body_of(number, stream), wanted), "hit": memo.call(known, wanted)}
                for way in WAYS:
                    if number >= 20:  # what comes first warms up
                        taken[way].append(once[way])
            if provider.calls - before != 2 * (calls + 20):
                sys.exit(f"the provider was called {provider.calls - before} times, not {2 * (calls + 20)}")
            for way in WAYS:
                cuts = statistics.quantiles(taken[way], n=100)
                rows.append(("stream" if stream else "answer", way, cuts[49], cuts[98]))
    finally:
        semel.stop()
        provider.stop()
    return rows


def report(rows):
    print(f"{'llm':8} {'':8} {'p50 µs':>9} {'p99 µs':>9} {'added p50':>10} {'added p99':>10}")
    for what, way, p50, p99 in rows:
        base = next(row for row in rows if row[:2] == (what, "direct"))
        added = "" if way == "direct" else f"{p50 - base[2]:10.0f} {p99 - base[3]:10.0f}"
        print(f"{what:8} {way:8} {p50:9.0f} {p99:9.0f} {added}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--dir", default="build/bench", help="where the data is, on a real disk")
    parser.add_argument("--json", help="write the figures here too")
    options = parser.parse_args()
    directory = os.path.join(os.path.abspath(options.dir), "llm")
    try:
        rows = measure(os.environ.get("SEMEL_BINARY", "build/semel"), directory, 300 if options.quick else 3000)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    report(rows)
    if options.json:
        with open(options.json, "w", encoding="ascii") as out:
            json.dump({"llm": [dict(zip(("what", "way", "p50_us", "p99_us"), row)) for row in rows]}, out, indent=1)


if __name__ == "__main__":
    main()
