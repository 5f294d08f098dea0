"""/llm/{provider}/…: equal model calls of a run are made once, and everyone gets the same bytes, streams in the same pieces. What is not a whole answer is
not remembered, and asking again is never held for a person."""

import json
import socket
import threading

import pytest

import providers
from conftest import SECONDS
from outbox import Outbox, policy, sink
from semel_process import until

CHAT = {"model": "gpt-test", "messages": [{"role": "user", "content": "Say something"}], "temperature": 1}
SAID = {"model": "claude-test", "max_tokens": 50, "messages": [{"role": "user", "content": "Say something"}]}
ASKED = {"contents": [{"role": "user", "parts": [{"text": "Say something"}]}]}
# provider, path, body; the last ones stream
CALLS = {
    "chat": ("openai", "/v1/chat/completions", CHAT),
    "responses": ("openai", "/v1/responses", {"model": "gpt-test", "input": "Say something"}),
    "embeddings": ("openai", "/v1/embeddings", {"model": "emb-test", "input": "Say something"}),
    "messages": ("anthropic", "/v1/messages", SAID),
    "generate": ("gemini", "/v1beta/models/gem-test:generateContent", ASKED),
    "json-stream": ("gemini", "/v1beta/models/gem-test:streamGenerateContent", ASKED),
    "chat-stream": ("openai", "/v1/chat/completions", {**CHAT, "stream": True}),
    "responses-stream": ("openai", "/v1/responses", {"model": "gpt-test", "input": "Say something", "stream": True}),
    "messages-stream": ("anthropic", "/v1/messages", {**SAID, "stream": True}),
    "generate-stream": ("gemini", "/v1beta/models/gem-test:streamGenerateContent?alt=sse", ASKED),
}
STREAMS = [name for name in CALLS if name.endswith("-stream") and name != "json-stream"]
every_call = pytest.mark.parametrize("kind", CALLS)
every_stream = pytest.mark.parametrize("kind", STREAMS)


@pytest.fixture
def asking(opened, fakes, house):
    """semel in front of a provider: `ask(body, …)` makes one call and gives the answer, `raw(…)` gives the pieces of its body too."""

    def make(kind="chat", storage="sqlite", odd=False, more=None, options=(), **settings):
        provider, path, body = CALLS[kind]
        model = fakes(provider, odd=odd)
        box = opened(storage, more, options, **{provider: sink(model, provider, **{"timeout": "5m", **settings})})
        box.model, box.path, box.body = model, f"/llm/{provider}{path}", body

        def ask(body=None, path=None, client=None, **headers):
            named = {"Content-Type": "application/json", **{name.replace("_", "-"): str(value) for name, value in headers.items()}}
            text = body if isinstance(body, bytes) else json.dumps(box.body if body is None else body).encode()
            return (client or house.client(box.daemon)).request("POST", path or box.path, text, named)

        box.ask = ask
        return box

    return make


def is_replay(answer):
    return answer.headers.get("Idempotent-Replayed") == "true"


def open_stream(box, body=None, **headers):
    text = json.dumps(box.body if body is None else body).encode()
    lines = [f"POST {box.path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(text)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    connection = socket.create_connection(("127.0.0.1", box.daemon.port), timeout=120)
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
    return connection


def read_until(connection, mark):
    data = b""
    while mark not in data:
        block = connection.recv(65536)
        assert block, data
        data += block
    return data


def read_rest(connection, data=b""):
    """(head, the chunks of the body as they were cut, whether the end came)."""
    while block := connection.recv(65536):
        data += block
    head, _, rest = data.partition(b"\r\n\r\n")
    pieces = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return head, pieces, True
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
    return head, pieces, False


def pieces_of(box, **headers):
    with open_stream(box, **headers) as connection:
        return read_rest(connection)


def figures(box, result):
    name = box.path.split("/")[2]
    line = f'semel_llm_cache_total{{provider="{name}",result="{result}"}} '
    found = [row for row in box.client.get("/metrics").raw.decode().splitlines() if row.startswith(line)]
    return int(found[0][len(line) :]) if found else 0


def at_once(count, one):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(one())) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


