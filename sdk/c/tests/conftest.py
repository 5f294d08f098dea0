"""The library through its tool, which uses nothing but semel.h: against a daemon over TCP, over a unix socket, and inside the process."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "sdk/python"), str(ROOT / "sdk/python/tests")]
BINARY = pathlib.Path(os.environ.get("SEMEL_BINARY") or ROOT / "build" / "semel")
BUILD = BINARY.parent
TOOL = str(BUILD / "semel_c_tool")
os.environ.setdefault("SEMEL_BIN", str(BINARY))

from semel.testing import Daemon  # noqa: E402  (needs the path above)


class Answer:
    def __init__(self, line):
        words = line.split("\t") + [""] * 7
        self.status, self.intent, self.fence, self.key, self.result, self.held, self.why = words[:7]


class Script:
    """One process with the library in it; each call is a line to it and a line back."""

    def __init__(self, where):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")}
        self.process = subprocess.Popen([TOOL, "script", where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the tool ended at {words}"
        return Answer(line.rstrip("\n"))

    def read(self):
        return Answer(self.process.stdout.readline().rstrip("\n"))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(120) == 0
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Place:
    """Where a ledger is. `open` gives one more user of it."""

    def __init__(self, where):
        self.where, self.open_ones = where, []

    def open(self):
        script = Script(self.where)
        self.open_ones.append(script)
        return script

    def close(self):
        for script in self.open_ones:
            if script.process.poll() is None:
                script.kill()


@pytest.fixture
def daemon(tmp_path):
    with Daemon(str(tmp_path)) as daemon:
        yield daemon


def unix_daemon(folder):
    path = folder / "semel.sock"
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([str(BINARY), "up", "--data", str(folder / "data"), "--listen", f"unix:{path}"], stdout=log, stderr=log)
    end = time.monotonic() + 120
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return process, f"unix:{path}"


@pytest.fixture(params=["http", "unix", "file"])
def place(request, tmp_path):
    process = None
    if request.param == "http":
        place = Place(request.getfixturevalue("daemon").url)
    elif request.param == "unix":
        process, where = unix_daemon(tmp_path)
        place = Place(where)
    else:
        place = Place(f"file:{tmp_path / 'data'}")
    yield place
    place.close()
    if process is not None:
        process.kill()
        process.wait()
