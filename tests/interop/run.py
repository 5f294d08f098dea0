"""Runs a real client once: one process, one business call, its outcome as a dictionary."""

import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = ("stripe", "openai", "slack", "hubspot")


def available():
    """True when Node and the packages are there (tools/interop.py installs them)."""
    return bool(shutil.which("node")) and all((HERE / "node_modules" / package).exists() for package in ("stripe", "openai", "@slack", "@hubspot", "@anthropic-ai", "ai"))


def start_client(name, to, **settings):
    """The process of a client, for tests that end it early. Settings (KEY, REF, TOKEN, RETRIES, …) are described in clients/call.mjs."""
    environment = {word: value for word, value in os.environ.items() if word not in ("KEY", "RUN", "REF", "TOKEN", "RETRIES", "CALL", "STREAM", "RATE_LIMITS")}
    environment.update(SEMEL_TO=to, **{word: str(value) for word, value in settings.items()})
    words = ["node", str(HERE / "clients" / f"{name}.mjs")]
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_client(name, to, seconds=180, **settings):
    process = start_client(name, to, **settings)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if not out.strip():
        raise AssertionError(f"the client {name} said nothing: {err}")
    return json.loads(out.strip().splitlines()[-1])
