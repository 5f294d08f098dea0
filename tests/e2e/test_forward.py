"""/to/{destination}/…: the caller speaks to semel as it would speak to the provider. The call is made once, and whoever asks again gets the same answer, byte
for byte; what nobody can tell is said so, and not sent again."""

import gzip
import json
import selectors
import socket
import threading

import pytest

from http_client import raw, split_answers
from outbox import HASTY, Outbox, keyed, policy, provider_calls, sink
from plain_server import reply
from semel_process import until

OWN = {"Date", "X-Request-Id", "Idempotent-Replayed", "Idempotency-Expires"}


def call(box, path, body=b'{"ref":"r"}', method="POST", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return box.client.request(method, f"/to/{path}", body, {"Content-Type": "application/json", **named})


def is_replay(answer):
    return answer.headers.get("Idempotent-Replayed") == "true"


def same(first, again):
    """The same answer, but for what semel says about it."""
    kept = lambda answer: [(name, value) for name, value in answer.headers.items() if name not in OWN]
    return (first.status, kept(first), first.raw) == (again.status, kept(again), again.raw)


# Once


def test_twice_is_once_with_the_same_answer(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    first, again = [call(box, "sink/v1/things?x=1%20", Idempotency_Key="k") for _ in range(2)]
    assert (first.status, is_replay(first), is_replay(again)) == (200, False, True) and same(first, again)
    assert first.headers["Semel-Intent"].startswith("int_") and again.headers["Idempotency-Expires"]
    assert len(fake.requests()) == 1 and fake.requests()[0].target == "/v1/things?x=1%20"
    assert fake.effects_by_ref() == {"r": 1}


def test_other_contents_under_the_same_key_are_refused(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    assert call(box, "sink/a", b'{"ref":"r","n":1}', Idempotency_Key="k").status == 200
    for path, body, differs in (("sink/a", b'{"ref":"r","n":2}', ["body.n"]), ("sink/b", b'{"ref":"r","n":1}', ["path"]), ("sink/a", b"text", None)):
        answer = call(box, path, body, Idempotency_Key="k")
        assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (422, "key_reused", "false")
        assert differs is None or answer.json["differs"] == differs
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("body, kind, encoding", [
    (bytes(range(256)) * 100, "application/octet-stream", None), (gzip.compress(b"hello " * 100, mtime=0), "text/plain", "gzip"),
    (b"", "text/plain", None), (b"\x00\x01", "text/plain", None), ("é".encode("latin-1"), "text/plain; charset=latin-1", None),
], ids=["every-byte", "gzip", "empty", "control", "latin-1"])  # all processes of a run have to call a test by the same name, also a second later
def test_any_bytes_are_replayed(opened, server, storage, body, kind, encoding):
    more = [f"Content-Type: {kind}".encode(), b"X-Twice: 1", b"X-Twice: 2"] + ([f"Content-Encoding: {encoding}".encode()] if encoding else [])
    place = server(lambda head, sent: reply(201, body, *more))
    box = opened(storage, sink=sink(place))
    first, again = [call(box, "sink/x", bytes(range(255)), Idempotency_Key="k") for _ in range(2)]
    assert (first.status, first.raw, first.headers["Content-Type"]) == (201, body, kind) and same(first, again) and is_replay(again)
    assert first.headers.get_all("X-Twice") == ["1", "2"] and first.headers.get("Content-Encoding") == encoding
    assert len(place.requests) == 1 and place.requests[0][2] == bytes(range(255))


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_kind_of_success_is_kept(opened, server, status):
    place = server(lambda head, body: reply(status, b"" if status == 204 else b"x"))
    box = opened(sink=sink(place))
    first, again = [call(box, "sink/x", Idempotency_Key="k") for _ in range(2)]
    assert first.status == status and same(first, again) and is_replay(again) and len(place.requests) == 1


def test_fifty_at_once_are_one_call_and_get_the_same_bytes(opened, fake, house, storage):
    box = opened(storage, sink=sink(fake, timeout="5m"))
    fake.script(["act_then_late:release"])
    answers = []

    def one():
        answers.append(house.client(box.daemon).request("POST", "/to/sink/x", b'{"ref":"r"}', {"Idempotency-Key": "k", "Prefer": "wait=300"}))

    threads = [threading.Thread(target=one) for _ in range(50)]
    for thread in threads:
        thread.start()
    fake.wait("held", 1)
    until(lambda: box.client.get("/readyz").json["intents_waiting"] == 49, "49 who wait")
    fake.release()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200} and len({answer.raw for answer in answers}) == 1
    assert sum(is_replay(answer) for answer in answers) == 49 and fake.effects_by_ref() == {"r": 1}


def test_who_does_not_want_to_wait_is_told_to_come_again(opened, fake, house):
    box = opened(sink=sink(fake, timeout="5m"))
    fake.script(["act_then_late:release"])
    first = []
    thread = threading.Thread(target=lambda: first.append(call(box, "sink/x", Idempotency_Key="k")))
    thread.start()
    fake.wait("held", 1)
    other = Outbox(house.client(box.daemon))
    answer = call(other, "sink/x", Idempotency_Key="k", Prefer="wait=1")
    assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (409, "in_progress", "true") and answer.headers["Retry-After"]
    fake.release()
    thread.join()
    assert same(first[0], call(other, "sink/x", Idempotency_Key="k")) and len(fake.requests()) == 1


# Refusals


def test_a_refusal_of_money_is_kept(opened, fakes, storage):
    stripe = fakes("stripe")
    box = opened(storage, stripe=sink(stripe, "stripe"))
    form = b"amount=500&currency=eur&source=tok_chargeDeclined&metadata%5Bref%5D=r"
    first, again = [call(box, "stripe/v1/charges", form, Content_Type="application/x-www-form-urlencoded", Idempotency_Key="k") for _ in range(2)]
    assert first.status == 402 and first.json["error"]["code"] == "card_declined" and same(first, again) and is_replay(again)
    assert len(stripe.requests()) == 1 and box.cards() == []


def test_another_refusal_frees_the_key(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["bad_request", "429:0", "503_retry_after:0"])
    assert [call(box, "sink/x", Idempotency_Key="k").status for _ in range(2)] == [400, 429]
    unknown = call(box, "sink/x", Idempotency_Key="k")  # a 503 may come from a half-done call
    assert (unknown.status, unknown.code) == (409, "outcome_unknown")
    assert fake.effects_by_ref() == {} and box.cards()[0]["owner"] == "dana"


def test_retry_after_reaches_the_caller(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["429:7"])
    answer = call(box, "sink/x", Idempotency_Key="k")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7") and call(box, "sink/x", Idempotency_Key="k").status == 200


# Nobody can tell


@pytest.mark.parametrize("fault", ["act_then_drop", "act_then_500", "truncate_head", "act_then_hang", "drop_before"])
def test_an_unknown_outcome_is_said_and_nothing_is_sent_again(opened, fake, fault):
    box = opened(sink=sink(fake, timeout=HASTY))
    fake.script([fault])
    for _ in range(3):
        answer = call(box, "sink/x", Idempotency_Key="k")
        assert (answer.status, answer.code) == (409, "outcome_unknown")
        assert (answer.headers["x-should-retry"], answer.headers["stripe-should-retry"]) == ("false", "false")
    assert len(fake.requests()) == 1
    card = box.card(answer.json["intent"])
    assert (card["kind"], card["owner"]) == ("unknown_outcome", "dana") and card["due_at"]
    assert box.resolve(card, "did_not").status == 200
    assert (call(box, "sink/x", Idempotency_Key="k").code, len(fake.requests())) == ("refused", 1)


def test_a_person_says_what_came_of_it_and_that_is_replayed(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["act_then_drop", "act_then_drop"])
    intents = [call(box, "sink/x", Idempotency_Key=key).json["intent"] for key in ("whole", "bare")]
    whole, bare = [box.card(intent) for intent in intents]
    assert box.resolve(whole, "happened", result={"status": 201, "headers": [["X-A", "b"]], "body": "it did"}).status == 200
    answer = call(box, "sink/x", Idempotency_Key="whole")
    assert (answer.status, answer.headers["X-A"], answer.raw, is_replay(answer)) == (201, "b", b"it did", True)
    assert box.resolve(bare, "happened", note="seen in their dashboard").status == 200
    answer = call(box, "sink/x", Idempotency_Key="bare")  # there is no answer to give: a made-up one would be taken for the provider's
    assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (502, "cut_off", "false")
    assert len(fake.requests()) == 2


def test_a_person_says_again_and_the_caller_may(opened, fake):
    box = opened(sink=sink(fake, timeout=HASTY))
    fake.script(["drop_before"])
    intent = call(box, "sink/x", Idempotency_Key="k").json["intent"]
    until(lambda: box.resolve(box.card(intent), "retry").status == 200, "the end of the time in which the first could arrive")
    effect = intent.replace("int_", "eff_")
    assert box.over(effect)["state"] == "confirmed"  # a person has asked for it, so semel does it itself
    answer = call(box, "sink/x", Idempotency_Key="k")
    assert (answer.status, is_replay(answer)) == (200, True) and fake.effects_by_ref() == {"r": 1}


def test_where_the_provider_recognises_it_the_caller_may_try_again(opened, fakes, storage):
    fake = fakes("generic-keys")
    box = opened(storage, keyed=keyed(fake))
    fake.script(["act_then_drop"])
    lost = call(box, "keyed/x", Idempotency_Key="k")
    assert (lost.status, lost.code, lost.headers["x-should-retry"]) == (502, "no_answer", "true")
    found = call(box, "keyed/x", Idempotency_Key="k")
    assert found.status == 200 and fake.effects_by_ref() == {"r": 1}
    keys = {request.header("Idempotency-Key") for request in fake.requests()}
    assert len(keys) == 1 and keys.pop().startswith("sml-")
    assert is_replay(call(box, "keyed/x", Idempotency_Key="k")) and len(fake.requests()) == 2


def test_an_unreachable_destination_is_no_doubt(opened, fake):
    box = opened(sink=sink(fake))
    fake.down()
    answer = call(box, "sink/x", Idempotency_Key="k")
    assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (502, "unreachable", "true")
    fake.up()
    assert call(box, "sink/x", Idempotency_Key="k").status == 200 and fake.effects_by_ref() == {"r": 1} and box.cards() == []


def test_semel_is_killed_in_the_middle(opened, fake, fakes, house):
    other = fakes("generic-keys")
    box = opened(sink=sink(fake, timeout=HASTY), keyed=keyed(other, timeout=HASTY))
    fake.script(["act_then_hang"])
    other.script(["act_then_hang"])

    def lost(path):
        with pytest.raises(Exception):
            Outbox(house.client(box.daemon)).client.request("POST", f"/to/{path}", b'{"ref":"r"}', {"Idempotency-Key": "k"})

    threads = [threading.Thread(target=lost, args=(path,)) for path in ("sink/x", "keyed/x")]
    for thread in threads:
        thread.start()
    fake.wait("effects", 1)
    other.wait("effects", 1)
    box.daemon.kill()
    for thread in threads:
        thread.join()
    box.daemon.start()
    until(lambda: call(box, "sink/x", Idempotency_Key="k", Prefer="wait=1").code == "outcome_unknown", "the end of the lease")
    answer = until(lambda: (found := call(box, "keyed/x", Idempotency_Key="k")).status == 200 and found, "the end of the lease")
    assert json.loads(answer.raw)["ok"] and fake.effects_by_ref() == {"r": 1} and other.effects_by_ref() == {"r": 1}
    assert box.cards()[0]["owner"] == "dana"


def test_a_caller_who_goes_away_changes_nothing(opened, fake):
    box = opened(sink=sink(fake, timeout="5m"))
    fake.script(["act_then_late:release"])
    with socket.create_connection(("127.0.0.1", box.daemon.port)) as connection:
        connection.sendall(b'POST /to/sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 11\r\n\r\n{"ref":"r"}')
        fake.wait("held", 1)
    fake.release()
    answer = call(box, "sink/x", Idempotency_Key="k")
    assert (answer.status, is_replay(answer)) == (200, True) and fake.effects_by_ref() == {"r": 1}


def test_a_call_that_cannot_even_begin_is_no_doubt(opened, fake):
    """More calls at once than semel takes: those that were turned away were not sent, and are nobody's to find out about."""
    box = opened(sink=sink(fake, concurrency=1, timeout="5m"))
    fake.script(["hang"])
    sockets, waiting = [], selectors.DefaultSelector()
    try:
        for n in range(1060):
            sockets.append(socket.create_connection(("127.0.0.1", box.daemon.port), timeout=120))
            sockets[-1].sendall(b"POST /to/sink/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %d\r\nContent-Length: 0\r\n\r\n" % n)
            waiting.register(sockets[-1], selectors.EVENT_READ)
        (first, _), *_ = waiting.select(120)
        data = b""
        while not (turned := split_answers(data)[0]):
            data += first.fileobj.recv(65536)
        assert (turned[0].status, turned[0].code) == (502, "unreachable"), turned
        assert box.client.intent(turned[0].json["intent"]).json["state"] == "pending" and len(fake.requests()) <= 1
    finally:
        waiting.close()
        for connection in sockets:
            connection.close()


# An answer that is not whole


def test_an_answer_that_was_cut_is_not_given_as_whole(opened, server):
    body = b"x" * 1000
    place = server(lambda head, sent: reply(200, body)[:-500])
    box = opened(sink=sink(place))
    for _ in range(2):
        answer = call(box, "sink/x", Idempotency_Key="k")
        assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (502, "cut_off", "false")
    assert len(place.requests) == 1


def test_an_answer_that_is_too_large_is_not_given_as_whole(opened, server):
    place = server(lambda head, sent: reply(200, b"x" * 5000))
    box = opened(sink=sink(place, response_max="1KiB"))
    for _ in range(2):
        assert call(box, "sink/x", Idempotency_Key="k").code == "cut_off"
    assert len(place.requests) == 1


# Streams

ASKED = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}], "metadata": {"ref": "r"}}


