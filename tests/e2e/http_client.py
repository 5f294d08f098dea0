"""Two HTTP clients: a small JSON one on http.client, and raw bytes over a socket for what no honest client would send."""

import http.client
import json
import socket
import ssl
import threading

SECONDS = 120  # generous; nothing is measured
OBSERVED = {}  # (method, path, status, code) -> answer: what the check against the OpenAPI document looks at
_observed_lock = threading.Lock()


class Answer:
    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def code(self):
        return self.json.get("code")

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.raw[:2000]!r}>"


def _shape(path):
    """The path with its ids left out, so that each kind of answer is kept once."""
    words = path.split("?")[0].split("/")
    return "/".join("{}" if at >= 3 and word.startswith(("int_", "AAAA")) else word for at, word in enumerate(words))


def _note(method, path, answer):
    kind = answer.headers.get("Content-Type", "")
    code = answer.json.get("code") if kind == "application/problem+json" else None
    with _observed_lock:
        OBSERVED.setdefault((method, _shape(path), answer.status, code), answer)


class Client:
    """Keeps one connection; makes a new one when the daemon closed it between two requests."""

    def __init__(self, port, token=None, tls=None, source=None):
        self.port, self.token, self.tls, self.source = port, token, tls, source
        self.connection = None

    def _connect(self):
        where = {"host": "127.0.0.1", "port": self.port, "timeout": SECONDS, "source_address": (self.source, 0) if self.source else None}
        if self.tls is None:
            return http.client.HTTPConnection(**where)
        return http.client.HTTPSConnection(**where, context=self.tls)

    def request(self, method, path, body=None, headers=None):
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        for last in (False, True):
            fresh = self.connection is None
            self.connection = self.connection or self._connect()
            try:
                self.connection.request(method, path, body, sent)
                reply = self.connection.getresponse()
                answer = Answer(reply.status, reply.headers, reply.read())
                break
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.close()
                if fresh or last:
                    raise
        if reply.will_close:
            self.close()
        if method != "HEAD" and answer.headers.get("Content-Type", "").endswith("json"):
            _note(method, path, answer)
        return answer

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def claim(self, workflow, key=None, headers=None, **fields):
        body = {"workflow": workflow, **({"key": key} if key is not None else {}), **fields}
        return self.request("POST", "/v1/claims", body, headers)

    def say(self, what, held, **fields):
        """`held` is the answer to the claim, or (intent, fence)."""
        intent, fence = held if isinstance(held, tuple) else (held.json["intent"], held.json["fence"])
        return self.request("POST", f"/v1/claims/{intent}/{what}", {"fence": fence, **fields})

    def confirm_raw(self, held, result):
        """`result` is JSON text, sent as it is."""
        intent, fence = held.json["intent"], held.json["fence"]
        return self.request("POST", f"/v1/claims/{intent}/confirm", b'{"fence":%d,"result":%s}' % (fence, result))

    def intent(self, intent):
        return self.get(f"/v1/intents/{intent}")

    def decisions(self, intent=None, limit=200):
        return self.get(f"/v1/decisions?limit={limit}" + (f"&intent={intent}" if intent else "")).json["data"]

    def policy(self, text):
        answer = self.request("PUT", "/v1/policy", text.encode())
        assert answer.status == 200, answer
        return answer


def split_answers(data, head_only=False):
    """The HTTP answers in `data`, and what is left behind the last whole one."""
    answers = []
    while True:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return answers, data
        lines = data[:end].decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = http.client.HTTPMessage()
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name] = value.strip()
        size = 0 if head_only or status < 200 else int(headers.get("Content-Length", "0"))
        if len(data) < end + 4 + size:
            return answers, data
        if status >= 200:
            answers.append(Answer(status, headers, data[end + 4 : end + 4 + size]))
        data = data[end + 4 + size :]


def raw(port, data, finish=True, pieces=1, seconds=SECONDS, tls=None):
    """Sends bytes, reads until the daemon closes; the answers. `finish` shuts our side, so that keep-alive ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = tls.wrap_socket(plain, server_hostname="localhost") if tls else plain
        size = max(1, -(-len(data) // pieces))
        received = b""
        try:
            for at in range(0, len(data), size):
                connection.sendall(data[at : at + size])
            if finish:
                connection.shutdown(socket.SHUT_WR)
        except (ConnectionError, ssl.SSLError, OSError):
            pass  # refused before everything was sent: the answer is there to be read
        try:
            while block := connection.recv(65536):
                received += block
        except ConnectionError:
            pass
    answers, rest = split_answers(received)
    assert rest == b"", f"an answer was cut off: {rest!r}"
    return answers
