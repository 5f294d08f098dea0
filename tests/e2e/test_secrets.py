"""Secrets: stored sealed, used, never given back; nothing of them on disk, in logs or in a core dump; the master key can be changed while semel runs."""

import base64
import contextlib
import hashlib
import hmac
import os
import pty
import random
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from semel_process import binary, until

PLANTED = 100


def make_key(path, *keys, mode=0o400):
    path.write_bytes(b"".join(base64.b64encode(key) + b"\n" for key in keys))
    path.chmod(mode)
    return path


def key_ids(path):
    keys = [base64.b64decode(line) for line in path.read_bytes().split(b"\n") if line]
    return [hmac.new(key, b"semel-master-key-id-1", hashlib.sha256).hexdigest()[:16] for key in keys]


@pytest.fixture
def options(house, storage):
    """What a daemon needs to keep secrets: on PostgreSQL a key that all nodes share."""
    if storage == "sqlite":
        return {}
    return {"options": ["--master-key", str(make_key(house.directory / "given.key", secrets.token_bytes(32)))]}


@pytest.fixture
def daemon(house, storage, options):
    return house.start(storage, **options)


@pytest.fixture
def api(house, daemon):
    return house.client(daemon)


def put(client, name, value):
    answer = client.request("PUT", f"/v1/secrets/{name}", {"value": value})
    assert answer.status == 200, answer
    return answer


def listed(client):
    answer = client.get("/v1/secrets")
    assert answer.status == 200, answer
    return {one["name"]: one for one in answer.json["data"]}


def files_under(*folders):
    for folder in folders:
        for root, _, names in os.walk(folder):
            yield from (os.path.join(root, name) for name in names)


def found_in(paths, words):
    """The words that stand in any of the files, as they are or as a database might write them."""
    found = set()
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue
        for word in words:
            if any(form in content for form in (word.encode(), word.encode("utf-16-le"), word.encode().hex().encode())):
                found.add(word)
    return found


class Planted:
    """Values with the same beginning and the same end, so that one look finds any of them, and also what is left of one after its beginning was overwritten."""

    def __init__(self):
        self.begin, self.end = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.values = []

    def value(self, size=16):
        self.values.append(self.begin + secrets.token_urlsafe(size) + self.end)
        return self.values[-1]

    @property
    def words(self):
        return [self.begin, self.end]


def dump_core(daemon, directory):
    """What a core dump would hold, or None where it cannot be made."""
    status = dict(line.split(":", 1) for line in open(f"/proc/{daemon.pid}/status"))
    if shutil.which("gcore") is None or int(status["VmSize"].split()[0]) > 8 << 20:  # KiB; a sanitizer's shadow would fill the disk
        return None
    done = subprocess.run(["gcore", "-o", str(directory / "core"), str(daemon.pid)], capture_output=True, timeout=120)
    path = directory / f"core.{daemon.pid}"
    return path if done.returncode == 0 and path.exists() else None


def half_requests(daemon, planted):
    """Bodies that break off."""
    connections = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(20)]
    for connection in connections:
        connection.sendall(b'PUT /v1/secrets/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"value":"' + planted.value().encode())
    for connection in connections:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000) == b""
        connection.close()