def stream_of(port, body, **headers):
    """The connection, after the head of the answer has come."""
    text = json.dumps(body).encode()
    lines = [b"POST /to/openai/v1/chat/completions HTTP/1.1", b"Host: localhost", b"Content-Type: application/json", b"Content-Length: %d" % len(text)]
    lines += [f"{name.replace('_', '-')}: {value}".encode() for name, value in headers.items()]
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + text)
    return connection


def test_a_stream_passes_as_it_comes_and_is_replayed_whole(opened, fakes, storage):
    model = fakes("openai")
    box = opened(storage, openai=sink(model, "openai", timeout="60s"))
    model.script(["slow_stream:release"])
    with stream_of(box.daemon.port, ASKED, Idempotency_Key="k") as connection:
        data = b""
        while b"data: " not in data:
            data += connection.recv(65536)
        assert model.counts()["answered"] == 0, "the first event has come before the provider was done"
        model.release()
        while not data.endswith(b"\r\n0\r\n\r\n"):
            data += connection.recv(65536)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head
    whole, chunks = b"", rest
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        whole, chunks = whole + chunks[: int(size, 16)], chunks[int(size, 16) + 2 :]
    assert whole.endswith(b"data: [DONE]\n\n")
    again = call(box, "openai/v1/chat/completions", json.dumps(ASKED).encode(), Idempotency_Key="k")
    assert (again.raw, is_replay(again), again.headers["Content-Type"]) == (whole, True, "text/event-stream") and len(model.effects()) == 1


