"""Connections: kept alive, Unix sockets, tokens, TLS, and answers in every form that HTTP allows."""

import asyncio
import socket
import ssl
import subprocess
import threading

import pytest
from lossy import Lossy, address

from semel import AsyncClient, Client, NotAllowed, Unreachable
from semel.address import parse_url
from semel.aio_transport import BadReply, _read_reply


def test_connections_are_kept(semel):
    proxy = Lossy(address(semel.url))
    client = Client(proxy.url)
    for n in range(10):
        with client.claim(f"job:{n}"):
            pass
    assert (proxy.connections, len(proxy.seen)) == (1, 30)
    client.close()

    async def main():
        async with AsyncClient(proxy.url) as own:
            for n in range(10):
                async with own.claim(f"async:{n}"):
                    pass

    asyncio.run(main())
    assert (proxy.connections, len(proxy.seen)) == (2, 60)
    proxy.close()


def test_a_connection_that_the_server_closed_is_replaced_without_waiting(semel, both):
    proxy = Lossy(address(semel.url), {3: "request"})
    client = both.client(proxy.url, patience=0)
    if both.name == "sync":
        for n in range(2):
            with client.claim(f"job:{n}") as c:
                c.result = n
    else:
        async def main():
            for n in range(2):
                async with client.claim(f"job:{n}") as c:
                    c.result = n

        asyncio.run(main())
    assert {intent["state"] for intent in semel.intents()} == {"confirmed"} and proxy.connections == 2
    proxy.close()


def test_an_async_client_serves_several_loops(semel):
    client = AsyncClient(semel.url)

    async def job(n):
        async with client.claim(f"job:{n}") as c:
            c.result = n
        return c.result

    assert [asyncio.run(job(n)) for n in range(3)] == [0, 1, 2]


def test_a_unix_socket(tmp_path, both):
    from semel.testing import find_binary

    path = tmp_path / "s"
    process = subprocess.Popen(
        [find_binary(), "up", "--data", str(tmp_path / "data"), "--listen", f"unix:{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert both.held(both.client(f"unix:{path}", patience=120), lambda c: 7, "job:1") == 7  # it is not there yet
    finally:
        process.kill()
        process.wait()


def test_https(tmp_path, both):
    from test_lost_messages import address_in

    from semel.testing import find_binary

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True,
    )
    words = [find_binary(), "up", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--tls-cert", str(cert), "--tls-key", str(key)]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        url = address_in(tmp_path / "log")
        context = ssl.create_default_context(cafile=str(cert))
        assert both.held(both.client(url, tls=context), lambda c: 7, "job:1") == 7
        with pytest.raises(Unreachable, match="certificate|CERTIFICATE|verify"):
            both.held(both.client(url, patience=0.1), lambda c: 7, "job:1")
    finally:
        process.kill()
        process.wait()


def test_a_wrong_token_is_named_as_such(tmp_path, both):
    from test_lost_messages import serve

    from semel.testing import find_binary

    with serve(find_binary(), tmp_path) as (url, token):
        assert both.held(both.client(url, token=token), lambda c: 7, "job:1") == 7
        for wrong in ("", token[:-1] + ("y" if token.endswith("x") else "x")):
            with pytest.raises(NotAllowed):
                both.held(both.client(url, token=wrong), lambda c: 7, "job:1")


def test_urls():
    assert str(parse_url("http://localhost:7363/")) == "http://localhost:7363"
    assert parse_url("https://semel.example/behind/proxy/").prefix == "/behind/proxy"
    assert parse_url("https://semel.example").port == 443
    assert parse_url("http://[::1]:7363").host_header == "[::1]:7363"
    assert parse_url("unix:/run/semel.sock").socket == parse_url("unix:///run/semel.sock").socket == "/run/semel.sock"
    for wrong in ("semel.example:7363", "unix:relative", "http://", "http://x/?a=b"):
        with pytest.raises(ValueError):
            parse_url(wrong)


def read(raw):
    async def main():
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        return await _read_reply(reader)

    return asyncio.run(main())


def test_answers_in_every_form():
    reply, keep = read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Y:  z \r\n\r\n{}rest")
    assert (reply.status, reply.body, reply.headers["x-y"], keep) == (200, b"{}", "z", True)
    reply, keep = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n1\r\n \r\n0\r\nTrailer: t\r\n\r\n")
    assert (reply.body, keep) == (b"{} ", True)
    reply, keep = read(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nConnection: close\r\n\r\n{}")
    assert (reply.status, reply.body, keep) == (201, b"{}", False)
    reply, keep = read(b"HTTP/1.0 204 No Content\r\n\r\n")
    assert (reply.status, reply.body) == (204, b"")
    for wrong in [b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
                  b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"]:
        with pytest.raises((BadReply, EOFError, ValueError)):
            read(wrong)


def test_a_server_that_never_answers(both):
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: [server.accept() for _ in range(9)], daemon=True).start()
    with pytest.raises(Unreachable):
        both.held(both.client("http://127.0.0.1:%d" % server.getsockname()[1], timeout=0.1, patience=0, wait=0), lambda c: 1, "job:1")
    server.close()


def test_a_long_wait_is_asked_for_in_slices(semel, both, monkeypatch):
    from semel import InProgress, protocol

    monkeypatch.setattr(protocol, "WAIT_SLICE_S", 0.05)
    proxy = Lossy(address(semel.url))
    semel.client().ask("job", "job:1")
    with pytest.raises(InProgress):
        both.held(both.client(proxy.url, timeout=60), lambda c: 1, "job:1", wait=3)
    assert len(proxy.seen) >= 3
    proxy.close()