# One run


@every_call
def test_equal_calls_of_a_run_are_one_call_and_the_same_bytes(asking, storage, kind):
    box = asking(kind, storage, odd=True)
    first, again = [box.ask(Semel_Run="r1") for _ in range(2)]
    assert (first.status, is_replay(first), is_replay(again)) == (200, False, True), first
    assert first.raw == again.raw and first.headers["Content-Type"] == again.headers["Content-Type"]
    assert first.headers["Semel-Intent"] == again.headers["Semel-Intent"]
    assert len(box.model.effects()) == 1 and len(box.model.requests()) == 1
    assert (figures(box, "hit"), figures(box, "miss"), figures(box, "failed")) == (1, 1, 0)


def test_what_makes_two_calls_equal(asking):
    box = asking()
    assert box.ask(Semel_Run="r1", Authorization="Bearer a").status == 200
    same = json.dumps({"temperature": 1.0, "messages": CHAT["messages"], "model": "gpt-test"}, indent=3).encode()
    assert is_replay(box.ask(same, Semel_Run="r1", Authorization="Bearer a")), "the order of the members and the space between them do not matter"
    assert is_replay(box.ask(Semel_Run="r1", Authorization="Bearer a", Semel_Occurrence=1, X_Trace="t"))
    others = [
        dict(Semel_Run="r2", Authorization="Bearer a"), dict(Semel_Run="r1", Authorization="Bearer b"), dict(Semel_Run="r1"),
        dict(Semel_Run="r1", Authorization="Bearer a", Semel_Occurrence=2), dict(Semel_Run="r1", Authorization="Bearer a", OpenAI_Project="p"),
        dict(body={**CHAT, "temperature": 0}, Semel_Run="r1", Authorization="Bearer a"),
        dict(body={**CHAT, "user": "u"}, Semel_Run="r1", Authorization="Bearer a"),
    ]
    for other in others:
        assert not is_replay(box.ask(**other)) and is_replay(box.ask(**other)), other
    assert len(box.model.effects()) == 1 + len(others)


def test_fields_that_may_differ(asking):
    box = asking(ignore=["user", "metadata.trace_id", "nothing.here"])
    bodies = [{**CHAT, "user": user, "metadata": {"trace_id": user, "kept": "x"}} for user in ("a", "b")]
    first, again = [box.ask(body, Semel_Run="r1") for body in bodies]
    assert is_replay(again) and first.raw == again.raw
    assert box.model.requests()[0].json() == bodies[0], "what is sent is what was asked"
    assert not is_replay(box.ask({**bodies[0], "metadata": {"kept": "y"}}, Semel_Run="r1"))


def test_spaces_share_nothing(house, fakes, monkeypatch):
    monkeypatch.setenv("LLM_TEST_KEY", "sk-of-the-house")
    model = fakes("openai")
    daemon = house.start(command="serve", policy=policy({"openai": sink(model, "openai", secret="env:LLM_TEST_KEY")}))
    root = house.client(daemon, token=(daemon.data / "admin.token").read_text().strip())
    tokens = [root.post("/v1/tokens", {"name": name, "space": name, "scopes": ["claim", "read"]}).json["token"] for name in ("one", "two")]
    clients = [house.client(daemon, token=token) for token in tokens]
    for client in clients:
        for again in (False, True):
            answer = client.request("POST", "/llm/openai/v1/chat/completions", CHAT, {"Content-Type": "application/json", "Semel-Run": "r1"})
            assert answer.status == 200 and is_replay(answer) == again
    assert len(model.effects()) == 2 and {request.header("Authorization") for request in model.requests()} == {"Bearer sk-of-the-house"}
    assert [run["run"] for run in clients[0].get("/v1/runs").json["data"]] == ["r1"] and clients[0].get("/v1/runs/r1").json["executed"] == 1


