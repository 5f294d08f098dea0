"""Many clients in one thread. A client is a generator: it yields a request as bytes and gets (status, body) back, or the
exception Lost when the connection broke before the answer was whole. It goes on until it returns."""

import json
import selectors
import socket
import time


class Lost(Exception):
    """Nobody can tell whether the request was carried out."""


def request(method, path, body=None, token=None):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n"
    if token is not None:
        head += f"Authorization: Bearer {token}\r\n"
    return head.encode() + b"\r\n" + data


def claim(workflow, key, **fields):
    return request("POST", "/v1/claims", {"workflow": workflow, "key": key, **fields})


def say(what, intent, fence, **fields):
    return request("POST", f"/v1/claims/{intent}/{what}", {"fence": fence, **fields})


class _Client:
    def __init__(self, generator, port, source):
        self.generator, self.port, self.source = generator, port, source
        self.socket, self.received, self.request = None, b"", None


class Swarm:
    RETRY_SECONDS = 0.002

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.running = 0
        self.retries = []  # clients whose connection was refused

    def add(self, generator, port, source="127.0.0.1"):
        client = _Client(generator, port, source)
        self.running += 1
        self._step(client, lambda: next(generator))

    def run(self, seconds=900, each_turn=None):
        end = time.monotonic() + seconds
        while self.running:
            assert time.monotonic() < end, f"{self.running} clients were not answered within {seconds} s"
            for key, _ in self.selector.select(self.RETRY_SECONDS if self.retries else 0.05):
                self._receive(key.data)
            again, self.retries = self.retries, []
            for client in again:
                self._send(client)
            if each_turn is not None:
                each_turn()
        self.selector.close()

    def _step(self, client, resume):
        try:
            client.request = resume()
        except StopIteration:
            self.running -= 1
            self._drop(client)
            return
        self._send(client)

    def _connect(self, client):
        made = socket.socket()
        made.settimeout(10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            made.bind((client.source, 0))
            made.connect(("127.0.0.1", client.port))
        except OSError:
            made.close()
            return False
        client.socket = made
        self.selector.register(made, selectors.EVENT_READ, client)
        return True

    def _drop(self, client):
        if client.socket is not None:
            self.selector.unregister(client.socket)
            client.socket.close()
        client.socket, client.received = None, b""

    def _send(self, client):
        if client.socket is None and not self._connect(client):
            self.retries.append(client)  # nothing was sent: waiting is safe
            return
        try:
            client.socket.sendall(client.request)
        except OSError:
            self._lose(client)

    def _lose(self, client):
        self._drop(client)
        self._step(client, lambda: client.generator.throw(Lost()))

    def _receive(self, client):
        try:
            block = client.socket.recv(262144)
        except OSError:
            block = b""
        if not block:
            self._lose(client)
            return
        client.received += block
        data = client.received
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = data[:end].lower()
        at = head.find(b"content-length:")
        size = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(data) < end + 4 + size:
            return
        client.received = data[end + 4 + size :]
        status, body = int(data[9:12]), data[end + 4 : end + 4 + size]
        if b"connection: close" in head:
            self._drop(client)
        self._step(client, lambda: client.generator.send((status, body)))