def test_those_who_ask_while_it_streams_get_all_of_it(opened, fakes, house):
    model = fakes("openai")
    box = opened(openai=sink(model, "openai", timeout="60s"))
    model.script(["slow_stream:2"])
    answers = []

    def one():
        answers.append(call(Outbox(house.client(box.daemon)), "openai/v1/chat/completions", json.dumps(ASKED).encode(), Idempotency_Key="k"))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.raw for answer in answers}) == 1 and {answer.status for answer in answers} == {200} and len(model.effects()) == 1


def test_a_stream_that_is_cut_is_not_kept_as_whole(opened, fakes):
    model = fakes("openai")
    box = opened(openai=sink(model, "openai", timeout="60s"))
    model.script(["truncate"])
    with stream_of(box.daemon.port, ASKED, Idempotency_Key="k") as connection:
        data = b""
        while block := connection.recv(65536):
            data += block
    assert b"data: " in data and not data.endswith(b"\r\n0\r\n\r\n"), "the end is missing, so that the client notices"
    again = call(box, "openai/v1/chat/completions", json.dumps(ASKED).encode(), Idempotency_Key="k")
    assert (again.status, again.code) == (502, "cut_off") and len(model.effects()) == 1


def test_a_reader_who_leaves_a_stream_does_not_end_it(opened, fakes):
    model = fakes("openai")
    box = opened(openai=sink(model, "openai", timeout="60s"))
    model.script(["slow_stream:2"])
    with stream_of(box.daemon.port, ASKED, Idempotency_Key="k") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    again = call(box, "openai/v1/chat/completions", json.dumps(ASKED).encode(), Idempotency_Key="k")
    assert again.raw.endswith(b"data: [DONE]\n\n") and is_replay(again) and len(model.effects()) == 1


# The key


def test_what_the_key_is(opened, fake):
    """Semel-Key before the template before Idempotency-Key before the run before the window."""
    box = opened(sink=sink(fake, key="{order.id}", repeat_window="60s"))
    body = b'{"ref":"r","order":{"id":"o-1"}}'
    key_of = lambda answer: box.client.intent(answer.headers["Semel-Intent"]).json["key"]
    assert key_of(call(box, "sink/x", body, Semel_Key='"own"', Idempotency_Key="header", Semel_Run="run")) == "own"
    assert key_of(call(box, "sink/x", body, Idempotency_Key="header", Semel_Run="run")) == "o-1"
    assert key_of(call(box, "sink/x", b'{"ref":"r"}', Idempotency_Key='"header"', Semel_Run="run")) == "header"
    assert key_of(call(box, "sink/x", b'{"ref":"r"}', Semel_Run="run")).startswith("run:")
    assert key_of(call(box, "sink/x", b'{"ref":"r"}')).startswith("same:")
    assert len(fake.requests()) == 5 and not any(request.header("Semel-Run") or request.header("Semel-Key") for request in fake.requests())
    bad = call(box, "sink/x", b'{"ref":"r"}', Semel_Key="é")
    assert (bad.status, bad.json["field"]) == (400, "Semel-Key")


def test_without_any_key_it_is_refused(opened, fake):
    box = opened(sink=sink(fake))
    answer = call(box, "sink/x")
    assert (answer.status, answer.code) == (400, "key_required") and fake.requests() == []


@pytest.mark.parametrize("form, key", [
    (b"amount=500&metadata%5Border%5D=o-1", "charge:o-1"), (b"amount=500&metadata[order]=o+1%2F2", "charge:o 1/2"), (b"metadata[order]=a&metadata[order]=b", "charge:a")])
def test_a_key_is_made_from_a_form(opened, fakes, form, key):
    stripe = fakes("generic-keys")
    box = opened(sink=keyed(stripe, key="charge:{metadata.order}"))
    answers = [call(box, "sink/v1/charges", form, Content_Type="application/x-www-form-urlencoded", Idempotency_Key=f"random-{n}") for n in range(2)]
    assert [answer.status for answer in answers] == [200, 200] and is_replay(answers[1]) and len(stripe.requests()) == 1
    assert box.client.intent(answers[0].headers["Semel-Intent"]).json["key"] == key and stripe.requests()[0].body == form


def test_equal_calls_of_one_run_are_one(opened, fake):
    box = opened(sink=sink(fake))
    for run, body in (("a", b'{"ref":"1"}'), ("a", b'{"ref":"1"}'), ("b", b'{"ref":"1"}'), ("a", b'{"ref":"2"}')):
        assert call(box, "sink/x", body, Semel_Run=run).status == 200
    assert fake.effects_by_ref() == {"1": 2, "2": 1}