def test_a_credential_reaches_the_provider_and_nothing_keeps_it(asking):
    box = asking("messages")
    answer = box.ask(Semel_Run="r1", x_api_key="sk-ant-very-secret")
    assert answer.status == 200 and box.model.requests()[0].header("x-api-key") == "sk-ant-very-secret"
    box.daemon.stop()
    for path in box.daemon.data.rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes(), path


# Many at once


@every_call
def test_many_at_once_are_one_call(asking, kind):
    box = asking(kind)
    box.model.script(["act_then_late:release"])
    threads, answers = at_once(12, lambda: box.ask(Semel_Run="r1"))
    box.model.wait("held", 1)
    until(lambda: box.client.get("/readyz").json["intents_waiting"] == 11, "11 who wait")
    box.model.release()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200} and len({answer.raw for answer in answers}) == 1
    assert sum(map(is_replay, answers)) == 11 and len(box.model.effects()) == 1


def test_outside_a_run_only_those_at_the_same_time_are_one(asking):
    box = asking()
    box.model.script(["act_then_late:release"])
    threads, answers = at_once(4, box.ask)
    box.model.wait("held", 1)
    until(lambda: box.client.get("/readyz").json["intents_waiting"] == 3, "3 who wait")
    box.model.release()
    for thread in threads:
        thread.join()
    assert len({answer.raw for answer in answers}) == 1 and len(box.model.effects()) == 1
    assert not is_replay(box.ask()) and not is_replay(box.ask()), "who asks anew gets another sample"
    assert len(box.model.effects()) == 3


def test_outside_a_run_a_retry_of_the_client_gets_the_answer(asking):
    box = asking()
    assert not is_replay(box.ask(x_stainless_retry_count=0))
    second = box.ask(x_stainless_retry_count=0)
    retried = box.ask(x_stainless_retry_count=1)
    assert is_replay(retried) and retried.raw == second.raw, "of the last call, not of an earlier one"
    assert not is_replay(box.ask({**CHAT, "n": 2}, x_stainless_retry_count=1)), "one that nobody has seen is made"
    assert len(box.model.effects()) == 3


def test_a_window_that_the_user_set(asking):
    box = asking(memo="10m")
    assert [is_replay(box.ask()) for _ in range(3)] == [False, True, True] and len(box.model.effects()) == 1
    assert not is_replay(box.ask(Semel_Run="r1")), "a run is a matter of its own"


# Streams


@every_stream
def test_a_stream_is_replayed_in_the_same_pieces(asking, kind):
    box = asking(kind, odd=True)
    box.model.script(["slow_stream:1"])
    head, pieces, ended = pieces_of(box, Semel_Run="r1")
    head_again, again, ended_again = pieces_of(box, Semel_Run="r1")
    assert ended and ended_again and pieces == again and len(pieces) > 5
    assert b"Idempotent-Replayed" in head_again and b"Idempotent-Replayed" not in head
    assert {len(piece) for piece in pieces[:-1]} == {1, 7, 3, 64, 2, 41}, "as the provider cut it"


@every_stream
def test_a_stream_passes_as_it_comes(asking, kind):
    box = asking(kind)
    box.model.script(["slow_stream:release"])
    with open_stream(box, Semel_Run="r1") as connection:
        begun = read_until(connection, b"data: ")
        assert box.model.counts()["answered"] == 0
        box.model.release()
        assert read_rest(connection, begun)[2]


