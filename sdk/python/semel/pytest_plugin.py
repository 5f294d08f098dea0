"""The pytest plugin: fixtures for tests that ask whether a thing happens once.

    semel                 a private daemon; SEMEL_URL points to it, so that @once and claim() use it
    run_twice             runs a function twice (or --semel-repeat=N times) and returns the results
    crash_at_every_step   runs a function that is killed at each step, then again; counts the effects
    effects               an HTTP and an SMTP server that count what reaches them
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Callable, Iterator, List

import pytest

from .testing import CrashReport, Daemon, Effects, find_binary
from .testing import crash_at_every_step as _crash_at_every_step


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("semel")
    group.addoption("--semel-repeat", type=int, default=2, metavar="N", help="how often run_twice runs a function (default: 2)")


@pytest.fixture
def semel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A private daemon on data of its own. `semel.policy(text)`, `semel.intents()`, `semel.kill()`, `semel.start()`."""
    if find_binary() is None:
        pytest.skip("there is no semel on the PATH, and SEMEL_BIN does not name one")
    daemon = Daemon()
    for name in ("SEMEL_TOKEN", "SEMEL_MODE", "SEMEL_RUN", "SEMEL_SPOOL", "SEMEL_LEASE", "SEMEL_FAIL_OPEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SEMEL_URL", daemon.url)
    yield daemon
    daemon.remove()


@pytest.fixture
def effects() -> Iterator[Effects]:
    """`effects.url` and `effects.smtp` take everything; `effects.happened` is how much of it was not a repetition."""
    world = Effects()
    yield world
    world.close()


@pytest.fixture
def run_twice(request: pytest.FixtureRequest, semel: Daemon) -> Callable[..., List[Any]]:
    """run_twice(function, *args, **kwargs) → the results. A coroutine function is run to its end each time."""
    times = max(2, request.config.getoption("--semel-repeat"))

    def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> List[Any]:
        return [_finish(function(*args, **kwargs)) for _ in range(times)]

    return run


@pytest.fixture
def crash_at_every_step(effects: Effects) -> Callable[..., CrashReport]:
    """crash_at_every_step(function, *args, **kwargs) → a report; `report.assert_once()`. Counts with the fixture `effects`."""
    if find_binary() is None:
        pytest.skip("there is no semel on the PATH, and SEMEL_BIN does not name one")

    def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> CrashReport:
        return _crash_at_every_step(function, *args, effects=effects, **kwargs)

    return run


def _finish(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value
