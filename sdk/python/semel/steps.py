"""The moments at which a process may die. Tests set `watch` to be told of each; otherwise it costs nothing."""

from __future__ import annotations

from typing import Callable, Optional

watch: Optional[Callable[[str], None]] = None


def step(name: str) -> None:
    if watch is not None:
        watch(name)