@every_stream
def test_who_asks_while_it_streams_reads_along(asking, kind):
    """What is there comes at once, the rest as it comes; all of them get the same pieces."""
    box = asking(kind, odd=True)
    box.model.script(["slow_stream:release"])
    with open_stream(box, Semel_Run="r1") as leader:
        begun = read_until(leader, b"data: ")
        followers = [open_stream(box, Semel_Run="r1") for _ in range(3)]
        early = [read_until(follower, b"data: ") for follower in followers]
        answered = box.model.counts()["answered"]
        box.model.release()
        read = [read_rest(leader, begun)] + [read_rest(*pair) for pair in zip(followers, early)]
    assert answered == 0, "they read before the provider was done"
    for follower, data in zip(followers, early):
        follower.close()
        assert b"Idempotent-Replayed: true" in data and b"Semel-Intent: int_" in data
    assert {ended for _, _, ended in read} == {True} and len({tuple(pieces) for _, pieces, _ in read}) == 1 and len(read[0][1]) > 5
    assert len(box.model.effects()) == 1 and pieces_of(box, Semel_Run="r1")[1] == read[0][1]
    until(lambda: figures(box, "hit") == 4, "the count of those who read along and after")


def test_who_reads_along_notices_a_cut(asking):
    box = asking("chat-stream")
    box.model.script(["slow_stream:release"])
    with open_stream(box, Semel_Run="r1") as leader:
        begun = read_until(leader, b"data: ")
        followers = [open_stream(box, Semel_Run="r1") for _ in range(2)]
        early = [read_until(follower, b"data: ") for follower in followers]
        box.model.cut()
        ends = [read_rest(*pair)[2] for pair in zip([leader, *followers], [begun, *early])]
    for follower in followers:
        follower.close()
    assert ends == [False] * 3 and figures(box, "hit") == 0
    assert not is_replay(box.ask(Semel_Run="r1")) and is_replay(box.ask(Semel_Run="r1"))


@every_stream
def test_a_stream_that_is_cut_is_not_remembered(asking, storage, kind):
    box = asking(kind, storage)
    box.model.script(["truncate"])
    _, pieces, ended = pieces_of(box, Semel_Run="r1")
    assert pieces and not ended, "the client notices"
    whole = box.ask(Semel_Run="r1")
    assert whole.status == 200 and not is_replay(whole) and is_replay(box.ask(Semel_Run="r1"))
    assert len(box.model.effects()) == 2 and Outbox(box.client).cards() == []
    assert (figures(box, "hit"), figures(box, "miss"), figures(box, "failed")) == (1, 1, 1)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_stream_that_ends_politely_before_its_end_is_not_remembered(opened, server, keep):
    """The provider's HTTP is fine; its own mark of the end is missing."""
    def answer(head, body):
        text = b'data: {"a":1}\n\n' + (b"data: [DONE]\n\n" if keep else b"")
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(text), text)

    place = server(answer)
    box = opened(openai=sink(place, "openai"))
    asked = [box.client.request("POST", "/llm/openai/v1/chat/completions", CHAT, {"Semel-Run": "r1"}) for _ in range(2)]
    assert [is_replay(one) for one in asked] == [False, bool(keep)] and asked[0].raw == asked[1].raw and len(place.requests) == 2 - keep


@every_call
def test_a_client_that_drops_gets_the_answer_when_it_asks_again(asking, kind):
    box = asking(kind)
    box.model.script(["act_then_late:release"])
    connection = open_stream(box, Semel_Run="r1")
    box.model.wait("held", 1)
    connection.close()
    box.model.release()
    answer = box.ask(Semel_Run="r1")
    assert answer.status == 200 and is_replay(answer) and len(box.model.effects()) == 1


def test_a_client_that_drops_outside_a_run_and_says_that_it_retries(asking):
    box = asking("chat-stream")
    box.model.script(["slow_stream:1"])
    with open_stream(box, x_stainless_retry_count=0) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    answer = box.ask(x_stainless_retry_count=1)
    assert answer.raw.endswith(b"data: [DONE]\n\n") and is_replay(answer) and len(box.model.effects()) == 1


# Sizes


def test_large_requests_and_answers(opened, server, house):
    answer = json.dumps({"id": "x", "text": "é\n" * (4 << 20)}).encode()
    place = server(lambda head, body: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
    box = opened(openai=sink(place, "openai", response_max="40MiB", timeout="2m"))
    body = json.dumps({"model": "m", "picture": "x" * (15 << 20)}).encode()
    asked = [box.client.request("POST", "/llm/openai/v1/chat/completions", body, {"Semel-Run": "r1"}) for _ in range(2)]
    assert [(one.status, one.raw == answer, is_replay(one)) for one in asked] == [(200, True, False), (200, True, True)]
    assert len(place.requests) == 1 and place.requests[0][2] == body
    assert announce(box.daemon, 17 << 20).startswith(b"HTTP/1.1 413")


def announce(daemon, size):
    """What is answered to the head of a request alone."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=120) as connection:
        connection.sendall(b"POST /llm/openai/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
        return connection.recv(100)


def test_large_requests_only_from_those_who_may(house):
    assert announce(house.start(command="serve"), 2 << 20).startswith(b"HTTP/1.1 413")


def test_an_answer_that_is_larger_than_allowed_is_lost(opened, server):
    place = server(lambda head, body: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000)
    box = opened(openai=sink(place, "openai", response_max="1KiB"))
    asked = [box.client.request("POST", "/llm/openai/v1/chat/completions", CHAT, {"Semel-Run": "r1"}) for _ in range(2)]
    assert [(one.status, one.code) for one in asked] == [(502, "model_call_lost")] * 2 and len(place.requests) == 2


# Failures


@pytest.mark.parametrize("step, status, effects", [
    ("429", 429, 1), ("500_before", 500, 1), ("act_then_500", 500, 2), ("503_retry_after", 503, 1), ("bad_request", 400, 1), ("act_then_drop", 502, 2),
    ("drop_before", 502, 1), ("truncate", 502, 2), ("truncate_head", 502, 2),
])
@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_failures_are_not_remembered(asking, kind, step, status, effects):
    box = asking(kind)
    box.model.script([step])
    failed = box.ask(Semel_Run="r1")
    assert failed.status == status and not is_replay(failed)
    assert status != 502 or (failed.code, failed.headers["x-should-retry"]) == ("model_call_lost", "true")
    whole = box.ask(Semel_Run="r1")
    assert whole.status == 200 and not is_replay(whole) and is_replay(box.ask(Semel_Run="r1"))
    assert len(box.model.effects()) == effects and Outbox(box.client).cards() == []


def test_a_failing_provider_does_not_make_others_wait(asking):
    box = asking()
    box.model.script(["500_before"] * 20)
    assert {box.ask(Semel_Run="r1").status for _ in range(20)} == {500}
    assert b'semel_destination_breaker_open{destination="openai"} 0' in box.client.get("/metrics").raw
    assert box.ask(Semel_Run="r1").status == 200


def test_what_waits_behind_a_failure_makes_the_call_itself(asking):
    box = asking()
    box.model.script(["act_then_late:release", "ok"])
    threads, answers = at_once(3, lambda: box.ask(Semel_Run="r1"))
    box.model.wait("held", 1)
    until(lambda: box.client.get("/readyz").json["intents_waiting"] == 2, "2 who wait")
    box.model.cut()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200, 200, 502] and len(box.model.effects()) == 2


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_killed_in_mid_stream_the_next_one_calls_again(house, storage):
    with providers.spawn("openai") as model:
        daemon = house.start(storage, policy=policy({"openai": sink(model, "openai", timeout="60s")}))
        box = Outbox(house.client(daemon))
        box.daemon, box.path, box.body = daemon, "/llm/openai/v1/chat/completions", CALLS["chat-stream"][2]
        model.script(["slow_stream:release"])
        with open_stream(box, Semel_Run="r1") as connection:
            read_until(connection, b"data: ")
            daemon.kill()
        daemon.start()
        model.script(["ok"])
        client = house.client(daemon)
        answer = client.request("POST", box.path, box.body, {"Semel-Run": "r1"})
        assert answer.status == 200 and answer.raw.endswith(b"data: [DONE]\n\n") and not is_replay(answer)
        again = client.request("POST", box.path, box.body, {"Semel-Run": "r1"})
        assert is_replay(again) and again.raw == answer.raw and len(model.effects()) == 2
        assert client.get("/v1/exceptions").json["data"] == []


def test_remembered_answers_survive_a_kill(asking):
    box = asking("chat-stream", odd=True)
    first = pieces_of(box, Semel_Run="r1")[1]
    box.daemon.kill()
    box.daemon.start()
    assert pieces_of(box, Semel_Run="r1")[1] == first and len(box.model.effects()) == 1


# Other calls


def test_what_is_no_model_call(asking, fakes):
    box = asking()
    for _ in range(2):
        answer = box.client.request("GET", "/llm/openai/v1/models")
        assert answer.status == 200 and not is_replay(answer)
    assert len(box.model.requests()) == 2, "what reads passes as it is"
    refused = box.ask(path="/llm/openai/v1/files")
    assert (refused.status, refused.code) == (400, "key_required"), "what else changes something goes by the rules of /to"
    assert box.ask(path="/llm/openai/v1/files", Idempotency_Key="k").status == 404 and len(box.model.requests()) == 3
    assert figures(box, "passed") == 4 and figures(box, "miss") == 0


def test_providers_without_a_policy(house):
    client = house.client(house.start())
    for provider in ("openai", "anthropic", "gemini"):
        answer = client.request("POST", f"/llm/{provider}/v1/files", b"{}", {"Idempotency-Key": "k"})
        assert (answer.status, answer.code) == (404, "not_found") and "make it a destination" in answer.json["detail"]
    for path in ("/llm/openai-compatible/v1/chat/completions", "/llm/stripe/v1/charges", "/llm/nobody/x", "/llm/openai"):
        assert client.request("POST", path, b"{}").status == 404


def test_a_server_that_speaks_as_openai_does(opened, fakes):
    model = fakes("openai")
    box = opened(local={**sink(model, "openai-compatible"), "url": model.url + "/v1"})
    asked = [box.client.request("POST", "/llm/local/chat/completions", CHAT, {"Semel-Run": "r1"}) for _ in range(2)]
    assert [one.status for one in asked] == [200, 200] and is_replay(asked[1]) and model.requests()[0].path == "/v1/chat/completions"


def test_bad_headers_are_refused(asking):
    box = asking()
    for name, value in (("Semel_Occurrence", "0"), ("Semel_Occurrence", "x"), ("Semel_Run", ""), ("Semel_Run", "r" * 257)):
        answer = box.ask(**{name: value})
        assert (answer.status, answer.code, answer.json["field"]) == (400, "invalid", name.replace("_", "-"))
    assert box.model.requests() == []


def test_answers_are_not_compressed_and_the_rest_is_passed_on(asking):
    box = asking()
    assert box.ask(Semel_Run="r1", Accept_Encoding="gzip", User_Agent="me/1", x_stainless_lang="js").status == 200
    sent = box.model.requests()[0]
    assert sent.header("Accept-Encoding") is None and (sent.header("User-Agent"), sent.header("x-stainless-lang")) == ("me/1", "js")
    assert not [name for name, _ in sent.headers if name.lower().startswith("semel")]


def test_shadow_mode_lets_every_call_through(asking):
    box = asking(more={"workflows": {"llm": {"mode": "shadow"}}})
    assert [is_replay(box.ask(Semel_Run="r1")) for _ in range(2)] == [False, False] and len(box.model.effects()) == 2


# Runs


def test_runs_are_counted(asking, storage):
    box = asking(storage=storage, prices={"gpt-test": {"input": 2.5, "output": 10}})
    for _ in range(3):
        box.ask(Semel_Run="r/1 ü".encode().decode("latin-1"))
    box.ask({**CHAT, "model": "other"}, Semel_Run="r/1 ü".encode().decode("latin-1"))
    box.ask(Semel_Run="r2")
    box.model.script(["429"])
    box.ask({**CHAT, "n": 2}, Semel_Run="r2")
    usage = box.ask(Semel_Run="r2").json["usage"]
    went_in, came_out = usage["prompt_tokens"], usage["completion_tokens"]
    listed = box.client.get("/v1/runs").json["data"]
    assert [(run["run"], run["executed"], run["replayed"], run["failed"]) for run in listed] == [("r2", 1, 1, 1), ("r/1 ü", 2, 2, 0)]
    run = box.client.get("/v1/runs/r%2F1%20%C3%BC").json
    assert (run["executed"], run["replayed"], run["failed"]) == (2, 2, 0)
    assert run["saved"] == {"input_tokens": 2 * went_in, "output_tokens": 2 * came_out, "money": pytest.approx(2 * (went_in * 2.5 + came_out * 10) / 1e6)}
    by_model = {part["model"]: part for part in run["models"]}
    assert by_model["other"]["spent"]["money"] is None and by_model["other"]["executed"] == 1
    assert by_model["gpt-test"]["spent"]["money"] == pytest.approx((went_in * 2.5 + came_out * 10) / 1e6)
    assert by_model["gpt-test"]["provider"] == "openai" and run["first_at"] <= run["last_at"]
    saved = [row for row in box.client.get("/metrics").raw.decode().splitlines() if row.startswith('semel_llm_saved_tokens_total{provider="openai"}')]
    assert int(saved[0].split()[-1]) == 3 * (went_in + came_out)
    assert box.client.get("/v1/runs/nobody").status == 404


def test_runs_are_listed_page_by_page(asking):
    box = asking()
    for number in range(5):
        box.ask(Semel_Run=f"r{number}")
    seen, after = [], ""
    while True:
        page = box.client.get(f"/v1/runs?limit=2&after={after}").json
        seen += [run["run"] for run in page["data"]]
        after = page["page"]["next"]
        if after is None:
            break
    assert seen == ["r4", "r3", "r2", "r1", "r0"]


def test_counts_survive_a_stop(asking, house):
    box = asking()
    for _ in range(2):
        box.ask(Semel_Run="r1")
    box.daemon.stop()
    box.daemon.start()
    assert house.client(box.daemon).get("/v1/runs/r1").json["replayed"] == 1


# Time


def test_a_call_is_an_intent_of_its_run(asking):
    box = asking()
    box.ask(Semel_Run="r1")
    [intent] = box.client.get("/v1/intents?workflow=llm").json["data"]
    assert (intent["run"], intent["action"], intent["state"], intent["capability"]) == ("r1", "gpt-test", "confirmed", "idempotent")
    assert "Say something" not in json.dumps(intent), "the prompt is not kept"


def test_after_its_time_it_is_new_and_nothing_is_left_of_it(asking):
    """Neither of what was answered, nor of what failed and was not asked for again."""
    box = asking(memo="5s")
    assert not is_replay(box.ask()) and is_replay(box.ask())
    box.model.script(["429"])
    assert box.ask({**CHAT, "n": 2}).status == 429
    intents = lambda: box.client.get("/v1/intents?workflow=llm").json["data"]
    assert sorted(intent["state"] for intent in intents()) == ["confirmed", "pending"]
    until(lambda: intents() == [], "an empty ledger")
    assert not is_replay(box.ask()) and len(box.model.effects()) == 2


@pytest.mark.skipif(SECONDS < 30, reason="it takes longer than a lease: SEMEL_E2E_SECONDS=30")
def test_a_call_that_takes_longer_than_its_lease_is_still_one(asking):
    box = asking()
    box.model.script(["act_then_late:40"])
    threads, answers = at_once(3, lambda: box.ask(Semel_Run="r1"))
    for thread in threads:
        thread.join()
    assert len({answer.raw for answer in answers}) == 1 and [answer.status for answer in answers] == [200] * 3 and len(box.model.effects()) == 1
