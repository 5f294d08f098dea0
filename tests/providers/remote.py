"""A fake in a process of its own: the same calls as in-process, over the control port. It goes on when semel is killed, and its journal stays when it
is killed itself."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading

from .fake import WAIT_SECONDS, Effect, Records
from .smtp import Transaction
from .web import Request

TESTS = pathlib.Path(__file__).resolve().parent.parent


class RemoteFake(Records):
    def __init__(self, name, port=0, journal=None, **options):
        words = [sys.executable, "-m", "providers", name, "--port", str(port)]
        words += ["--journal", str(journal)] if journal else []
        words += [word for option, value in options.items() for word in ("--set", f"{option}={json.dumps(value)}")]
        environment = dict(os.environ, PYTHONPATH=str(TESTS))
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True)
        greeting = self.process.stdout.readline()
        if not greeting:
            raise RuntimeError(f"the fake {name} did not start: exit code {self.process.wait()}")
        said = json.loads(greeting)
        self.name, self.port, self.control_port, self.url = name, said["port"], said["control"], said["url"]
        self.lock = threading.Lock()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.control_port, timeout=WAIT_SECONDS)

    def call(self, name, **arguments):
        with self.lock:
            self.connection.request("POST", "/" + name, json.dumps(arguments), {"Content-Type": "application/json"})
            answer = json.loads(self.connection.getresponse().read())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["result"]

    def script(self, steps, on="act"):
        self.call("script", steps=list(steps), on=on)

    def effects(self, kind=None):
        return [Effect(**effect) for effect in self.call("effects", kind=kind)]

    def requests(self, since=0):
        return [(Transaction if "data_b64" in data else Request).from_json(data) for data in self.call("requests", since=since)]

    def __getattr__(self, name):
        """pending, counts, forget_keys, advance, down, up, release, reset, …: plain calls."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda **arguments: self.call(name, **arguments)

    def advance(self, seconds):
        self.call("advance", seconds=seconds)

    def stop(self):
        self.connection.close()
        self.process.stdin.close()  # it ends with its parent, too
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)
        self.process.stdout.close()
