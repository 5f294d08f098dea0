"""An HTTP provider: exact bytes in, a table of routes, and the faults on the way out."""

import asyncio
import base64
import json
import re
import urllib.parse

from .fake import OK, Fake, reset_on_close

HEAD_MAX, BODY_MAX = 1 << 18, 1 << 25
PIECES = 10  # of a slow answer
BEFORE = {"drop_before", "500_before", "429", "503_retry_after", "bad_request", "hang"}
REASONS = {
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 413: "Content Too Large", 422: "Unprocessable Entity", 429: "Too Many Requests",
    500: "Internal Server Error", 503: "Service Unavailable",
}


class Request:
    """One request as it came: `raw` is every byte of it. `status` and `sent` say what was answered; `complete` whether the whole answer was written."""

    def __init__(self, n, connection, at, raw_head, raw_body, body):
        self.n, self.connection, self.at, self.raw, self.head, self.body = n, connection, at, raw_head + raw_body, raw_head, body
        lines = raw_head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ", 2)
        self.headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)]
        self.path, _, self.query_text = self.target.partition("?")
        self.step, self.status, self.sent, self.complete, self.effects = "ok", None, 0, False, []
        self._body_json = None

    def header(self, name, default=None):
        for found, value in self.headers:
            if found.lower() == name.lower():
                return value
        return default

    def query(self):
        return dict(urllib.parse.parse_qsl(self.query_text, keep_blank_values=True))

    def form(self):
        return dict(urllib.parse.parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def json(self):
        """The body as JSON; an empty object when it is none."""
        if self._body_json is None:
            try:
                self._body_json = json.loads(self.body or b"{}")
            except ValueError:
                self._body_json = {}
        return self._body_json

    def fields(self):
        """A JSON or form body, whichever it is."""
        return self.json() if "json" in (self.header("Content-Type") or "") else self.form()

    def as_json(self):
        kept = {name: value for name, value in vars(self).items() if name not in ("raw", "head", "body", "_body_json")}
        size = len(self.head)
        return dict(kept, raw_b64=base64.b64encode(self.raw).decode(), body_b64=base64.b64encode(self.body).decode(), head_size=size)

    @classmethod
    def from_json(cls, data):
        raw, body = base64.b64decode(data["raw_b64"]), base64.b64decode(data["body_b64"])
        size = data["head_size"]
        made = cls(data["n"], data["connection"], data["at"], raw[:size], raw[size:], body)
        made.step, made.status, made.sent, made.complete, made.effects = (data[k] for k in ("step", "status", "sent", "complete", "effects"))
        return made

    def __repr__(self):
        return f"<{self.n}: {self.method} {self.target} {len(self.body)} bytes, {self.step} -> {self.status}>"


class Answer:
    """`body` is bytes, or something that becomes JSON, or a list of bytes: then it is sent in chunks. An answer with `saved` false is not remembered
    under an idempotency key."""

    def __init__(self, status=200, body=b"", headers=(), saved=True, content_type="application/json"):
        self.status, self.headers, self.saved = status, list(headers), saved
        self.chunks = body if isinstance(body, list) and all(isinstance(part, bytes) for part in body) and body else None
        if self.chunks is None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.body = b"".join(self.chunks) if self.chunks else body
        self.content_type = content_type

    def with_headers(self, *headers):
        made = Answer(self.status, self.chunks or self.body, self.headers + list(headers), self.saved, self.content_type)
        return made

    def head(self, close):
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Unknown')}"]
        if self.body:
            lines.append(f"Content-Type: {self.content_type}")
        lines.append("Transfer-Encoding: chunked" if self.chunks else f"Content-Length: {len(self.body)}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if close:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def pieces(self):
        """The body as it goes over the wire, without the end of a chunked one."""
        if self.chunks:
            return [b"%x\r\n%s\r\n" % (len(part), part) for part in self.chunks]
        return [self.body] if self.body else []

    def ending(self):
        return b"0\r\n\r\n" if self.chunks else b""


class Refused(Exception):
    """Raised by a handler: the provider refuses with this answer. Validation failures are not remembered under a key."""

    def __init__(self, answer, saved=False):
        super().__init__(answer.status)
        self.answer = answer
        self.answer.saved = saved


def route(method, pattern, acts):
    """Marks a handler. `acts` says whether it can have an effect: only those consume the script (readers have their own, script(…, on="read"))."""

    def mark(function):
        function.route = (method, re.compile(pattern + r"\Z"), acts)
        return function

    return mark


class WebFake(Fake):
    saves_errors = False  # whether a 500 is remembered under the key, or what really happened

    def __init__(self, **options):
        super().__init__(**options)
        found = (getattr(type(self), name) for name in dir(type(self)))
        self.routes = sorted((handler for handler in found if hasattr(handler, "route")), key=self._generality)

    @staticmethod
    def _generality(handler):
        """The most special route is tried first."""
        method, pattern, _ = handler.route
        return method == "*", pattern.pattern.count("("), -len(pattern.pattern)

    # What a provider may say in its own way

    def error(self, status, message, headers=()):
        return Answer(status, {"error": {"message": message}}, headers)

    def credential_of(self, request):
        return request.header("Authorization", "")

    def authorised(self, request):
        presented = self.credential_of(request)
        if presented.startswith("Basic "):
            presented = base64.b64decode(presented[6:]).decode("latin-1")
        return self.token is None or self.token in presented

    def open_key(self, request):
        """An Answer when a key decides it, else whatever close_key wants to have."""

    def close_key(self, entry, answer):
        pass

    # Reading

    async def _connection(self, reader, writer, number):
        while True:
            self.idle_writers.add(writer)
            request = await self._read(reader, writer, number)
            self.idle_writers.discard(writer)
            if request is None or not await self._serve(request, reader, writer) or self._refuses_next():
                return

    async def _read(self, reader, writer, number):
        """The next request, or None at the end of the connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as end:
            self.broken += 1 if end.partial else 0
            return None
        self.idle_writers.discard(writer)
        try:
            fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
            if fields.get(b"expect", b"").lower() == b"100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
                raw, body = await self._read_chunks(reader)
            else:
                raw = body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.broken += 1  # never a whole request: nothing can have happened
            return None
        request = Request(len(self._requests) + 1, number, self.now(), head, raw, body)
        self._requests.append(request)
        return request

    async def _read_chunks(self, reader):
        raw, body = b"", b""
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            block = await reader.readexactly(size + 2)
            raw += line + block
            body += block[:-2]
            if size == 0:
                return raw, body

    # Working

    def _find(self, request):
        for handler in self.routes:
            method, pattern, acts = handler.route
            found = pattern.match(request.path)
            if found and method in ("*", request.method):
                return handler, found.groupdict(), acts
        return None, {}, False

    async def _serve(self, request, reader, writer):
        """Works on one request; True when the connection may go on."""
        handler, groups, acts = self._find(request)
        step = self._take("act" if acts else "read") if handler else OK
        request.step = step.name
        self._note({"request": request.as_json()})
        if step.name == "refuse_connect":  # it came on a connection that was open already
            self.refused += 1
            reset_on_close(writer)
            return False
        answer = await self._decide(request, handler, groups, step)
        keep = await self._deliver(request, answer, step, reader, writer)
        self._note({"answer": {"request": request.n, "status": request.status, "sent": request.sent, "complete": request.complete}})
        return keep

    async def _decide(self, request, handler, groups, step):
        if handler is None:
            return self.error(404, f"there is no {request.method} {request.path}")
        if step.name in BEFORE:
            return self._refusal(step)
        if not self.authorised(request):
            return self.error(401, "the credential is missing or wrong")
        if step.name == "forget_keys":
            self.forget_keys()
        entry = self.open_key(request)
        if isinstance(entry, Answer):
            return entry
        kept = None  # a request that was cut short leaves no key behind
        try:
            if step.name == "late_act":
                await self._pause(step)
            done = self.after_act(request, self._handle(handler, request, groups), step)
            if step.name == "act_then_late":
                await self._pause(step)
            answer = self._spoiled(done, step)
            kept = answer if self.saves_errors else done
            return answer
        finally:
            self.close_key(entry, kept)

    def _handle(self, handler, request, groups):
        try:
            return handler(self, request, **groups)
        except Refused as refused:
            return refused.answer

    def after_act(self, request, answer, step):
        """For faults that only one provider has."""
        return answer

    def _spoiled(self, answer, step):
        if step.name == "act_then_500" and answer.status < 400:
            return self.error(500, "something went wrong after all")
        return answer

    def _refusal(self, step):
        if step.name in ("drop_before", "hang"):
            return None
        after = ("Retry-After", f"{step.seconds:g}")
        if step.name == "429":
            return self.error(429, "too many requests", [after])
        if step.name == "503_retry_after":
            return self.error(503, "not available", [after])
        return self.error(500, "something went wrong") if step.name == "500_before" else self.error(400, "the request is wrong")

    # Answering

    async def _deliver(self, request, answer, step, reader, writer):
        if step.name in ("hang", "act_then_hang"):
            await self._hang(reader)
            return False
        if answer is None or step.name == "act_then_drop":
            return False
        close = "close" in (request.header("Connection") or "").lower() or request.version == "HTTP/1.0"
        request.status = answer.status
        head, pieces = answer.head(close), answer.pieces()
        if step.name.startswith("truncate"):
            whole = b"".join(pieces)
            cut = head[: step.at or len(head) // 2] if step.name == "truncate_head" or not whole else head + whole[: step.at or len(whole) // 2]
            await self._write(request, writer, cut)
            return False
        if step.name == "slow_stream":
            await self._dribble(request, writer, answer, head, pieces, step)
        else:
            await self._write(request, writer, head + b"".join(pieces) + answer.ending())
        request.complete = True
        self.answered += 1
        return not close

    async def _write(self, request, writer, data):
        writer.write(data)
        request.sent += len(data)
        await writer.drain()

    async def _dribble(self, request, writer, answer, head, pieces, step):
        if len(pieces) == 1:
            size = -(-len(pieces[0]) // PIECES)
            pieces = [pieces[0][start : start + size] for start in range(0, len(pieces[0]), size)]
        await self._write(request, writer, head)
        for number, piece in enumerate(pieces):
            if not step.released:
                await asyncio.sleep(step.seconds / len(pieces))
            elif number == len(pieces) // 2:
                await self._pause(step)
            await self._write(request, writer, piece)
        if answer.ending():
            await self._write(request, writer, answer.ending())

    async def _hang(self, reader):
        """Until the other side gives up."""
        while await reader.read(65536):
            pass
