"""The tests run against build/semel, with the package as it lies here."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(HERE)]
os.environ.setdefault("SEMEL_BIN", os.environ.get("SEMEL_BINARY") or str(ROOT / "build" / "semel"))

from both import Async, Sync  # noqa: E402  (needs the path above)

pytest_plugins = ["semel.pytest_plugin", "pytester"]


@pytest.fixture(params=["sync", "async"])
def both(request):
    return Sync() if request.param == "sync" else Async()
