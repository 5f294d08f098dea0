"""Who may do what: tokens and scopes with `serve`, and the guards of `up` against web pages."""

import sqlite3
import stat

import pytest

from semel_process import until

ROUTES = [
    # method, path, the scope it needs
    ("GET", "/", None), ("GET", "/healthz", None), ("GET", "/readyz", None), ("GET", "/problems/fenced", None), ("GET", "/v1/openapi.json", None),
    ("GET", "/metrics", "read"),
    ("POST", "/v1/claims", "claim"),
    *[("POST", f"/v1/claims/int_0000000000001/{what}", "claim") for what in ("sent", "confirm", "fail", "extend", "release")],
    ("POST", "/to/nowhere/x", "claim"), ("POST", "/llm/nobody/x", "claim"), ("GET", "/v1/runs", "read"), ("GET", "/v1/runs/x", "read"),
    ("POST", "/v1/effects", "claim"), ("GET", "/v1/effects", "read"), ("GET", "/v1/effects/eff_0000000000001", "read"),
    ("POST", "/v1/effects/cancel", "claim"), ("POST", "/v1/effects/eff_0000000000001/cancel", "claim"), ("POST", "/v1/effects/retry", "resolve"),
    ("POST", "/v1/effects/eff_0000000000001/retry", "resolve"), ("POST", "/v1/effects/eff_0000000000001/resolve", "resolve"),
    ("GET", "/v1/exceptions", "read"), ("GET", "/v1/exceptions/exc_0000000000001", "read"),
    *[("POST", f"/v1/exceptions/exc_0000000000001/{what}", "resolve") for what in ("assign", "resolve")],
    ("GET", "/v1/intents", "read"), ("GET", "/v1/intents/int_0000000000001", "read"), ("GET", "/v1/decisions", "read"), ("GET", "/v1/policy", "read"),
    ("GET", "/v1/secrets", "admin"), ("PUT", "/v1/secrets/x", "admin"), ("DELETE", "/v1/secrets/x", "admin"), ("POST", "/v1/secrets/rewrap", "admin"),
    ("PUT", "/v1/policy", "admin"), ("GET", "/v1/tokens", "admin"), ("POST", "/v1/tokens", "admin"), ("DELETE", "/v1/tokens/AAAAAAAAAAAA", "admin"),
]


@pytest.fixture
def server(house, storage):
    return house.start(storage, command="serve")


@pytest.fixture
def admin(house, server):
    return house.client(server, token=(server.data / "admin.token").read_text().strip())


def create(admin, *scopes, name="worker", **fields):
    answer = admin.post("/v1/tokens", {"name": name, "scopes": list(scopes), **fields})
    assert answer.status == 201, answer
    return answer.json


def as_token(house, server, token):
    return house.client(server, token=token)


def test_first_start_leaves_an_admin_token_for_the_owner_only(house, server, admin):
    path = server.data / "admin.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    assert path.read_text().strip() not in server.said()
    assert [one["name"] for one in admin.get("/v1/tokens").json["data"]] == ["admin"]
    before = path.read_text()
    admin.close()
    assert server.stop() == 0
    server.start()
    assert path.read_text() == before
    assert admin.get("/v1/tokens").status == 200


def test_nothing_without_a_token(house, server):
    nobody = house.client(server)
    for method, path, scope in ROUTES:
        answer = nobody.request(method, path, {} if method != "GET" else None)
        if scope is None:
            assert answer.status == 200, (path, answer)
        else:
            assert answer.status == 401 and answer.code == "unauthorized", (path, answer)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("scopes", [("claim",), ("read",), ("resolve",), ("claim", "read"), ("admin",)], ids="+".join)
def test_scope_decides(house, server, admin, scopes):
    client = as_token(house, server, create(admin, *scopes)["token"])
    for method, path, needed in ROUTES:
        allowed = needed is None or needed in scopes or "admin" in scopes
        answer = client.request(method, path, {} if method != "GET" else None)
        if allowed:
            assert answer.status not in (401, 403), (path, answer)
        else:
            assert answer.status == 403 and answer.code == "forbidden" and f'"{needed}"' in answer.json["detail"], (path, answer)


def test_revoked_token_is_refused_at_once(house, server, admin):
    made = create(admin, "read")
    client = as_token(house, server, made["token"])
    assert client.get("/v1/intents").status == 200
    assert admin.request("DELETE", f"/v1/tokens/{made['id']}").json == {"id": made["id"], "revoked": True}
    assert client.get("/v1/intents").status == 401
    assert admin.request("DELETE", f"/v1/tokens/{made['id']}").status == 404
    listed = {one["id"]: one for one in admin.get("/v1/tokens").json["data"]}
    assert listed[made["id"]]["revoked_at"] is not None
    assert list(listed[made["id"]]) == ["id", "name", "space", "scopes", "stopped", "created_at", "expires_at", "revoked_at"]