def chunked_request(daemon, planted):
    """A body that is moved together, far, while it comes in; the connection stays open."""
    connection = socket.create_connection(("127.0.0.1", daemon.port))
    value = planted.value().encode()
    start = b"1\r\n \r\n" * 200 + b'a\r\n{"value":"\r\n'
    connection.sendall(b"PUT /v1/secrets/c HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + start + b"%x\r\n%s\r\n" % (len(value), value))
    time.sleep(0.1)
    connection.sendall(b'2\r\n"}\r\n0\r\n\r\n')
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    return connection


def test_planted_values_are_found_nowhere(house, storage, daemon, api):
    planted = Planted()
    marker = "marker-" + secrets.token_hex(12)  # something that is kept, so that an empty search is no success
    api.claim("w", marker)
    for at in range(PLANTED):
        word = planted.value() + ("\n" if at % 3 == 0 else "")  # with an escape it is decoded into other memory
        put(api, f"s{at % 60}", word)  # some are replaced
    put(api, "large", planted.value(12000))
    assert api.request("PUT", "/v1/secrets/x", {"value": planted.value() + "\0"}).status == 400
    assert api.request("PUT", "/v1/secrets/x", {"value": planted.value(), "colour": 1}).status == 400
    assert api.request("PUT", "/v1/secrets/-x", {"value": planted.value()}).status == 400
    assert api.request("PUT", "/v1/secrets/x", b'{"value":"\\n' + planted.value().encode() + b'"').status == 400
    assert api.request("DELETE", "/v1/secrets/s1").json == {"name": "s1", "removed": True}
    answers = [api.get(path).raw.decode() for path in ("/v1/secrets", "/v1/decisions?limit=200", "/metrics", "/v1/policy")]
    assert not [word for word in planted.words for answer in answers if word in answer]

    folders = [daemon.data] + ([house.request.getfixturevalue("postgres").dir] if storage == "postgres" else [])
    assert found_in(files_under(*folders), planted.words + [marker]) == {marker}
    half_requests(daemon, planted)
    kept = chunked_request(daemon, planted)
    api.get("/healthz")  # until the next copy, the processor's registers hold the end of the last one
    core = dump_core(daemon, house.directory)
    if core is not None:
        assert found_in([core], planted.words) == set()
        given = daemon.data / "master.key" if storage == "sqlite" else house.directory / "given.key"
        memory = core.read_bytes()
        assert given.read_bytes().strip() not in memory and base64.b64decode(given.read_bytes()) not in memory
        core.unlink()
    kept.close()
    assert daemon.stop() == 0
    assert found_in(files_under(*folders), planted.words + [marker]) == {marker}
    assert found_in([daemon.log], planted.words) == set()


def test_core_dump_search_would_find_something(house):
    """The other half of the test above: what is not a secret is in a core dump."""
    daemon = house.start("sqlite")
    marker = "marker-" + secrets.token_hex(12)
    held = house.client(daemon).claim("w", marker)
    assert held.status == 201
    core = dump_core(daemon, house.directory)
    if core is None:
        pytest.skip("no core dump can be made here")
    assert found_in([core], [marker]) == {marker}  # in the database's pages
    core.unlink()


def test_every_change_is_in_the_decision_log(api):
    put(api, "smtp", "one")
    put(api, "smtp", "two")
    api.request("DELETE", "/v1/secrets/smtp")
    assert api.request("DELETE", "/v1/secrets/smtp").status == 404
    put(api, "smtp", "three")
    api.post("/v1/secrets/rewrap", {})
    rows = [one for one in api.get("/v1/decisions").json["data"] if one["kind"].startswith("secret_")]
    kinds = [(one["kind"], one["changes"].get("secret"), one["changes"].get("version")) for one in reversed(rows)]
    assert kinds[:4] == [("secret_set", "smtp", 1), ("secret_set", "smtp", 2), ("secret_remove", "smtp", 3), ("secret_set", "smtp", 4)]
    assert listed(api)["smtp"]["version"] == 4
    assert all(one["actor"] == "local" for one in rows)


@pytest.mark.parametrize("body, field", [({}, "value"), ({"value": ""}, "value"), ({"value": 1}, "value"), ({"value": "x" * 16385}, "value"),
                                         ({"value": "a\0b"}, "value"), ({"value": "x", "more": 1}, "more")])
def test_bad_values_are_refused(house, body, field):
    client = house.client(house.start("sqlite"))
    answer = client.request("PUT", "/v1/secrets/x", body)
    assert answer.status == 400 and answer.json["field"] == field, answer
    assert listed(client) == {}


def test_longest_value_and_names(api):
    put(api, "x" * 64, "y" * 16384)
    put(api, "A_b.c-9", "\u00e9\n\"\\")
    for name in ("x" * 65, ".", "-a", ".a", "a%2Fb", "a%20b", "%C3%A9"):
        assert api.request("PUT", f"/v1/secrets/{name}", {"value": "v"}).status in (400, 404), name
    assert sorted(listed(api)) == ["A_b.c-9", "x" * 64]


def test_spaces_do_not_see_each_other(house, storage, options):
    server = house.start(storage, command="serve", **options)
    admin = house.client(server, token=(server.data / "admin.token").read_text().strip())
    made = admin.post("/v1/tokens", {"name": "other", "scopes": ["admin"], "space": "other"}).json
    other = house.client(server, token=made["token"])
    put(admin, "smtp", "main's")
    assert listed(other) == {}
    assert other.request("DELETE", "/v1/secrets/smtp").status == 404
    put(other, "smtp", "other's")
    assert listed(admin)["smtp"]["version"] == listed(other)["smtp"]["version"] == 1
    refused = other.post("/v1/secrets/rewrap", {})
    assert refused.status == 403 and refused.code == "forbidden"


# ---- the master key ----

def test_master_key_is_made_at_the_first_use_for_the_owner_only(house):
    daemon = house.start("sqlite")
    client, path = house.client(daemon), daemon.data / "master.key"
    assert not path.exists()
    put(client, "a", "v")
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert listed(client)["a"]["master_key"] == key_ids(path)[0]


@pytest.mark.parametrize("where", ["own", "given", "credential"])
def test_key_that_others_can_read_stops_the_start(house, monkeypatch, where):
    daemon = house.make("sqlite")
    daemon.data.mkdir()
    path = {"own": daemon.data / "master.key", "given": house.directory / "given.key", "credential": house.directory / "semel-master-key"}[where]
    make_key(path, secrets.token_bytes(32), mode=0o444)
    if where == "given":
        daemon.options += ["--master-key", str(path)]
    if where == "credential":
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(house.directory))
    daemon.launch()
    assert daemon.process.wait(timeout=120) == 78
    assert "can be read by others" in daemon.said() and f"chmod 0400 {path}" in daemon.said()
    path.chmod(0o400)
    client = house.client(daemon.start())
    put(client, "a", "v")
    assert listed(client)["a"]["master_key"] == key_ids(path)[0]


