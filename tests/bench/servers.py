"""The servers that are measured: each is started on a free loopback port with its own directory, and stopped by its process id."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

START_SECONDS = 60
STOP_SECONDS = 60


class Missing(Exception):
    """What a row needs is not installed, or does not start."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def exchange(port, request, enough):
    """Sends bytes and reads until `enough` says so; None when nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
            s.sendall(request)
            got = b""
            while not enough(got):
                more = s.recv(65536)
                if not more:
                    break
                got += more
            return got
    except OSError:
        return None


def wait_until(ready, process, what, seconds=START_SECONDS):
    """Milliseconds until ready() is true."""
    begin = time.monotonic()
    while not ready():
        if process.poll() is not None:
            raise Missing(f"{what} ended with {process.returncode} while starting")
        if time.monotonic() - begin > seconds:
            raise Missing(f"{what} was not ready after {seconds} s")
        time.sleep(0.001)
    return (time.monotonic() - begin) * 1000


def stop_process(process, how=signal.SIGTERM):
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fresh_dir(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


class Semel:
    """The daemon on SQLite, or on PostgreSQL when it is given an address of one."""

    def __init__(self, binary, directory, db=None):
        self.binary, self.directory, self.db = binary, directory, db
        self.policy = None
        self.process = None
        self.port = 0
        self.ready_ms = 0.0

    def start(self):
        self.port = free_port()
        os.makedirs(self.directory, exist_ok=True)
        command = [self.binary, "up", "--data", self.directory, "--listen", f"127.0.0.1:{self.port}"]
        if self.db:
            command += ["--db", self.db]
        if self.policy:
            command += ["--policy", self.policy]
        with open(self.directory + ".log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.ready_ms = wait_until(self.is_ready, self.process, "semel")
        return self

    def is_ready(self):
        request = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        return (exchange(self.port, request, lambda got: b"\r\n" in got) or b"").startswith(b"HTTP/1.1 200")

    def stop(self):
        stop_process(self.process)
        self.process = None

    def load_arguments(self):
        return ["http", str(self.port)]


CLAIM_SCRIPT = """
local held = redis.call('HMGET', KEYS[1], 'token', 'result')
if held[2] then return 'DONE:' .. held[2] end
if held[1] then return redis.status_reply('BUSY') end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
return redis.status_reply('WIN')
"""

COMPLETE_SCRIPT = """
local held = redis.call('HMGET', KEYS[1], 'token', 'result')
if held[1] ~= ARGV[1] or held[2] then return redis.error_reply('FENCED') end
redis.call('HSET', KEYS[1], 'result', ARGV[2])
redis.call('PEXPIRE', KEYS[1], 2592000000)
return redis.status_reply('OK')
"""


class Redis:
    """Redis with an fsync before every answer, claim and complete as scripts that check a token."""

    def __init__(self, directory):
        self.directory = directory
        self.process = None
        self.port = 0
        self.scripts = []

    def start(self):
        binary = shutil.which("redis-server")
        if not binary:
            raise Missing("redis-server is not installed")
        fresh_dir(self.directory)
        self.port = free_port()
        command = [binary, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.directory, "--save", "",
                   "--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no"]
        with open(self.directory + ".log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: self.call("PING") == "PONG", self.process, "redis-server")
        self.scripts = [self.call("SCRIPT", "LOAD", text) for text in (CLAIM_SCRIPT, COMPLETE_SCRIPT)]
        if any(len(sha or "") != 40 for sha in self.scripts):
            raise Missing("redis-server does not take the scripts")
        return self

    def call(self, *words):
        request = f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)
        got = exchange(self.port, request.encode(), lambda b: b.count(b"\r\n") >= (2 if b[:1] == b"$" else 1))
        return got.decode().strip().split("\r\n")[-1].lstrip("+") if got else None

    def stop(self):
        stop_process(self.process)
        self.process = None

    def load_arguments(self):
        return ["resp", str(self.port), "--claim", self.scripts[0], "--complete", self.scripts[1]]


class Postgres:
    """A throw-away cluster with the settings it comes with: fsync and synchronous_commit are on."""

    def __init__(self, directory):
        self.directory = directory
        self.process = None
        self.port = 0
        self.bin = None
        self.identity = {}

    def start(self):
        self.bin = self.find_binaries()
        fresh_dir(self.directory)
        if os.geteuid() == 0:
            self.identity = self.other_user()
        self.run(["initdb", "-D", self.directory, "-A", "trust", "-U", "postgres", "--no-sync"])
        self.port = free_port()
        command = [os.path.join(self.bin, "postgres"), "-D", self.directory, "-p", str(self.port), "-k", self.directory,
                   "-c", "listen_addresses=127.0.0.1"]
        with open(self.directory + ".log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self.identity)
        wait_until(self.is_ready, self.process, "postgres")
        return self

    @staticmethod
    def find_binaries():
        places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: float(p.split("/")[4]), reverse=True)
        places += [os.path.dirname(shutil.which("initdb") or "")]
        for place in places:
            if all(os.path.exists(os.path.join(place, name)) for name in ("initdb", "postgres", "psql", "pgbench")):
                return place
        raise Missing("PostgreSQL (initdb, postgres, psql, pgbench) is not installed")

    def other_user(self):
        """The server refuses to run as root."""
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            raise Missing("PostgreSQL does not run as root and there is no user postgres") from None
        os.chown(self.directory, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(self, command, seconds=120):
        command = [os.path.join(self.bin, command[0]), *command[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd="/", check=False, **self.identity)
        if done.returncode != 0:
            raise Missing(f"{os.path.basename(command[0])}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def is_ready(self):
        try:
            return self.sql("SELECT 1", "postgres").strip() == "1"
        except Missing:
            return False

    def sql(self, text, database, seconds=1800):
        return self.run(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database, "-XqAt",
                         "-v", "ON_ERROR_STOP=1", "-c", text], seconds)

    def make_database(self, name):
        self.sql(f"DROP DATABASE IF EXISTS {name}", "postgres")
        self.sql(f"CREATE DATABASE {name}", "postgres")
        self.sql(f"ALTER DATABASE {name} SET search_path = semel, public", "postgres")  # semel's tables are in a schema of its own
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def stop(self):
        stop_process(self.process, signal.SIGINT)
        self.process = None