def test_mistyped_token_is_refused(house, server, admin):
    token = create(admin, "read")["token"]
    assert as_token(house, server, token).get("/v1/intents").status == 200
    changed = {token[:-1], token + "a", token[1:], token.upper(), token.replace("_", "-"), "sml_", "x", token[:17] + "_" * 49, token + " " + token}
    for at in range(4, len(token)):
        changed.add(token[:at] + ("a" if token[at] != "a" else "b") + token[at + 1 :])
    for text in changed:
        answer = as_token(house, server, text).get("/v1/intents")
        assert answer.status == 401, text
        assert text[:20] not in answer.raw.decode() or len(text) < 5
    for header in (token, f"Basic {token}", f"Bearer{token}", "Bearer", "Bearer ", f"Token {token}"):
        assert house.client(server).get("/v1/intents", headers={"Authorization": header}).status == 401
    assert house.client(server).get("/v1/intents", headers={"Authorization": f"bearer {token}"}).status == 200


def test_expired_token_is_refused(house):
    server = house.start("sqlite", command="serve")
    admin = house.client(server, token=(server.data / "admin.token").read_text().strip())
    made = create(admin, "read", expires="1m")
    assert as_token(house, server, made["token"]).get("/v1/intents").status == 200
    admin.close()
    assert server.stop() == 0
    with sqlite3.connect(server.data / "semel.db") as database:
        assert database.execute("UPDATE token SET expires = created + 1 WHERE id = ?", (made["id"],)).rowcount == 1
    database.close()
    server.start()
    assert as_token(house, server, made["token"]).get("/v1/intents").status == 401
    assert admin.get("/v1/tokens").status == 200


def test_token_text_is_shown_once_and_not_stored(house, server, admin):
    made = create(admin, "claim")
    assert list(made) == ["token", "id", "name", "space", "scopes", "created_at", "expires_at"]
    assert made["token"].startswith(f"sml_{made['id']}_")
    secret = made["token"].split("_")[2]
    assert secret not in admin.get("/v1/tokens").raw.decode()
    assert secret not in admin.get("/v1/decisions").raw.decode()
    assert secret not in server.said()
    admin.close()
    server.stop()
    for path in server.data.iterdir():
        assert secret.encode() not in path.read_bytes(), path


def test_spaces_do_not_see_each_other(house, server, admin):
    here = as_token(house, server, create(admin, "claim", "read", name="here")["token"])
    there = as_token(house, server, create(admin, "claim", "read", name="there", space="other")["token"])
    held = here.claim("w", "k", input={"a": 1})
    intent = held.json["intent"]
    assert there.intent(intent).status == 404
    assert there.get("/v1/intents").json["data"] == [] and there.get(f"/v1/decisions?intent={intent}").json["data"] == []
    assert there.get("/v1/intents?workflow=w&key=k").json["data"] == []
    for what in ("sent", "confirm", "fail", "extend", "release"):
        assert there.say(what, held).status == 404
    other = there.claim("w", "k", input={"a": 2})
    assert other.status == 201 and other.json["downstream_key"] != held.json["downstream_key"]
    assert here.say("confirm", held, result=1).status == 200


def test_decisions_name_the_token(house, server, admin):
    client = as_token(house, server, create(admin, "claim", name="mailer")["token"])
    held = client.claim("w", "k")
    assert [row["actor"] for row in admin.decisions(held.json["intent"])] == ["token:mailer"]


def test_two_processes_share_tokens_and_policy(house):
    first = house.start("postgres", command="serve")
    second = house.start("postgres", command="serve", db=first.db)
    admin = house.client(first, token=(first.data / "admin.token").read_text().strip())
    made = create(admin, "claim", "read")
    other = as_token(house, second, made["token"])
    until(lambda: other.get("/v1/intents").status == 200, "the new token on the other process")
    admin.policy("workflows: {w: {key: 'x:{a}'}}")
    until(lambda: other.claim("w", input={"a": 1}).status != 400, "the new policy on the other process")
    admin.request("DELETE", f"/v1/tokens/{made['id']}")
    until(lambda: other.get("/v1/intents").status == 401, "the end of the token on the other process")


# ---- without tokens ----


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"}, {"Origin": "http://localhost:1"},
    {"Host": "evil.example"}, {"Host": "evil.example:7363"}, {"Host": "127.0.0.1.evil.example"}, {"Host": "localhost.evil.example"}, {"Host": "192.168.1.1"},
], ids=lambda headers: "-".join(headers.values()).replace("/", ""))
def test_open_mode_refuses_web_pages_and_foreign_names(client, headers):
    for method, path, scope in ROUTES:
        answer = client.request(method, path, {} if method != "GET" else None, headers)
        assert "Access-Control-Allow-Origin" not in answer.headers
        if scope is not None:
            assert answer.status == 403 and answer.code == "forbidden", (path, answer)


def test_open_mode_answers_this_computer(semel, client):
    for host in (f"127.0.0.1:{semel.port}", "localhost", f"LOCALHOST:{semel.port}", "[::1]:80"):
        assert client.get("/v1/intents", headers={"Host": host}).status == 200
    own = f"127.0.0.1:{semel.port}"
    assert client.get("/v1/intents", headers={"Host": own, "Origin": f"http://{own}"}).status == 200


@pytest.mark.parametrize("listen", ["0.0.0.0", "[::]", "192.0.2.1", "localhost.example"])
def test_open_mode_listens_on_loopback_only(house, listen):
    daemon = house.make("sqlite", listen=listen)
    daemon.launch()
    assert daemon.process.wait(timeout=120) != 0
    assert "loopback" in daemon.said() and listen in daemon.said()
