#!/usr/bin/env python3
"""./dev bench intake: signed deliveries to /in/…, verified, staged and decided.

A delivery is acknowledged when its raw bytes are durable; deciding it comes behind. Measured: acknowledged per second and its latency, for one client and for
many, at an empty inbox and again when --events are stored; and how many are decided per second, to the last one. Events are only kept, not forwarded (forwarding
is ./dev bench outbox). For a yardstick, the same machine's durable claims per second stand beside it in the same run."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

from servers import Semel, rss_mb

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "app_secret"
POLICY = """version: 1
sources:
  bench: {preset: whatsapp, secret: env:BENCH_SECRET, verify_token: env:BENCH_SECRET}
"""


def load(semel, mode, **options):
    command = [os.environ["LOAD_BINARY"], *semel.load_arguments(), mode]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        sys.exit(f"load {mode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def deliver(semel, seed, **options):
    return load(semel, "deliver", source="bench", secret=SECRET, seed=seed, **options)


def metric(semel, prefix):
    with urllib.request.urlopen(f"http://127.0.0.1:{semel.port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().split("\n")
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(prefix))


def decided(semel):
    return metric(semel, "semel_inbound_events_total")


def fill(semel, count, seed):
    """Delivers `count` events; acknowledged and decided per second."""
    before, begin = decided(semel), time.monotonic()
    outcome = deliver(semel, seed, clients=64, count=count)
    while decided(semel) < before + count:
        time.sleep(0.01)
    return outcome, count / (time.monotonic() - begin)


def row(what, outcome, more=""):
    print(f"{what:44} {outcome['rate']:>10,.0f}/s   p50 {outcome['p50_us']:>7,} µs   p99 {outcome['p99_us']:>7,} µs{more}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000000, help="stored before the last measurement")
    parser.add_argument("--quick", action="store_true", help="50,000 events")
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    events = 50000 if options.quick else options.events
    os.environ["BENCH_SECRET"] = SECRET
    with tempfile.TemporaryDirectory() as directory:
        policy = os.path.join(directory, "semel.yaml")
        with open(policy, "w", encoding="utf-8") as f:
            f.write(POLICY)
        semel = Semel(os.environ["SEMEL_BINARY"], os.path.join(directory, "semel"))
        semel.policy = policy
        semel.start()
        try:
            row("claims, 64 clients (yardstick: two commits)", load(semel, "fresh", clients=64, seconds=options.seconds))
            row("deliveries, 1 client, empty", deliver(semel, 1, clients=1, seconds=options.seconds))
            outcome, rate = fill(semel, 20000, 2)
            row("deliveries, 64 clients, empty", outcome, f"   decided {rate:,.0f}/s")
            stored = int(decided(semel))
            print(f"filling up to {events:,} …", flush=True)
            outcome, rate = fill(semel, max(events - stored, 1), 3)
            row(f"deliveries, 64 clients, up to {events:,}", outcome, f"   decided {rate:,.0f}/s")
            row(f"deliveries, 1 client, at {events:,}", deliver(semel, 4, clients=1, seconds=options.seconds))
            outcome, rate = fill(semel, 20000, 5)
            row(f"deliveries, 64 clients, at {events:,}", outcome, f"   decided {rate:,.0f}/s")
            size = sum(os.path.getsize(os.path.join(semel.directory, name)) for name in os.listdir(semel.directory))
            print(f"memory {rss_mb(semel.process.pid):.0f} MB, disk {size / decided(semel):,.0f} bytes per event")
        finally:
            semel.stop()


main()
