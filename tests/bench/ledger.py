"""The ledger next to its peers, in one run: how many durable cycles, how many replays, how exact in a storm, how large, how soon ready.

    ledger.py [--quick] [--seconds S] [--rounds N] [--clients 1,16,64] [--rows 0,1000000] [--only peers,size,disk,syncs]
              [--dir DIR] [--json FILE] [--keep]

SEMEL_BINARY and LOAD_BINARY name the two programs. Rates are only comparable within one run; so are the ratios at the end.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it was

from prefill import prefill_postgres, prefill_sqlite
from servers import Missing, Postgres, Redis, Semel, cpu_seconds, fresh_dir, rss_mb, stop_process

REPLAY_KEYS = 10000
STORM_KEYS = 1000
MANY = 64
RESULT = '{"message_id":"' + "0" * 32 + '","body":"' + "f" * 141 + '"}'


class Wrong(Exception):
    """A server gave an answer it must not give: a rate without the guarantee is not a rate."""


def new_seed():
    return random.SystemRandom().randrange(1, 2**62)


def load(server, mode, **options):
    arguments = server.load_arguments()
    command = [os.environ["LOAD_BINARY"], *arguments[:2], mode, *arguments[2:]]
    for name, value in options.items():
        command += ["--" + name, str(value)]
    pid = server.process.pid
    before = cpu_seconds(pid)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Wrong(f"{mode}: {done.stderr.strip()[-600:]}")
    outcome = json.loads(done.stdout)
    outcome["server_cpu_us"] = (cpu_seconds(pid) - before) * 1e6 / max(1, outcome["ops"])
    return outcome


# ---- the rows of the table ----


class LoadRow:
    """A server that the load generator speaks to."""

    def __init__(self, name, server):
        self.name, self.server = name, server
        self.replay_seed = new_seed()

    def start(self):
        self.server.start()

    def cycles(self, clients, seconds):
        return load(self.server, "fresh", clients=clients, seconds=seconds, warm=200, seed=new_seed())

    def fill(self):
        load(self.server, "fill", clients=MANY, keys=REPLAY_KEYS, seed=self.replay_seed)

    def replays(self, seconds):
        return load(self.server, "replay", clients=MANY, keys=REPLAY_KEYS, seconds=seconds, warm=200, seed=self.replay_seed)

    def storm(self):
        outcome = load(self.server, "storm", clients=MANY, keys=STORM_KEYS, seed=new_seed())
        return {"keys": STORM_KEYS, "effects": outcome["won"], "twice": outcome["keys_more"], "never": outcome["keys_never"]}

    def stop(self):
        self.server.stop()


class PlainRow:
    """PostgreSQL as an application would use it by hand: two statements, two commits, driven by pgbench."""

    name = "PostgreSQL, two commits"
    database = "plain"

    def __init__(self, postgres, directory):
        self.postgres, self.directory = postgres, directory

    def start(self):
        fresh_dir(self.directory)
        os.chmod(self.directory, 0o777)
        self.postgres.make_database(self.database)
        self.postgres.sql("CREATE TABLE claim (workflow text NOT NULL, key text NOT NULL, state text NOT NULL, result text, "
                          "created timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (workflow, key)); CREATE TABLE effect (key text)",
                          self.database)

    def pgbench(self, script, clients, *length):
        path = os.path.join(self.directory, "script.sql")
        with open(path, "w", encoding="ascii") as f:
            f.write(script)
        for name in os.listdir(self.directory):
            if name.startswith("log."):
                os.unlink(os.path.join(self.directory, name))
        out = self.postgres.run(["pgbench", "-n", "-h", "127.0.0.1", "-p", str(self.postgres.port), "-U", "postgres", "-f", path,
                                 "-c", str(clients), "-j", "1" if clients == 1 else "2", "-M", "prepared", "-l",
                                 "--log-prefix=" + os.path.join(self.directory, "log"), *length, self.database], 300)
        return {"rate": float(re.search(r"^tps = ([\d.]+)", out, re.M)[1]), **self.latencies()}

    def latencies(self):
        times = []
        for name in os.listdir(self.directory):
            if name.startswith("log."):
                with open(os.path.join(self.directory, name), encoding="ascii") as f:
                    times += [int(line.split()[2]) for line in f]
        times.sort()
        return {"p50_us": times[len(times) // 2], "p99_us": times[len(times) * 99 // 100], "max_us": times[-1]} if times else {}

    def cycles(self, clients, seconds):
        return self.pgbench("\\set k random(1, 9223372036854775806)\n"
                            "INSERT INTO claim (workflow, key, state) VALUES ('bench', :k, 'claimed') ON CONFLICT DO NOTHING;\n"
                            f"UPDATE claim SET state = 'done', result = '{RESULT}' "
                            "WHERE workflow = 'bench' AND key = :k AND state = 'claimed';\n", clients, "-T", str(seconds))

    def fill(self):
        self.postgres.sql("INSERT INTO claim (workflow, key, state, result) "
                          f"SELECT 'replay', n, 'done', '{RESULT}' FROM generate_series(1, {REPLAY_KEYS}) AS n", self.database)

    def replays(self, seconds):
        return self.pgbench(f"\\set k random(1, {REPLAY_KEYS})\n"
                            "INSERT INTO claim (workflow, key, state) VALUES ('replay', :k, 'claimed') ON CONFLICT DO NOTHING;\n"
                            "SELECT state, result FROM claim WHERE workflow = 'replay' AND key = :k;\n", MANY, "-T", str(seconds))

    def storm(self):
        self.pgbench("\\set k :k + 1\n"
                     "WITH won AS (INSERT INTO claim (workflow, key, state) VALUES ('storm', :k, 'claimed') "
                     "ON CONFLICT DO NOTHING RETURNING key) INSERT INTO effect SELECT key FROM won;\n",
                     MANY, "-t", str(STORM_KEYS), "-D", "k=0")
        effects, keys = self.postgres.sql("SELECT count(*), count(DISTINCT key) FROM effect", self.database).strip().split("|")
        return {"keys": STORM_KEYS, "effects": int(effects), "twice": int(effects) - int(keys), "never": STORM_KEYS - int(keys)}

    def stop(self):
        pass


# ---- the measurements ----


class Bench:
    def __init__(self, options):
        self.options = options
        self.directory = fresh_dir(os.path.abspath(options.dir))
        os.chmod(self.directory, 0o755)
        self.postgres = None
        self.left_out = {}
        self.found = {"seconds": options.seconds, "rounds": options.rounds, "cores": os.cpu_count(), "load_before": os.getloadavg()[0],
                      "left_out": self.left_out}

    def path(self, name):
        return os.path.join(self.directory, name)

    def start_postgres(self):
        try:
            self.postgres = Postgres(self.path("postgres"))
            self.postgres.start()
        except Missing as missing:
            self.postgres.stop()
            self.postgres = None
            self.left_out["PostgreSQL"] = str(missing)

    def semel(self, name, db=None):
        return Semel(os.environ["SEMEL_BINARY"], self.path(name), db)

    def rows(self):
        rows = [LoadRow("semel, SQLite", self.semel("semel")), LoadRow("Redis, fsync always", Redis(self.path("redis")))]
        if self.postgres:
            rows.insert(1, LoadRow("semel, PostgreSQL", self.semel("semel-pg", self.postgres.make_database("semel"))))
            rows.append(PlainRow(self.postgres, self.path("plain")))
        started = []
        for row in rows:
            try:
                row.start()
                started.append(row)
            except Missing as missing:
                row.stop()
                self.left_out[row.name] = str(missing)
        return started

    # The peers take turns in short slices, so that what disturbs the machine disturbs all of them.
    def peers(self):
        rows = self.rows()
        try:
            table = {row.name: {} for row in rows}
            for clients in self.options.clients:
                self.turns(rows, table, f"W1 c={clients}", lambda row, c=clients: row.cycles(c, self.options.seconds))
            for row in rows:
                row.fill()
            self.turns(rows, table, f"W2 c={MANY}", lambda row: row.replays(self.options.seconds))
            for row in rows:
                table[row.name]["W3"] = row.storm()
                say(f"W3        {row.name:26}{table[row.name]['W3']}")
            self.found["peers"] = table
        finally:
            for row in rows:
                row.stop()

    def turns(self, rows, table, name, measure):
        slices = {row.name: [] for row in rows}
        for _ in range(self.options.rounds):
            for row in rows:
                slices[row.name].append(measure(row))
        for row in rows:
            ordered = sorted(slices[row.name], key=lambda outcome: outcome["rate"])
            middle = dict(ordered[(len(ordered) - 1) // 2])
            middle["rates"] = [round(outcome["rate"]) for outcome in slices[row.name]]
            table[row.name][name] = middle
            say(f"{name:10}{row.name:26}{middle['rate']:>10,.0f} /s   p50 {middle['p50_us']:>6} us   p99 {middle['p99_us']:>7} us   "
                f"slices {middle['rates']}")

    # ---- with many rows ----

    def size(self):
        kinds = ["SQLite"] + (["PostgreSQL"] if self.postgres else [])
        self.found["size"] = {}
        for kind in kinds:
            for rows in self.options.rows:
                if kind == "PostgreSQL" and rows > 1000000:
                    continue
                outcome = self.measure_size(kind, rows)
                self.found["size"][f"{kind}, {rows} rows"] = outcome
                say(f"size      semel, {kind}, {rows:,} rows: {outcome['rate']:,.0f} /s   p99 {outcome['p99_us']} us   "
                    f"ready {outcome['ready_ms']:.0f} ms   idle {outcome['idle_rss_mb']:.1f} MB   after {outcome['rss_mb']:.1f} MB   "
                    f"fill {outcome['prefill_s']:.0f} s")

    def measure_size(self, kind, rows):
        name = f"size-{kind.lower()}"
        fresh_dir(self.path(name))
        server = self.semel(name, self.postgres.make_database("size") if kind == "PostgreSQL" else None)
        try:
            server.start()
            load(server, "fresh", clients=1, count=1, seed=new_seed())
            server.stop()
            began = time.monotonic()
            if rows > 0 and kind == "SQLite":
                prefill_sqlite(os.path.join(server.directory, "semel.db"), rows)
            elif rows > 0:
                prefill_postgres(self.postgres, "size", rows)
            os.sync()
            prefill_s = time.monotonic() - began
            ready_ms = self.median_start(server)
            idle = rss_mb(server.process.pid)
            slices = [load(server, "fresh", clients=MANY, seconds=self.options.seconds, warm=200, seed=new_seed())
                      for _ in range(self.options.rounds)]
            outcome = sorted(slices, key=lambda one: one["rate"])[(len(slices) - 1) // 2]
            return {**outcome, "rates": [round(one["rate"]) for one in slices], "ready_ms": ready_ms, "idle_rss_mb": idle,
                    "rss_mb": rss_mb(server.process.pid), "prefill_s": prefill_s}
        finally:
            server.stop()
            if not self.options.keep:
                shutil.rmtree(self.path(name), ignore_errors=True)

    def median_start(self, server):
        times = []
        for _ in range(3):
            server.stop()
            server.start()
            times.append(server.ready_ms)
            time.sleep(0.2)
        return statistics.median(times)

    # ---- bytes on the disk ----

    def disk(self):
        self.found["disk"] = {"SQLite": self.disk_sqlite()}
        if self.postgres:
            self.found["disk"]["PostgreSQL"] = self.disk_postgres()
        for kind, outcome in self.found["disk"].items():
            say(f"disk      semel, {kind}: {outcome['bytes_per_intent']:.0f} bytes per intent after {outcome['intents']:,} cycles"
                + "".join(f"   {table} {size}" for table, size in outcome.get("tables", {}).items()))

    def disk_sqlite(self):
        fresh_dir(self.path("disk"))
        server = self.semel("disk")
        try:
            server.start()
            server.stop()
            path = os.path.join(server.directory, "semel.db")
            before = os.path.getsize(path)
            server.start()
            load(server, "fresh", clients=MANY, count=self.options.cycles, seed=new_seed())
            rss = rss_mb(server.process.pid)
            server.stop()
            size = sum(os.path.getsize(os.path.join(server.directory, name)) for name in os.listdir(server.directory)
                       if name.startswith("semel.db"))
            return {"intents": self.options.cycles, "bytes_per_intent": (size - before) / self.options.cycles, "rss_mb": rss}
        finally:
            server.stop()
            shutil.rmtree(self.path("disk"), ignore_errors=True)

    def disk_postgres(self):
        fresh_dir(self.path("disk-pg"))
        server = self.semel("disk-pg", self.postgres.make_database("disk"))
        size_of = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " \
                  "WHERE n.nspname = 'semel' AND c.relkind = 'r'"
        try:
            server.start()
            before = int(self.postgres.sql(size_of, "disk"))
            load(server, "fresh", clients=MANY, count=self.options.cycles, seed=new_seed())
            size = int(self.postgres.sql(size_of, "disk"))
            return {"intents": self.options.cycles, "bytes_per_intent": (size - before) / self.options.cycles,
                    "rss_mb": rss_mb(server.process.pid)}
        finally:
            server.stop()

    # ---- syncs ----

    # Tracing slows the daemon down; the counts per cycle at one client are exact, at many they show how well commits are shared.
    def syncs(self):
        if not shutil.which("strace"):
            self.left_out["syncs"] = "strace is not installed"
            return
        fresh_dir(self.path("syncs"))
        server = self.semel("syncs")
        self.found["syncs"] = {}
        try:
            server.start()
            for clients, count in ((1, 500), (MANY, 5000)):
                self.found["syncs"][f"c={clients}"] = self.count_syncs(server, clients, count)
                say(f"syncs     semel, SQLite, c={clients}: {self.found['syncs'][f'c={clients}']}")
        finally:
            server.stop()

    def count_syncs(self, server, clients, count):
        path = self.path(f"strace-{clients}")
        tracer = subprocess.Popen(["strace", "-f", "-c", "-o", path, "-e", "trace=fdatasync,fsync,pwrite64,write", "-p",
                                   str(server.process.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            tracer.stderr.readline()
            time.sleep(0.3)
            load(server, "fresh", clients=clients, count=count, seed=new_seed())
        finally:
            stop_process(tracer, signal.SIGINT)
        with open(path, encoding="ascii") as f:
            rows = [line.split() for line in f]
        calls = {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"}
        return {f"{name}_per_cycle": round(calls.get(name, 0) / count, 3) for name in ("fdatasync", "fsync", "pwrite64", "write")}

    def close(self):
        if self.postgres:
            self.postgres.stop()
        if not self.options.keep:
            shutil.rmtree(self.directory, ignore_errors=True)


# ---- what it means ----


def dig(found, *path):
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def ratio(found, name, ours, theirs):
    a, b = dig(found, "peers", ours, name, "rate"), dig(found, "peers", theirs, name, "rate")
    return a / b if a and b else None


SQLITE, POSTGRES, REDIS, PLAIN = "semel, SQLite", "semel, PostgreSQL", "Redis, fsync always", PlainRow.name


def twice(found):
    storms = [dig(found, "peers", name, "W3") for name in (SQLITE, POSTGRES)]
    storms = [storm for storm in storms if storm]
    return sum(storm["twice"] + storm["never"] for storm in storms) if storms else None


def cost_growth(found, rows):
    empty, full = dig(found, "size", "SQLite, 0 rows", "rate"), dig(found, "size", f"SQLite, {rows} rows", "rate")
    return empty / full if empty and full else None


def targets(found):
    """(what, value, first stage, second stage, at least?); a stage of None is only reported."""
    return [
        ("W1 c=1, SQLite / Redis", ratio(found, "W1 c=1", SQLITE, REDIS), 0.8, 1.0, True),
        ("W1 c=64, SQLite / PostgreSQL two commits", ratio(found, "W1 c=64", SQLITE, PLAIN), 2, 4, True),
        ("W1 c=64, SQLite / Redis", ratio(found, "W1 c=64", SQLITE, REDIS), 0.6, 1.3, True),
        ("W2 c=64, SQLite / Redis", ratio(found, "W2 c=64", SQLITE, REDIS), 0.5, 0.9, True),
        ("W1 c=64, on PostgreSQL / two commits", ratio(found, "W1 c=64", POSTGRES, PLAIN), 1.0, 2, True),
        ("W3, keys given out twice or never", twice(found), 0, 0, False),
        ("cost at 1M rows / at 0", cost_growth(found, 1000000), None, 1.3, False),
        ("cost at 10M rows / at 0", cost_growth(found, 10000000), None, 1.3, False),
        ("disk bytes per intent", dig(found, "disk", "SQLite", "bytes_per_intent"), None, 600, False),
        ("RSS at 1M intents, MB", dig(found, "size", "SQLite, 1000000 rows", "rss_mb"), None, 100, False),
        ("start to ready, empty, ms", dig(found, "size", "SQLite, 0 rows", "ready_ms"), 100, 50, False),
        ("start to ready, 1M intents, ms", dig(found, "size", "SQLite, 1000000 rows", "ready_ms"), 500, 200, False),
        ("idle RSS, MB", dig(found, "size", "SQLite, 0 rows", "idle_rss_mb"), 40, 30, False),
    ]


def verdict(value, stage, at_least):
    if stage is None:
        return "reported"
    met = value >= stage if at_least else value <= stage
    return f"{'>=' if at_least else '<='} {stage:g} {'yes' if met else 'NO'}"


def print_targets(found):
    say("")
    say(f"{'':44}{'value':>10}   {'first stage':16}second stage")
    found["targets"] = {}
    for what, value, first, second, at_least in targets(found):
        if value is None:
            continue
        found["targets"][what] = value
        say(f"{what:44}{value:>10.2f}   {verdict(value, first, at_least):16}{verdict(value, second, at_least)}")


def print_table(found):
    table = found.get("peers")
    if not table:
        return
    names = list(next(iter(table.values())))
    say("")
    say(f"{'per second':26}" + "".join(f"{name:>12}" for name in names if name != "W3") + "   W3 keys twice/never   W1 c=64 p50/p99 us")
    for row, cells in table.items():
        rates = "".join(f"{cells[name]['rate']:>12,.0f}" for name in names if name != "W3")
        many = cells.get(f"W1 c={MANY}", {})
        say(f"{row:26}{rates}   {cells['W3']['twice']}/{cells['W3']['never']:<20}{many.get('p50_us', '-')}/{many.get('p99_us', '-')}")


def say(text):
    print(text, flush=True)


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def read_options():
    parser = argparse.ArgumentParser(description="the ledger next to its peers, in one run")
    parser.add_argument("--quick", action="store_true", help="a smoke run of about a minute")
    parser.add_argument("--seconds", type=int, help="length of one slice (4; quick 1)")
    parser.add_argument("--rounds", type=int, help="slices per row, of which the median counts (3; quick 1)")
    parser.add_argument("--clients", type=numbers, default=[1, 16, 64])
    parser.add_argument("--rows", type=numbers, help="sizes of the ledger (0,1000000; quick 0,100000)")
    parser.add_argument("--cycles", type=int, help="cycles for the bytes per intent (100000; quick 20000)")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["peers", "size", "disk", "syncs"])
    parser.add_argument("--dir", default="build/bench", help="where the servers keep their data; a real disk")
    parser.add_argument("--json", help="write what was found to this file")
    parser.add_argument("--keep", action="store_true", help="leave the data and the logs")
    options = parser.parse_args()
    options.seconds = options.seconds or (1 if options.quick else 4)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.rows = options.rows or ([0, 100000] if options.quick else [0, 1000000])
    options.cycles = options.cycles or (20000 if options.quick else 100000)
    return options


def measure(bench, options):
    for name in options.only:
        try:
            getattr(bench, name)()
        except Missing as missing:
            bench.left_out[name] = str(missing)


def main():
    options = read_options()
    for name in ("SEMEL_BINARY", "LOAD_BINARY"):
        if not os.access(os.environ.get(name, ""), os.X_OK):
            sys.exit(f"bench: {name} does not name a program")
        os.environ[name] = os.path.abspath(os.environ[name])
    if set(options.only) - {"peers", "size", "disk", "syncs"}:
        sys.exit("bench: --only takes peers, size, disk, syncs")
    bench = Bench(options)
    if bench.found["load_before"] > 0.5:
        say(f"the machine is busy with something else (load {bench.found['load_before']:.1f}): the rates will be low and uneven")
    try:
        bench.start_postgres()
        measure(bench, options)
    except Wrong as wrong:
        sys.exit(f"bench: a wrong answer: {wrong}")
    finally:
        bench.close()
    print_table(bench.found)
    print_targets(bench.found)
    for name, reason in bench.left_out.items():
        say(f"left out: {name}: {reason}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(bench.found, f, indent=1)


if __name__ == "__main__":
    main()
