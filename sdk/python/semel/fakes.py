"""A world that counts: an HTTP server and an SMTP server on this computer that take everything and remember it."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
import urllib.request
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Set, Tuple


@dataclass(frozen=True)
class Effect:
    """Something that reached the outside. `key` is the idempotency key it came with, if any."""

    kind: str  # http or mail
    what: str  # POST /charges, or the mail's recipients
    body: str
    key: Optional[str] = None


class Effects:
    """Counts what is done to the world, also by other processes.

    `received` is everything; `happened` counts what came with the same Idempotency-Key (or Message-ID) once, as a good provider does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received: List[Effect] = []
        self._http = _serve(_HttpServer(("127.0.0.1", 0), _Http), self)
        self._smtp = _serve(_SmtpServer(("127.0.0.1", 0), _Smtp), self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.smtp: Tuple[str, int] = ("127.0.0.1", self._smtp.server_address[1])

    @property
    def received(self) -> List[Effect]:
        with self._lock:
            return list(self._received)

    @property
    def happened(self) -> int:
        seen: Set[str] = set()
        count = 0
        for effect in self.received:
            count += effect.key is None or effect.key not in seen
            seen.update([effect.key] if effect.key else [])
        return count

    @property
    def mails(self) -> List[Effect]:
        return [effect for effect in self.received if effect.kind == "mail"]

    @property
    def requests(self) -> List[Effect]:
        return [effect for effect in self.received if effect.kind == "http"]

    def reset(self) -> None:
        with self._lock:
            self._received = []

    def happen(self, what: str = "/effect", key: Optional[str] = None, body: Any = None) -> Dict[str, Any]:
        """Does something to this world over HTTP, from whatever process: POST `what`."""
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        request = urllib.request.Request(self.url + what, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=30) as reply:
            answer: Dict[str, Any] = json.load(reply)
            return answer

    def add(self, effect: Effect) -> int:
        """Called by the servers; the number of the effect, the first one's for a repetition that a key shows."""
        with self._lock:
            self._received.append(effect)
            if effect.key is None:
                return len(self._received)
            return 1 + next(at for at, other in enumerate(self._received) if other.key == effect.key)

    def close(self) -> None:
        for server in (self._http, self._smtp):
            server.shutdown()
            server.server_close()


class _HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    effects: Effects


class _SmtpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    effects: Effects


def _serve(server: Any, effects: Effects) -> Any:
    server.effects = effects
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


class _Http(http.server.BaseHTTPRequestHandler):
    server: _HttpServer

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        number = 0
        if self.command != "GET":
            number = self.server.effects.add(Effect("http", f"{self.command} {self.path}", body, self.headers.get("Idempotency-Key")))
        answer = json.dumps({"id": f"eff_{number}"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _take

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Smtp(socketserver.StreamRequestHandler):
    """As much of SMTP as smtplib speaks."""

    server: _SmtpServer

    def handle(self) -> None:
        to: List[str] = []
        self._say("220 fake ready")
        while True:
            line = self.rfile.readline().decode("utf-8", "replace").strip()
            verb = line.split(" ")[0].upper()
            if not line or verb == "QUIT":
                return self._say("221 bye")
            if verb == "RCPT":
                to.append(line.partition(":")[2].strip("<> "))
            if verb == "RSET":
                to = []
            if verb == "DATA":
                self._say("354 go ahead")
                self._take_mail(to)
                to = []
            self._say("250 ok")

    def _take_mail(self, to: List[str]) -> None:
        lines = []
        for raw in iter(self.rfile.readline, b""):
            if raw in (b".\r\n", b".\n"):
                break
            lines.append(raw.decode("utf-8", "replace").rstrip("\r\n"))
        ids = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("message-id:")]
        self.server.effects.add(Effect("mail", ", ".join(to), "\n".join(lines), ids[0] if ids else None))

    def _say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")
