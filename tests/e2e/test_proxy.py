"""Connections that break between client and semel: at every byte of a request, at every byte of an answer, and at random under load."""

import json
import random
import re
import socket

import pytest

import swarm
from conftest import STORAGES, STORAGES_IN_TIME
from fault_proxy import FOREVER, Fault, FaultProxy
from http_client import split_answers
from journal import Journal
from semel_process import until
from test_crash import after, check_audit, load

WAYS = ("close", "half", "reset")


class Line:
    """Sends whole requests through a proxy that breaks them."""

    def __init__(self, port):
        self.fault = Fault()
        self.proxy = FaultProxy(port, lambda: self.fault)

    def send(self, data, **fault):
        """The answers that arrived whole, and what was left of a broken one."""
        self.fault = Fault(**fault)
        received = b""
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=120) as connection:
            try:
                connection.sendall(data)
                while block := connection.recv(65536):
                    received += block
            except ConnectionError:
                pass
        return split_answers(received)


@pytest.fixture(params=STORAGES_IN_TIME)
def storage(request):
    return request.param


@pytest.fixture
def line(semel):
    made = Line(semel.port)
    yield made
    made.proxy.close()


def chunked(request):
    """The same request with its body in two chunks."""
    head, body = request.split(b"\r\n\r\n", 1)
    head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)
    half = len(body) // 2
    return head + b"\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:])) + b"0\r\n\r\n"


def closing(request):
    return request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def handled(client):
    """How many claims and words of holders the ledger has been asked about."""
    text = client.get("/metrics").raw.decode()
    return sum(int(number) for number in re.findall(r'^semel_claims_total\{outcome="[a-z_]+"\} (\d+)$', text, re.M))


def rows_of(client, intent):
    return [(row["kind"], row["fence"], row["state"]) for row in client.decisions(intent) if row["state"] is not None]


def way(number):
    return WAYS[number % len(WAYS)]


# ---- requests ----


@pytest.mark.parametrize("form", [lambda request: request, chunked], ids=["whole", "chunked"])
def test_claim_that_is_cut_at_any_byte_is_not_recorded(semel, client, line, form, evidence):
    before, length = handled(client), len(form(swarm.claim("w", "k000", input={"to": "müller@example.com"})))
    for at in range(length):
        answers, _ = line.send(form(swarm.claim("w", f"k{at:03}", input={"to": "müller@example.com"})), request=at, how=way(at))
        assert all(answer.status >= 400 for answer in answers), (at, answers)
    assert client.get("/v1/intents").json["data"] == [] and client.decisions() == []
    assert handled(client) == before, "the handler ran for an unfinished request"
    answers, _ = line.send(form(closing(swarm.claim("w", "k000", input={"to": "müller@example.com"}))))
    assert answers[0].status == 201 and answers[0].json["fence"] == 1
    assert handled(client) == before + 1
    evidence(requests_cut=length)


@pytest.mark.parametrize("what, fields", [
    ("sent", {}), ("confirm", {"result": {"id": "ü" * 5}}), ("fail", {"effect": "none", "error": "no"}), ("extend", {"lease_ms": 9000}), ("release", {})])
def test_word_of_a_holder_that_is_cut_at_any_byte_changes_nothing(semel, client, line, what, fields, evidence):
    held = client.claim("w", "k", two_phase=True, lease_ms=3_600_000)
    request = swarm.say(what, held.json["intent"], held.json["fence"], **fields)
    before, shown = handled(client), client.intent(held.json["intent"]).json
    for at in range(len(request)):
        answers, _ = line.send(request, request=at, how=way(at))
        assert all(answer.status >= 400 for answer in answers), (at, answers)
    assert rows_of(client, held.json["intent"]) == [("claim", 1, "claimed")]
    assert client.intent(held.json["intent"]).json == shown
    assert handled(client) == before, "the handler ran for an unfinished request"
    answers, _ = line.send(closing(request))
    assert answers[0].status == 200, answers
    assert [row[0] for row in rows_of(client, held.json["intent"])] == ["claim", what]
    evidence(requests_cut=len(request))


# ---- answers ----


def cut_answers(line, request_of, most=2000):
    """Sends request_of(at) with its answer cut at byte `at`, until an answer fits; where it was cut."""
    for at in range(most):
        answers, _ = line.send(closing(request_of(at)), response=at, how=("close", "reset")[at % 2])
        if answers:
            return range(at)
    raise AssertionError("no answer was ever whole")