def test_missing_given_key_stops_the_start(house):
    daemon = house.make("sqlite", options=["--master-key", str(house.directory / "none.key")])
    daemon.launch()
    assert daemon.process.wait(timeout=120) == 78
    assert "none.key is missing" in daemon.said()


def test_lost_key_is_said_and_not_replaced(house):
    daemon = house.start("sqlite")
    client, path = house.client(daemon), daemon.data / "master.key"
    put(client, "a", "v")
    client.close()
    assert daemon.stop() == 0
    path.rename(house.directory / "kept")
    daemon.start()
    assert "their master key is missing" in daemon.said()
    answer = client.request("PUT", "/v1/secrets/b", {"value": "v"})
    assert answer.status == 409 and answer.code == "master_key" and "Put it back" in answer.json["detail"]
    assert not path.exists()
    assert client.claim("w", "k").status == 201  # the ledger goes on


def test_postgres_needs_a_key_that_is_given(house):
    client = house.client(house.start("postgres"))
    answer = client.request("PUT", "/v1/secrets/a", {"value": "v"})
    assert answer.status == 409 and answer.code == "master_key" and "--master-key FILE" in answer.json["detail"], answer
    assert listed(client) == {}


def test_other_nodes_see_a_change(house):
    path = make_key(house.directory / "given.key", secrets.token_bytes(32))
    one = house.start("postgres", options=["--master-key", str(path)])
    two = house.start("postgres", db=one.db, options=["--master-key", str(path)])
    first, second = house.client(one), house.client(two)
    put(first, "a", "v")
    until(lambda: listed(second).get("a", {}).get("version") == 1, "the secret on the other node")
    put(second, "a", "w")
    until(lambda: listed(first)["a"]["version"] == 2, "its new version on the first node")
    first.request("DELETE", "/v1/secrets/a")
    until(lambda: listed(second) == {}, "its end on the other node")


