"""For tests of things that must happen once: a private daemon, and a run that is killed at every step. The pytest plugin offers them as fixtures."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import steps
from .aio import AsyncClient
from .client import Client
from .fakes import Effects
from .steps import step

__all__ = ["Crash", "CrashReport", "Daemon", "Effects", "crash_at_every_step", "find_binary", "step"]

START_SECONDS = 30.0
_ADDRESS = re.compile(r"(https?://[0-9.]+:[0-9]+)/v1")


def find_binary() -> Optional[str]:
    """SEMEL_BIN, or `semel` on the PATH."""
    return os.environ.get("SEMEL_BIN") or shutil.which("semel")


class Daemon:
    """A semel of one's own on data of its own. It can be killed and started again, at the same address."""

    def __init__(self, directory: Optional[str] = None, policy: Optional[str] = None, binary: Optional[str] = None) -> None:
        found = binary or find_binary()
        if found is None:
            raise FileNotFoundError("there is no semel: put it on the PATH, or name it with SEMEL_BIN")
        self.binary = found
        self._own = tempfile.mkdtemp(prefix="semel-") if directory is None else None
        self.directory = pathlib.Path(directory or self._own or "")
        self.log = self.directory / "log"
        self.url = ""
        self._place = _reserve()
        self._listen = "127.0.0.1:%d" % (self._place.getsockname()[1] if self._place is not None else 0)
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self.start()
        if policy is not None:
            self.policy(policy)

    def start(self) -> "Daemon":
        before = self.log.stat().st_size if self.log.exists() else 0
        words = [self.binary, "up", "--data", str(self.directory / "data"), "--listen", self._listen]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_clean_environment())
        end = time.monotonic() + START_SECONDS
        while not self._answers(before):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"semel did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.01)
        return self

    def _answers(self, before: int) -> bool:
        found = _ADDRESS.search(self.log.read_bytes()[before:].decode("utf-8", "replace"))
        if not found:
            return False
        self.url, self._listen = found.group(1), found.group(1).split("//")[1]
        try:
            urllib.request.urlopen(self.url + "/readyz", timeout=5).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Without a warning, as in a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_SECONDS)

    def remove(self) -> None:
        self.kill()
        if self._place is not None:
            self._place.close()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()

    def client(self, **settings: Any) -> Client:
        return Client(self.url, **settings)

    def async_client(self, **settings: Any) -> AsyncClient:
        return AsyncClient(self.url, **settings)

    def policy(self, text: str) -> None:
        """Applies a policy, as YAML."""
        self.get("/v1/policy", method="PUT", data=text.encode())

    def intents(self, **query: str) -> List[Dict[str, Any]]:
        """The newest intents; `workflow`, `state` and `key` narrow them down."""
        found: List[Dict[str, Any]] = self.get("/v1/intents?" + urllib.parse.urlencode({"limit": 200, **query}))["data"]
        return found

    def get(self, path: str, **request: Any) -> Dict[str, Any]:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, **request), timeout=START_SECONDS) as reply:
            answer: Dict[str, Any] = json.load(reply)
            return answer


def _reserve() -> Optional[socket.socket]:
    """Keeps a port for a daemon that is killed and started again: nobody else is given it. On Linux, SO_REUSEADDR lets semel listen there."""
    if not sys.platform.startswith("linux"):
        return None
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def _clean_environment() -> Dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")}


# ---- a crash at every step ----


@dataclass
class Crash:
    """One story: killed at this step, then run again to its end."""

    step: str
    effects: int  # after the second run
    outcome: str  # of the second run: "returned …" or "raised …"
    value: Any = None


@dataclass
class CrashReport:
    crashes: List[Crash] = field(default_factory=list)

    @property
    def most(self) -> int:
        """The most effects that any story had. 1 is what you want."""
        return max((crash.effects for crash in self.crashes), default=0)

    def assert_once(self) -> None:
        """No story has two effects, and each ends with the result or with an honest "nobody can tell"."""
        wrong = [crash for crash in self.crashes if crash.effects > 1 or not crash.outcome.startswith(("returned", "raised OutcomeUnknown"))]
        assert not wrong, f"not once:\n{self}"

    def __str__(self) -> str:
        width = max((len(crash.step) for crash in self.crashes), default=0)
        return "\n".join(f"killed {crash.step:<{width}}  effects {crash.effects}  then {crash.outcome}" for crash in self.crashes)


def crash_at_every_step(
    function: Callable[..., Any], *args: Any, effects: Effects, policy: Optional[str] = None, lease: float = 0.3, **kwargs: Any
) -> CrashReport:
    """Runs the function in a child process that is killed before and after each call to semel (and at each `step(…)` of its own), and
    then once more to the end; each time with a new, private semel. `effects` counts what the function does to the world."""
    if not hasattr(os, "fork"):
        raise RuntimeError("this needs fork, which this system does not have")
    call = _Call(function, args, kwargs, lease)
    report = CrashReport()
    effects.reset()
    with Daemon(policy=policy) as daemon:
        names = call.run(daemon, None).steps
    for number, name in enumerate(names):
        effects.reset()
        with Daemon(policy=policy) as daemon:
            call.run(daemon, number)
            again = call.run(daemon, None)
        report.crashes.append(Crash(name, effects.happened, again.outcome, again.value))
    return report


@dataclass
class _Run:
    steps: List[str]
    outcome: str
    value: Any


class _Call:
    def __init__(self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], lease: float) -> None:
        self.function, self.args, self.kwargs, self.lease = function, args, kwargs, lease

    def run(self, daemon: Daemon, die_at: Optional[int]) -> _Run:
        """One run in a child, killed at that step."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                self._in_child(daemon, die_at, writer)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as lines:
            said = [json.loads(line) for line in lines]
        os.waitpid(child, 0)
        last = said[-1] if said and "outcome" in said[-1] else {"outcome": "killed", "value": None}
        return _Run([line["step"] for line in said if "step" in line], last["outcome"], last["value"])

    def _in_child(self, daemon: Daemon, die_at: Optional[int], writer: int) -> None:
        os.environ.update({"SEMEL_URL": daemon.url, "SEMEL_LEASE": str(self.lease), "SEMEL_MODE": "enforce"})
        seen: List[str] = []

        def watch(name: str) -> None:
            if name.endswith(" extend"):  # heartbeats come when they come
                return
            if len(seen) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append(name)
            _tell(writer, {"step": name})

        steps.watch = watch
        try:
            value = self._call()
            _tell(writer, {"outcome": f"returned {value!r}"[:200], "value": _as_json(value)})
        except BaseException as error:
            _tell(writer, {"outcome": f"raised {type(error).__name__}: {error}"[:200], "value": None})

    def _call(self) -> Any:
        value = self.function(*self.args, **self.kwargs)
        return asyncio.run(_await(value)) if inspect.isawaitable(value) else value


async def _await(value: Any) -> Any:
    return await value


def _tell(writer: int, line: Dict[str, Any]) -> None:
    os.write(writer, json.dumps(line).encode() + b"\n")


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return repr(value)
