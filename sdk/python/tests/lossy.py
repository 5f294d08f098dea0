"""A proxy for HTTP that loses messages on purpose, one exchange at a time: the nth request before it arrives, or the nth answer."""

import socket
import threading


class Lossy:
    """`lose` maps the number of an exchange (from 0) to "request", "answer" or "half" of the answer."""

    def __init__(self, target, lose=()):
        self.target = tuple(target)
        self.lose = dict(lose)
        self.seen = []  # the request line of each exchange
        self.connections = 0
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = None
        try:
            while True:
                request = read_message(client)
                if request is None:
                    return
                with self._lock:
                    fault = self.lose.get(len(self.seen))
                    self.seen.append(request.split(b"\r\n")[0].decode())
                if fault == "request":
                    return
                server = server or socket.create_connection(self.target)
                server.sendall(request)
                answer = read_message(server)
                if fault == "answer" or answer is None:
                    return
                if fault == "half":
                    client.sendall(answer[: len(answer) // 2])
                    return
                client.sendall(answer)
        except OSError:
            pass
        finally:
            client.close()
            if server is not None:
                server.close()

    def close(self):
        self._server.close()


def read_message(sock):
    """One HTTP message with a Content-Length, or None at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        block = sock.recv(65536)
        if not block:
            return None
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        block = sock.recv(65536)
        if not block:
            return None
        body += block
    return head + b"\r\n\r\n" + body


def address(url):
    host, port = url.split("//")[1].split(":")
    return host, int(port)
