"""Real processes for the tests: the daemon, and a private PostgreSQL cluster. Nothing here knows what the tests check."""

import collections
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from providers import ports

REPO = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 120  # generous; nothing is measured
ADDRESS = re.compile(r"(https?)://([0-9.]+):([0-9]+)/v1")


def binary():
    return os.environ.get("SEMEL_BINARY") or str(REPO / "build" / "semel")


def until(check, what, seconds=START_SECONDS, every=0.01):
    """Calls `check` until it returns something true. A generous time-out, never a measurement."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for: {what}")
        time.sleep(every)


def not_at_midnight(seconds=60):
    """Waits for midnight, here or in UTC, when it is near: what is done twice is then done on one day."""
    left = min(86400 - (time.time() + offset) % 86400 for offset in (0, time.localtime().tm_gmtoff))
    if left < seconds:
        time.sleep(left + 1)


_kept = collections.deque(maxlen=64)  # more than one test needs


def free_port():
    """A port where nobody listens, and that nobody else is given for as long as this test lasts."""
    _kept.append(ports.reserve())
    return ports.number(_kept[-1])


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


class Semel:
    """One daemon on its data directory. It can be stopped, killed and started again on its port, which nobody else is given meanwhile. With port 0 the
    system chooses one at the first start."""

    def __init__(self, data, command="up", port=None, policy=None, db=None, listen="127.0.0.1", options=(), wrapper=()):
        self.data = pathlib.Path(data)
        self.place = ports.reserve() if port is None else None
        port = ports.number(self.place) if port is None else port
        self.command, self.listen, self.port, self.policy, self.db = command, listen, port, policy, db
        self.options, self.wrapper = list(options), list(wrapper)
        self.log = self.data.parent / (self.data.name + ".log")
        self.process = None

    def arguments(self):
        words = [binary(), self.command, "--data", str(self.data), "--listen", f"{self.listen}:{self.port}"]
        words += ["--policy", str(self.policy)] if self.policy else []
        words += ["--db", self.db] if self.db else []
        return self.wrapper + words + self.options

    def launch(self):
        """Starts the process without waiting for anything."""
        start = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return start

    def start(self):
        said_before = self.launch()
        until(lambda: self._has_address(said_before) or self._has_ended(), f"the greeting in {self.log}")
        assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.said()}"
        until(lambda: accepts(self.port), "an open port")
        return self

    def _has_address(self, said_before):
        found = ADDRESS.search(self.said(said_before))
        if found:
            self.port = int(found.group(3))
        return found

    def _has_ended(self):
        return self.process.poll() is not None

    def said(self, start=0):
        """What is in the log from byte `start` on."""
        return self.log.read_bytes()[start:].decode("utf-8", "replace") if self.log.exists() else ""

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, seconds=START_SECONDS):
        """SIGTERM; the exit code."""
        if self.alive():
            self.process.terminate()
        return self.process.wait(timeout=seconds)

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()

    def end(self):
        """For the end of a test: the process and what it was wrapped in, whatever state they are in."""
        if self.place is not None:
            self.place.close()
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def resident_kib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")


def run_cli(*words, seconds=START_SECONDS):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)


class Postgres:
    """A throw-away cluster in a directory of its own; loopback only."""

    def __init__(self):
        self.bin = self._find()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="semel-pg-"))
        self.place = ports.reserve()
        self.port = ports.number(self.place)
        self.count = 0

    @staticmethod
    def _find():
        for found in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), reverse=True):
            return found.parent
        found = shutil.which("pg_ctl")
        return pathlib.Path(found).parent if found else None

    def _run(self, *words, check=True):
        if os.getuid() == 0:
            words = ("runuser", "-u", "postgres", "--", *words)
        return subprocess.run(
            [str(word) for word in words], check=check, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=300,
        )

    def create(self):
        if os.getuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.dir, account.pw_uid, account.pw_gid)
        self._run(self.bin / "initdb", "-D", self.dir / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def start(self):
        # The tests end processes, not machines: without fsync nothing they can see is weaker.
        settings = f"-p {self.port} -k {self.dir} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=50 -c shared_buffers=32MB"
        self._run(self.bin / "pg_ctl", "-D", self.dir / "data", "-l", self.dir / "log", "-w", "-t", "240", "-o", settings, "start")

    def stop(self, mode="fast"):
        self._run(self.bin / "pg_ctl", "-D", self.dir / "data", "-m", mode, "-w", "stop", check=False)

    def sql(self, text):
        self._run(self.bin / "psql", "-qX", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", text)

    def database(self):
        """The URL of a new, empty database."""
        self.count += 1
        self.sql(f"CREATE DATABASE semel_{self.count}")
        return f"postgres://postgres@127.0.0.1:{self.port}/semel_{self.count}"

    def drop(self, url):
        self.sql(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def remove(self):
        self.stop("immediate")
        self.place.close()
        shutil.rmtree(self.dir, ignore_errors=True)
