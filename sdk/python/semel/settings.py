"""What a client works with: given, or from the environment."""

from __future__ import annotations

import os
import pathlib
import re
from dataclasses import dataclass
from typing import Optional, Tuple

from .address import DEFAULT_URL, Address, parse_url

PATIENCE_S = 10.0
PATIENCE_OPEN_S = 1.0  # whoever goes on without semel does not want to wait for it
MODES = ("enforce", "observe", "off")
NAMES = ("SEMEL_URL", "SEMEL_TOKEN", "SEMEL_RUN", "SEMEL_MODE", "SEMEL_SPOOL", "SEMEL_LEASE", "SEMEL_FAIL_OPEN")


@dataclass(frozen=True)
class Settings:
    address: Address
    token: Optional[str]
    run: Optional[str]
    mode: str
    fail_open: bool
    spool: Optional[str]
    lease_s: Optional[float]
    wait_s: float
    timeout_s: float
    patience_s: float


def environment() -> Tuple[Optional[str], ...]:
    """All that the environment says, to notice when it changed."""
    return tuple(os.environ.get(name) for name in NAMES)


def make_settings(
    url: Optional[str], token: Optional[str], run: Optional[str], mode: Optional[str], fail_open: Optional[bool],
    spool: Optional[str], lease: Optional[float], wait: float, timeout: float, patience: Optional[float],
) -> Settings:
    token = token if token is not None else os.environ.get("SEMEL_TOKEN")
    if token and not re.fullmatch("[!-~]+", token):
        raise ValueError("SEMEL_TOKEN: a token has neither spaces nor control characters")
    mode = mode or os.environ.get("SEMEL_MODE") or "enforce"
    if mode not in MODES:
        raise ValueError(f"SEMEL_MODE: one of {', '.join(MODES)}, not {mode!r}")
    open_ = fail_open if fail_open is not None else _switch("SEMEL_FAIL_OPEN")
    path = spool or os.environ.get("SEMEL_SPOOL") or (str(default_spool()) if open_ else None)
    return Settings(
        address=parse_url(url or os.environ.get("SEMEL_URL") or DEFAULT_URL),
        token=token or None,
        run=run or os.environ.get("SEMEL_RUN") or None,
        mode=mode,
        fail_open=open_,
        spool=path,
        lease_s=lease if lease is not None else _seconds("SEMEL_LEASE"),
        wait_s=wait,
        timeout_s=timeout,
        patience_s=patience if patience is not None else (PATIENCE_OPEN_S if open_ else PATIENCE_S),
    )


def default_spool() -> pathlib.Path:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return pathlib.Path(base) / "semel" / "spool.jsonl"


def _switch(name: str) -> bool:
    text = (os.environ.get(name) or "").lower()
    if text not in ("", "0", "1", "false", "true"):
        raise ValueError(f"{name}: write 1 or 0, not {text!r}")
    return text in ("1", "true")


def _seconds(name: str) -> Optional[float]:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{name}: seconds, such as 60 or 0.5, not {text!r}") from error
