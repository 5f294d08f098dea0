"""HTTP for asyncio: kept-alive connections on asyncio's streams, without threads. Connections belong to the loop that made them."""

from __future__ import annotations

import asyncio
import ssl
import time
import weakref
from typing import Dict, List, Optional, Tuple

from .address import Address
from .steps import step
from .transport import IDLE_CONNECTIONS_MAX, IDLE_SECONDS_MAX
from .wire import Lost, NotSent, Reply, Request

HEADERS_MAX = 100
BODY_SIZE_MAX = 64 * 1024 * 1024

_Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]
_Idle = List[Tuple[float, _Streams]]


class BadReply(Exception):
    """What came back is no HTTP/1.1."""


class AsyncTransport:
    def __init__(self, address: Address, token: Optional[str], timeout_s: float, tls: Optional[ssl.SSLContext] = None) -> None:
        self.address, self.token, self.timeout_s, self.tls = address, token, timeout_s, tls
        self._pools: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle]" = weakref.WeakKeyDictionary()

    async def exchange(self, request: Request) -> Reply:
        """One request and its answer. NotSent or Lost when there is none."""
        step(f"before {request.name}")
        reply = await self._exchange(request)
        step(f"after {request.name}")
        return reply

    async def _exchange(self, request: Request) -> Reply:
        streams, reused = await self._take()
        try:
            reply, keep = await asyncio.wait_for(self._talk(streams, request), self.timeout_s + request.wait_s)
        except asyncio.TimeoutError as error:
            _abort(streams)
            raise Lost(f"{self.address} did not answer {request.name} in time") from error
        except (OSError, EOFError, ValueError, BadReply) as error:
            _abort(streams)
            raise Lost(f"{self.address} did not answer {request.name}: {error or type(error).__name__}", reused) from error
        except BaseException:  # cancelled: what comes on this connection would be taken for the answer to another call
            _abort(streams)
            raise
        if keep:
            self._give_back(streams)
        else:
            streams[1].close()
        return reply

    async def _talk(self, streams: _Streams, request: Request) -> Tuple[Reply, bool]:
        reader, writer = streams
        lines = [f"{request.method} {self.address.prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers(self.address, self.token).items()]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (request.body or b""))
        await writer.drain()
        return await _read_reply(reader)

    def _pool(self) -> _Idle:
        return self._pools.setdefault(asyncio.get_running_loop(), [])

    async def _take(self) -> Tuple[_Streams, bool]:
        pool = self._pool()
        while pool:
            since, streams = pool.pop()
            if time.monotonic() - since < IDLE_SECONDS_MAX and not streams[0].at_eof() and not streams[1].is_closing():
                return streams, True
            _abort(streams)
        return await self._connect(), False

    async def _connect(self) -> _Streams:
        try:
            return await asyncio.wait_for(self._open(), self.timeout_s)
        except (OSError, asyncio.TimeoutError) as error:
            raise NotSent(f"no connection to {self.address}: {error or 'time is over'}") from error

    async def _open(self) -> _Streams:
        if self.address.socket is not None:
            return await asyncio.open_unix_connection(self.address.socket)
        tls = (self.tls or ssl.create_default_context()) if self.address.scheme == "https" else None
        return await asyncio.open_connection(self.address.host, self.address.port, ssl=tls)

    def _give_back(self, streams: _Streams) -> None:
        pool = self._pool()
        if len(pool) < IDLE_CONNECTIONS_MAX:
            pool.append((time.monotonic(), streams))
        else:
            streams[1].close()

    async def close(self) -> None:
        """Ends the idle connections of the running loop."""
        pool = self._pool()
        while pool:
            writer = pool.pop()[1][1]
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass


def _abort(streams: _Streams) -> None:
    if not streams[1].transport.is_closing():
        streams[1].transport.abort()


# ---- reading ----


async def _read_reply(reader: asyncio.StreamReader) -> Tuple[Reply, bool]:
    status = await _read_status(reader)
    while status < 200:  # 1xx: the true answer follows
        await _read_headers(reader)
        status = await _read_status(reader)
    headers = await _read_headers(reader)
    keep = headers.get("connection", "").lower() != "close"
    if status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(_size(headers["content-length"], 10))
    else:
        body, keep = await reader.read(BODY_SIZE_MAX), False
    return Reply(status, headers, body), keep


async def _read_line(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection ended")
    return line.rstrip(b"\r\n").decode("latin-1")


async def _read_status(reader: asyncio.StreamReader) -> int:
    words = (await _read_line(reader)).split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdigit() and len(words[1]) == 3):
        raise BadReply("this is no HTTP/1.1")
    return int(words[1])


async def _read_headers(reader: asyncio.StreamReader) -> Dict[str, str]:
    headers: Dict[str, str] = {}
    for _ in range(HEADERS_MAX + 1):
        line = await _read_line(reader)
        if not line:
            return headers
        name, colon, value = line.partition(":")
        if not colon:
            raise BadReply("a header without a colon")
        headers[name.strip().lower()] = value.strip()
    raise BadReply("too many headers")


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = _size((await _read_line(reader)).split(";")[0].strip(), 16)
        if size == 0:
            await _read_headers(reader)  # trailers
            return bytes(body)
        body += await reader.readexactly(size)
        await _read_line(reader)
        if len(body) > BODY_SIZE_MAX:
            raise BadReply("the body is too long")


def _size(text: str, base: int) -> int:
    size = int(text, base)
    if not 0 <= size <= BODY_SIZE_MAX:
        raise BadReply(f"a length of {text}")
    return size
