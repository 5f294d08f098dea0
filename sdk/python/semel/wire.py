"""Requests and replies, without any I/O, and the two ways in which an exchange can fail."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from .address import Address

USER_AGENT = "semel-python/0.1.0"


@dataclass(frozen=True)
class Request:
    """One call. `name` is what it is for people and for the crash tests; `wait_s` is how long the server may think about it."""

    name: str
    method: str
    path: str
    body: Optional[bytes] = None
    wait_s: float = 0.0

    def headers(self, address: Address, token: Optional[str]) -> Dict[str, str]:
        headers = {"Host": address.host_header, "User-Agent": USER_AGENT, "Accept": "application/json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            headers["Content-Length"] = str(len(self.body))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers


@dataclass(frozen=True)
class Pause:
    """Wait so long before going on."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    _read: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def json(self) -> Dict[str, Any]:
        """The body as an object; empty when it is none, as when something else than semel answered."""
        if "json" not in self._read:
            try:
                value = json.loads(self.body)
            except ValueError:
                value = {}
            self._read["json"] = value if isinstance(value, dict) else {}
        found: Dict[str, Any] = self._read["json"]
        return found

    @property
    def code(self) -> Optional[str]:
        return self.json.get("code")

    @property
    def is_from_semel(self) -> bool:
        return self.status < 300 or self.code is not None

    @property
    def may_be_repeated(self) -> bool:
        """Whether the same request may do better in a moment. Every call to semel is safe to repeat."""
        return self.status in (408, 429) or self.status >= 500 or not self.is_from_semel

    @property
    def retry_after_s(self) -> Optional[float]:
        try:
            return float(self.headers["retry-after-ms"]) / 1000 if "retry-after-ms" in self.headers else float(self.headers["retry-after"])
        except (KeyError, ValueError):
            return None


class NotSent(Exception):
    """No connection: the request has not left."""


class Lost(Exception):
    """The request left, and no answer came. It may have been recorded. `stale` when the connection had been idle: try a new one at once."""

    def __init__(self, message: str, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale
