"""HTTP for threads: kept-alive connections on http.client, one per call that is under way."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
import time
from typing import List, Optional, Tuple

from .address import Address
from .steps import step
from .wire import Lost, NotSent, Reply, Request

IDLE_SECONDS_MAX = 20.0  # the server closes after 30
IDLE_CONNECTIONS_MAX = 16


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Transport:
    """Safe to use from several threads, and in a child after fork."""

    def __init__(self, address: Address, token: Optional[str], timeout_s: float, tls: Optional[ssl.SSLContext] = None) -> None:
        self.address, self.token, self.timeout_s, self.tls = address, token, timeout_s, tls
        self._lock = threading.Lock()
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._pid = os.getpid()

    def exchange(self, request: Request) -> Reply:
        """One request and its answer. NotSent or Lost when there is none."""
        step(f"before {request.name}")
        reply = self._exchange(request)
        step(f"after {request.name}")
        return reply

    def _exchange(self, request: Request) -> Reply:
        connection, reused = self._take()
        try:
            connection.sock.settimeout(self.timeout_s + request.wait_s)
            connection.request(request.method, self.address.prefix + request.path, request.body, request.headers(self.address, self.token))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            stale = reused and not isinstance(error, socket.timeout)
            raise Lost(f"{self.address} did not answer {request.name}: {error or type(error).__name__}", stale) from error
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._give_back(connection)
        return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, body)

    def _take(self) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._pid != os.getpid():  # the parent goes on using its sockets
                self._idle, self._pid = [], os.getpid()
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < IDLE_SECONDS_MAX:
                    return connection, True
                connection.close()
        return self._connect(), False

    def _connect(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self.address.socket is not None:
            connection = _UnixConnection(self.address.socket, self.timeout_s)
        elif self.address.scheme == "https":
            context = self.tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(self.address.host, self.address.port, timeout=self.timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(self.address.host, self.address.port, timeout=self.timeout_s)
        try:
            connection.connect()
            if self.address.socket is None:
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            raise NotSent(f"no connection to {self.address}: {error}") from error
        return connection

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS_MAX and self._pid == os.getpid():
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()