def test_claim_whose_answer_is_lost_is_never_given_twice(semel, client, line, evidence):
    cut = cut_answers(line, lambda at: swarm.claim("w", f"k{at}", lease_ms=3_600_000))
    for at in cut:
        again = client.claim("w", f"k{at}")
        assert again.status == 409 and again.code == "in_progress", again
        assert rows_of(client, again.json["intent"]) == [("claim", 1, "sent")]
    evidence(answers_cut=len(cut))


@pytest.mark.parametrize("two_phase", [True, False])
def test_claim_whose_answer_is_lost_is_free_or_unknown_after_the_lease(semel, client, line, two_phase, evidence):
    cut = cut_answers(line, lambda at: swarm.claim("w", f"k{at}", lease_ms=10, two_phase=two_phase))
    for at in cut:
        again = until(lambda at=at: (lambda got: None if got.status == 409 and got.code == "in_progress" else got)(
            client.claim("w", f"k{at}", two_phase=two_phase, lease_ms=3_600_000)), "the end of a lease")
        if two_phase:
            assert again.status == 201 and again.json["fence"] == 2, again
        else:
            assert again.status == 409 and again.code == "outcome_unknown", again
    evidence(answers_cut=len(cut))


def claim_all(port, keys, sent):
    """Claims of these keys by many clients at once: key -> (intent, fence)."""
    held, left = {}, list(keys)

    def some():
        while left:
            key = left.pop()
            status, body = yield swarm.claim("w", key, two_phase=True, lease_ms=3_600_000)
            assert status == 201, body
            held[key] = (json.loads(body)["intent"], json.loads(body)["fence"])
            if sent:
                status, body = yield swarm.say("sent", *held[key])
                assert status == 200, body

    clients = swarm.Swarm()
    for _ in range(32):
        clients.add(some(), port)
    clients.run()
    return held


@pytest.mark.parametrize("what, fields, state", [
    ("sent", {}, "sent"), ("confirm", {"result": {"n": 1}}, "confirmed"), ("fail", {"effect": "none"}, "pending")], ids=["sent", "confirm", "fail"])
def test_holder_whose_answer_is_lost_repeats_and_is_told_the_same(semel, client, line, what, fields, state, evidence):
    """A word's answer is cut at each byte: it happened once, and the repetition says so."""
    held = claim_all(semel.port, [f"k{at}" for at in range(400)], sent=what == "confirm")
    cut = cut_answers(line, lambda at: swarm.say(what, *held[f"k{at}"], **fields))
    for at in cut:
        mine = held[f"k{at}"]
        again = client.say(what, mine, **fields)
        assert again.status == 200 and again.json["state"] == state, again
        assert [row[0] for row in rows_of(client, mine[0])].count(what) == 1
        if what == "confirm":
            assert client.say("confirm", mine, result={"n": 2}).code == "differs"
            assert client.claim("w", f"k{at}").json["result"] == {"n": 1}
    evidence(answers_cut=len(cut))


def test_replay_that_is_cut_is_replayed_again(semel, client, line, evidence):
    held = client.claim("w", "k")
    assert client.say("confirm", held, result={"text": "…" * 20}).status == 200
    cut = cut_answers(line, lambda at: swarm.claim("w", "k"))
    assert client.claim("w", "k").json["result"] == {"text": "…" * 20}
    assert [row[0] for row in rows_of(client, held.json["intent"])] == ["claim", "confirm"]
    until(lambda: sum(row.get("count") or 1 for row in client.decisions(held.json["intent"]) if row["kind"] == "replay") >= len(cut), "the count of replays")
    evidence(answers_cut=len(cut))


# ---- all of it at once ----


@pytest.mark.parametrize("storage", STORAGES)
def test_load_through_a_line_that_breaks(house, storage, seconds, evidence):
    daemon, journal, dice = house.start(storage), Journal(17), random.Random(19)

    def plan():
        """Each connection breaks after a few exchanges, somewhere."""
        limit, up = int(dice.expovariate(1 / 1500)), dice.random() < 0.5
        return Fault(limit if up else FOREVER, FOREVER if up else limit, dice.choice(WAYS), dice.choice([0, 0, 0.005, 0.02]))

    proxy, over = FaultProxy(daemon.port, plan), after(seconds / 5)
    load(journal, proxy.port, lambda: over() and proxy.faults > 10 * seconds and journal.lost > seconds and journal.acknowledged() > 10 * seconds)
    proxy.close()
    journal.verify(daemon.port)
    assert daemon.stop() == 0
    check_audit(daemon)
    evidence(broken_connections=proxy.faults, **journal.counts())
