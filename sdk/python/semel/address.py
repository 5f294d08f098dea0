"""Where semel is: http://host:port, https://host:port or unix:/path."""

from __future__ import annotations

from typing import NamedTuple, Optional
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:7363"


class Address(NamedTuple):
    scheme: str  # http, https or unix
    host: str
    port: int
    socket: Optional[str]  # the path of a Unix socket
    prefix: str  # what stands before /v1 when a proxy serves semel below a path

    @property
    def host_header(self) -> str:
        if self.socket is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket is not None else f"{self.scheme}://{self.host_header}{self.prefix}"


def parse_url(url: str) -> Address:
    if url.startswith("unix:"):
        path = url[len("unix:"):]
        path = path[2:] if path.startswith("//") else path
        if not path.startswith("/"):
            raise ValueError(f"SEMEL_URL: a socket is written unix:/PATH, not {url!r}")
        return Address("unix", "localhost", 0, path, "")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"SEMEL_URL: write http://HOST:PORT, https://HOST:PORT or unix:/PATH, not {url!r}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Address(parts.scheme, parts.hostname, port, None, parts.path.rstrip("/"))