def test_equal_calls_within_the_window_are_one_and_later_they_are_new(opened, fake):
    box = opened(long=sink(fake, repeat_window="60s"), short=sink(fake, repeat_window="1s"))
    assert [is_replay(call(box, "long/x")) for _ in range(3)] == [False, True, True]
    assert not is_replay(call(box, "long/x", b'{"ref":"other"}')) and not is_replay(call(box, "long/y"))
    assert not is_replay(call(box, "short/z"))
    until(lambda: not is_replay(call(box, "short/z")), "the end of the window")


# Later


def test_respond_async_accepts_and_does_it_later(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    fake.script(["429:0"])
    answers = [call(box, "sink/x", Idempotency_Key="k", Prefer="respond-async") for _ in range(2)]
    assert [answer.status for answer in answers] in ([202, 202], [202, 200]) and answers[0].headers["Preference-Applied"] == "respond-async"
    found = box.over(answers[0].json["effect"])
    assert (found["state"], found["tries"]) == ("confirmed", 2)
    again = call(box, "sink/x", Idempotency_Key="k", Prefer="respond-async")
    assert (again.status, is_replay(again), again.json["ref"]) == (200, True, "r") and fake.effects_by_ref() == {"r": 1}


def test_what_is_sent_later_cannot_use_the_callers_authorization(opened, fake):
    box = opened(sink=sink(fake))
    answer = call(box, "sink/x", Idempotency_Key="k", Prefer="respond-async", Authorization="Bearer theirs")
    assert (answer.status, answer.json["field"]) == (400, "Authorization") and box.list() == []


# Reading


def test_reading_passes_through(opened, fake, server):
    place = server(lambda head, body: reply(200, b"" if head.startswith(b"HEAD") else b"x" * 10, b"X-A: b"))
    box = opened(sink=sink(fake), plain=sink(place))
    for _ in range(2):
        answer = call(box, "sink/seen?ref=r", None, "GET")
        assert (answer.status, answer.json["total"], is_replay(answer)) == (200, 0, False)
    head = call(box, "plain/x", None, "HEAD")
    assert (head.status, head.headers["X-A"], head.raw) == (200, "b", b"")
    assert call(box, "sink/missing", None, "GET").json == {"ok": True}
    assert len(fake.requests()) == 3 and box.client.get("/v1/intents").json["data"] == [] and place.requests[0][1].startswith(b"HEAD /x HTTP/1.1")


def test_the_errors_of_reading_are_the_destinations(opened, server, fake):
    place = server(lambda head, body: reply(404, b"nothing"))
    box = opened(plain=sink(place), sink=sink(fake))
    answer = call(box, "plain/x", None, "GET")
    assert (answer.status, answer.raw) == (404, b"nothing")
    fake.down()
    assert (call(box, "sink/x", None, "GET").status, call(box, "sink/x", None, "GET").code) == (502, "unreachable")


def test_only_destinations_of_the_policy_are_called(opened, fake):
    box = opened(sink=sink(fake), mail={"provider": "smtp", "host": "127.0.0.1", "from": "a@x.io"})
    for path in ("nowhere/x", "mail/x", "sink"):
        assert call(box, path, Idempotency_Key="k").status == 404
    odd = call(box, "sink/../../x", Idempotency_Key="odd")
    assert odd.status >= 400 and fake.requests() == []
    for target in (b"/to/sink//x", b"/to/sink/"):
        assert raw(box.daemon.port, b"POST " + target + b" HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: " + target[-3:] + b"\r\nContent-Length: 0\r\n\r\n")[0].status == 200
    assert [request.target for request in fake.requests()] == ["//x", "/"]


def test_a_body_in_chunks_and_an_expectation(opened, fake):
    box = opened(sink=sink(fake))
    head = b"POST /to/sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"
    chunked = head + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"re\r\n7\r\nf":"r"}\r\n0\r\n\r\n'
    plain = head + b'Content-Length: 11\r\nExpect: 100-continue\r\n\r\n{"ref":"r"}'
    first, again = raw(box.daemon.port, chunked)[0], raw(box.daemon.port, plain)[-1]
    assert first.status == 200 and first.raw == again.raw and is_replay(again) and fake.requests()[0].body == b'{"ref":"r"}'


