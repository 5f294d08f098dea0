"""An HTTP server with answers of the test's own, byte for byte."""

import socket
import threading
import time


class Server:
    """A destination with answers of the test's own: `answer(request_bytes)` gives the bytes. One connection at a time is enough for most; each has a thread."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []
        self.running = self.most = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                block = connection.recv(65536)
                if not block:
                    return
                data += block
            head, _, body = data.partition(b"\r\n\r\n")
            size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
            while len(body) < size:
                body += connection.recv(65536)
            with self.lock:
                self.requests.append((time.monotonic(), head, body))
                self.running += 1
                self.most = max(self.most, self.running)
            try:
                connection.sendall(self.answer(head, body))
            except OSError:
                pass
            with self.lock:
                self.running -= 1

    def stop(self):
        self.listener.close()


def reply(status=200, body=b"{}", *headers):
    lines = [f"HTTP/1.1 {status} X".encode(), b"Content-Length: %d" % len(body), b"Connection: close", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