def test_rewrap_with_a_key_that_the_operator_gives(house, storage):
    old, new = secrets.token_bytes(32), secrets.token_bytes(32)
    path = make_key(house.directory / "given.key", old)
    client = house.client(house.start(storage, options=["--master-key", str(path)]))
    for at in range(20):
        put(client, f"s{at}", "v")
    before = {one["master_key"] for one in listed(client).values()}
    path.unlink()
    make_key(path, new, old)
    assert client.post("/v1/secrets/rewrap", {}).json == {"master_key": key_ids(path)[0], "rewrapped": 20}
    assert {one["master_key"] for one in listed(client).values()} == {key_ids(path)[0]} != before
    assert client.post("/v1/secrets/rewrap", {}).json["rewrapped"] == 0
    assert base64.b64decode(path.read_bytes().split(b"\n")[1]) == old  # an operator's file is not touched


def test_killed_rewrap_leaves_no_secret_without_its_key(house, seconds):
    daemon = house.start("sqlite")
    client, path = house.client(daemon), daemon.data / "master.key"
    for at in range(600):
        put(client, f"s{at}", f"value {at}")
    seen, end, rounds = set(key_ids(path)), time.monotonic() + seconds, 0
    while rounds < 5 or time.monotonic() < end:
        asker = house.client(daemon)

        def ask():
            try:
                asker.post("/v1/secrets/rewrap", {})
            except OSError:
                pass

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(random.uniform(0, 0.03))
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        thread.join()
        client.close()
        daemon.start()
        needed = {one["master_key"] for one in listed(client).values()}
        assert len(listed(client)) == 600 and needed <= set(key_ids(path)), (needed, key_ids(path))
        seen |= needed
        rounds += 1
    assert "cannot be opened" not in daemon.said()
    done = client.post("/v1/secrets/rewrap", {})
    assert done.status == 200 and key_ids(path) == [done.json["master_key"]]
    assert {one["master_key"] for one in listed(client).values()} == set(key_ids(path))


# ---- the command line ----

def cli(daemon, *words, value=None):
    return subprocess.run([binary(), "secret", *words, "--url", f"http://127.0.0.1:{daemon.port}"], input=value, text=True, capture_output=True, timeout=60)


def test_commands(house, daemon, api):
    done = cli(daemon, "set", "smtp", value="hunter-two\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "set smtp, version 1\n", "")
    assert cli(daemon, "set", "smtp", value="").returncode == 65
    assert cli(daemon, "set", "smtp", value="x" * 16385).returncode == 65
    assert cli(daemon, "set", "smtp", value="x" * 16384 + "\n").returncode == 0
    assert cli(daemon, "set", "a/b", value="x").returncode == 64
    assert cli(daemon, "set", "smtp", "value").returncode == 64  # never on the command line
    shown = cli(daemon, "ls")
    assert shown.returncode == 0 and shown.stdout.split("\n")[1].split()[:2] == ["smtp", "2"] and "hunter" not in shown.stdout
    done = cli(daemon, "rewrap")
    assert done.returncode == 0 and "are now sealed for the master key" in done.stdout, done
    assert cli(daemon, "rm", "smtp").stdout == "removed smtp\n"
    assert cli(daemon, "rm", "smtp").returncode == 65
    assert listed(api) == {}


def test_value_is_asked_for_and_not_shown_on_a_terminal(house):
    daemon = house.start("sqlite")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(binary(), [binary(), "secret", "set", "smtp", "--url", f"http://127.0.0.1:{daemon.port}"])
    said = b""

    def hear():
        nonlocal said
        if not select.select([terminal], [], [], 60)[0]:
            os.kill(pid, signal.SIGKILL)
        said += os.read(terminal, 1024)

    while b"not shown" not in said:
        hear()
    os.write(terminal, b"hunter-two\n")
    with contextlib.suppress(OSError):  # the end of a terminal
        while True:
            hear()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    assert b"hunter" not in said and b"set smtp, version 1" in said
    assert "smtp" in listed(house.client(daemon))