# Who may, and whose credentials


def test_with_tokens(house, fake, monkeypatch):
    monkeypatch.setenv("SINK_KEY", "sk-own-1")
    daemon = house.start(command="serve", policy=policy({"open": sink(fake), "own": sink(fake, secret="env:SINK_KEY")}))
    admin = (daemon.data / "admin.token").read_text().strip()
    box = Outbox(house.client(daemon))
    assert call(box, "open/x", Idempotency_Key="k").status == 401
    assert call(box, "open/x", Idempotency_Key="k", Authorization="Bearer sk_theirs_77").status == 401
    assert call(box, "open/x", Idempotency_Key="k", Semel_Token=admin, Authorization="Bearer sk_theirs_77").status == 200
    assert call(box, "own/x", Idempotency_Key="k", Authorization=f"Bearer {admin}").status == 200
    assert call(box, "open/y", Idempotency_Key="bare", Authorization=f"Bearer {admin}").status == 200
    seen = [(request.header("Authorization"), request.header("Semel-Token")) for request in fake.requests()]
    assert seen == [("Bearer sk_theirs_77", None), ("Bearer sk-own-1", None), (None, None)]
    reader = house.client(daemon, token=admin).post("/v1/tokens", {"name": "reader", "scopes": ["read"]}).json["token"]
    assert call(box, "open/z", Idempotency_Key="z", Semel_Token=reader).status == 403
    daemon.stop()
    for path in [*daemon.data.rglob("*"), daemon.log]:
        if path.is_file():
            for secret in (b"sk_theirs_77", b"sk-own-1"):
                assert secret not in path.read_bytes(), path


# Watching


def test_in_shadow_mode_nothing_is_held_back(opened, fake):
    box = opened(sink=sink(fake), more={"workflows": {"sink": {"mode": "shadow"}}})
    answers = [call(box, "sink/x", Idempotency_Key="k") for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3 and not any(map(is_replay, answers)) and fake.effects_by_ref() == {"r": 3}
    for n in range(2):
        answer = call(box, "sink/later", Idempotency_Key="later", Prefer="respond-async")
        assert answer.status == 202
    until(lambda: fake.effects_by_ref() == {"r": 5}, "both that were sent later")
    effects = [box.client.post("/v1/effects", {"destination": "sink", "key": "e", "payload": {"ref": "e"}}) for _ in range(2)]
    assert [answer.status for answer in effects] == [202, 202] and effects[1].json["shadow"]["would"]
    until(lambda: fake.effects_by_ref() == {"r": 5, "e": 2}, "both effects")


def test_a_destination_that_can_be_asked_is_asked(opened, fakes):
    """The caller is told that nobody knows; a moment later semel has found out."""
    slack = fakes("slack")
    box = opened(slack=sink(slack, "slack", timeout=HASTY, rate="1000/s", calls=provider_calls("slack", settle="0s")))
    slack.script(["act_then_drop", "drop_before"])
    body = lambda ref: json.dumps({"channel": "C1", "text": ref, "metadata": {"event_type": "x", "event_payload": {"ref": ref}}}).encode()
    for ref in ("posted", "lost"):
        assert call(box, "slack/api/chat.postMessage", body(ref), Idempotency_Key=ref).code == "outcome_unknown"
    answers = {}
    for ref, wanted in (("posted", 502), ("lost", 200)):
        answers[ref] = until(lambda: (found := call(box, "slack/api/chat.postMessage", body(ref), Idempotency_Key=ref)).status == wanted and found, ref)
    assert answers["posted"].code == "cut_off" and answers["lost"].json["ok"] and slack.effects_by_ref() == {"posted": 1, "lost": 1}
