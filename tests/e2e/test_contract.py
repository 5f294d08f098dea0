"""Each answer of the contract, on both storages."""

import datetime
import json
import re
import threading
import time

import pytest

from semel_process import until

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
PROBLEM_FIELDS = ["type", "title", "status", "detail", "code", "hint", "request_id"]
SHORT_MS = 40  # a lease that is meant to run out


def assert_problem(answer, status, code, retry=None):
    body = answer.json
    assert (answer.status, body["code"]) == (status, code), answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert list(body)[: len(PROBLEM_FIELDS)] == PROBLEM_FIELDS
    assert body["type"] == f"/problems/{code}" and body["status"] == status
    assert all(isinstance(body[name], str) and body[name] for name in PROBLEM_FIELDS if name != "status")
    assert body["request_id"] == answer.headers["X-Request-Id"]
    if retry is not None:
        assert answer.headers["x-should-retry"] == retry
    assert_compact(answer)
    return body


def assert_compact(answer):
    again = json.dumps(answer.json, separators=(",", ":"), ensure_ascii=False).encode()
    assert answer.raw == again


def assert_proceed(answer, fence=1):
    assert answer.status == 201, answer
    assert answer.json["answer"] == "proceed" and answer.json["fence"] == fence, answer
    return answer


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def after_lapse(client, *args, **fields):
    """Claims until the present holder's lease has run out; the first answer that is not in_progress."""

    def ask():
        answer = client.claim(*args, **fields)
        return None if answer.status == 409 and answer.code == "in_progress" else answer

    return until(ask, "the end of a short lease")


def lapsed(client, key, **fields):
    """A claim whose lease has run out, seen in the intent's state; nobody else asked."""
    held = assert_proceed(client.claim("w", key, lease_ms=SHORT_MS, **fields))
    until(lambda: client.intent(held.json["intent"]).json["state"] not in ("claimed", "sent"), "the sweep of a lapsed lease")
    return held


# ---- claim ----


def test_first_claim_proceeds(client):
    answer = assert_proceed(client.claim("w", "k"))
    assert list(answer.json) == ["answer", "intent", "fence", "lease_until", "lease_ms", "two_phase", "downstream_key"]
    assert re.fullmatch(r"int_[0-9a-z]{13}", answer.json["intent"])
    assert TIME.match(answer.json["lease_until"])
    assert re.fullmatch(r"sml-[0-9a-f]{32}", answer.json["downstream_key"])
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"]
    assert_compact(answer)


def test_key_is_unique_within_its_workflow_only(client):
    first, other = client.claim("w", "k"), client.claim("v", "k")
    assert_proceed(other)
    assert first.json["intent"] != other.json["intent"]
    assert first.json["downstream_key"] != other.json["downstream_key"]


def test_second_claim_is_told_to_wait(client):
    held = client.claim("w", "k")
    answer = client.claim("w", "k")
    body = assert_problem(answer, 409, "in_progress", retry="true")
    assert list(body)[7:] == ["intent", "retry_after_ms"]
    assert body["intent"] == held.json["intent"]
    assert int(answer.headers["Retry-After"]) >= 1
    assert int(answer.headers["retry-after-ms"]) == body["retry_after_ms"] > 0


VERBATIM = [
    b"null", b"true", b"0", b"-0", b"1.0", b"1.10", b"1e400", b"-0.0e-0", b"123456789012345678901234567890", b'""',
    b'"plain"', b'"\\u00e9\\ud83d\\ude00\\/"', '"é😀\u2028"'.encode(), b"[]", b"{}", b"[ 1 ,\t2 ]", b'{ "b" : 1,\r\n "a" : 2 }',
    b'{"":{"":[[[{}]]]}}', b'{"z":1,"a":{"y":[1.0,2.50,3e0]}}',
]


@pytest.mark.parametrize("result", VERBATIM, ids=[f"v{i}" for i in range(len(VERBATIM))])
def test_replay_is_byte_for_byte(verbatim_client, result):
    key = f"k{VERBATIM.index(result)}"
    held = assert_proceed(verbatim_client.claim("verbatim", key))
    confirmed = verbatim_client.confirm_raw(held, result)
    assert confirmed.status == 200, confirmed
    answer = verbatim_client.claim("verbatim", key)
    assert answer.status == 200
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert TIME.match(answer.headers["Idempotency-Expires"])
    pattern = b'\\{"answer":"replay","intent":"%s","result":%s,"confirmed_at":"[^"]*"\\}' % (
        held.json["intent"].encode(), re.escape(result))
    assert re.fullmatch(pattern, answer.raw, re.DOTALL), answer
    assert answer.raw == verbatim_client.claim("verbatim", key).raw
    assert b',"result":%s}' % result in verbatim_client.intent(held.json["intent"]).raw


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def verbatim_client(request, module_house):
    return module_house.client(module_house.start(request.param, name=f"verbatim_{request.param}"))


def test_other_input_under_the_same_key_names_the_fields(client):
    held = client.claim("w", "k", input={"to": "a", "amount": 1, "same": {"x": [1]}, "gone": 0})
    answer = client.claim("w", "k", input={"same": {"x": [1.0]}, "amount": 2, "to": "a", "new": 0})
    body = assert_problem(answer, 422, "key_reused", retry="false")
    assert list(body)[7:] == ["intent", "differs"]
    assert body["intent"] == held.json["intent"]
    assert sorted(body["differs"]) == ["amount", "gone", "new"]


def test_same_input_in_another_order_is_the_same(client):
    client.claim("w", "k", input={"a": 1, "b": [1, 2]})
    assert_problem(client.claim("w", "k", input={"b": [1, 2], "a": 1}), 409, "in_progress")


def test_claim_with_neither_key_nor_template(client):
    assert_problem(client.claim("w"), 400, "key_required")
    assert_problem(client.claim("w", input={"a": 1}), 400, "key_required")


# ---- confirm ----


def test_confirm_settles_and_is_idempotent(client):
    held = client.claim("w", "k")
    first = client.confirm_raw(held, b'{"id": 1}')
    assert first.status == 200
    assert list(first.json) == ["intent", "state", "fence", "lease_until", "lease_ms", "settled_at"]
    assert first.json["state"] == "confirmed" and first.json["lease_until"] is None and TIME.match(first.json["settled_at"])
    assert "Idempotent-Replayed" not in first.headers
    assert_compact(first)
    again = client.confirm_raw(held, b'{"id": 1}')
    assert again.status == 200 and again.raw == first.raw
    assert again.headers["Idempotent-Replayed"] == "true"


def test_confirm_with_another_result_changes_nothing(client):
    held = client.claim("w", "k")
    client.confirm_raw(held, b'{"id":1}')
    body = assert_problem(client.confirm_raw(held, b'{"id":2}'), 409, "differs", retry="false")
    assert list(body)[7:] == ["intent", "state", "fence"]
    assert client.claim("w", "k").json["result"] == {"id": 1}


def test_confirm_without_result_is_null(client):
    held = client.claim("w", "k")
    assert client.say("confirm", held).status == 200
    assert b'"result":null' in client.claim("w", "k").raw


def test_unknown_intent_is_not_found(client):
    for what in ("sent", "confirm", "fail", "extend", "release"):
        assert_problem(client.say(what, ("int_0000000000001", 1)), 404, "not_found")
    assert_problem(client.intent("int_0000000000001"), 404, "not_found")


# ---- leases and fences ----


def test_lapse_before_sent_is_taken_over(client):
    first = assert_proceed(client.claim("w", "k", lease_ms=SHORT_MS, two_phase=True))
    second = assert_proceed(after_lapse(client, "w", "k", two_phase=True), fence=2)
    assert second.json["intent"] == first.json["intent"]
    assert second.json["downstream_key"] == first.json["downstream_key"]
    for what in ("sent", "confirm", "fail", "extend", "release"):
        body = assert_problem(client.say(what, first), 409, "fenced", retry="false")
        assert list(body)[7:] == ["intent", "state", "fence"]
        assert body["fence"] == 2 and body["state"] == "claimed"
    assert client.say("confirm", second, result="second").status == 200
    assert client.claim("w", "k").json["result"] == "second"
    assert_problem(client.say("confirm", first, result="first"), 409, "fenced")


def test_late_confirm_before_anyone_else_is_taken(client):
    held = lapsed(client, "k", two_phase=True)
    assert client.intent(held.json["intent"]).json["state"] == "pending"
    assert client.say("confirm", held, result=1).status == 200
    assert client.claim("w", "k").json["result"] == 1


@pytest.mark.parametrize("two_phase", [True, False])
def test_holder_that_stops_after_sent_lets_nobody_proceed(client, two_phase):
    # The lease has to outlive the two calls, and is then shortened by an extend.
    held = assert_proceed(client.claim("w", "k", two_phase=two_phase))
    if two_phase:
        said = client.say("sent", held)
        assert said.status == 200 and said.json["state"] == "sent"
        assert client.say("sent", held).headers["Idempotent-Replayed"] == "true"
    assert client.say("extend", held, lease_ms=SHORT_MS).status == 200
    answer = after_lapse(client, "w", "k", two_phase=two_phase)
    body = assert_problem(answer, 409, "outcome_unknown", retry="false")
    assert list(body)[7:] == ["intent", "fence"]
    for _ in range(5):
        assert_problem(client.claim("w", "k", two_phase=two_phase), 409, "outcome_unknown")
    assert client.intent(held.json["intent"]).json["state"] == "unknown"
    assert client.say("confirm", (body["intent"], body["fence"]), result="late").status == 200
    assert client.claim("w", "k").json["result"] == "late"


def test_unknown_is_settled_by_fail_none(client):
    held = lapsed(client, "k")
    assert_problem(client.claim("w", "k"), 409, "outcome_unknown")
    assert client.say("fail", held, effect="none").json["state"] == "pending"
    assert_proceed(client.claim("w", "k"), fence=2)


def test_extend_keeps_the_lease(client):
    held = assert_proceed(client.claim("w", "k", lease_ms=6000))
    extended = client.say("extend", held, lease_ms=60000)
    assert extended.status == 200 and extended.json["lease_until"] > held.json["lease_until"]
    time.sleep(6.3)
    assert_problem(client.claim("w", "k"), 409, "in_progress")
    assert client.say("confirm", held).status == 200
    assert_problem(client.say("extend", held), 409, "fenced")


def test_release_gives_it_back(client):
    held = assert_proceed(client.claim("w", "k"))
    assert client.say("release", held).json["state"] == "pending"
    assert client.say("release", held).headers["Idempotent-Replayed"] == "true"
    assert_proceed(client.claim("w", "k"), fence=2)
    assert_problem(client.say("release", held), 409, "fenced")


def test_what_was_sent_cannot_be_released(client):
    held = client.claim("w", "k", two_phase=True)
    client.say("sent", held)
    body = assert_problem(client.say("release", held), 409, "already_sent", retry="false")
    assert list(body)[7:] == ["intent", "state", "fence"]


# ---- fail ----


def test_fail_none_lets_the_next_try(client):
    held = client.claim("w", "k")
    said = client.say("fail", held, effect="none", error="refused the card")
    assert said.status == 200 and said.json["state"] == "pending"
    assert client.intent(held.json["intent"]).json["error"] == "refused the card"
    assert client.say("fail", held, effect="none").headers["Idempotent-Replayed"] == "true"
    assert_proceed(client.claim("w", "k"), fence=2)


@pytest.mark.parametrize("fields", [{}, {"effect": "unknown"}])
def test_fail_unknown_is_the_default_and_holds(client, fields):
    held = client.claim("w", "k")
    assert client.say("fail", held, **fields).json["state"] == "unknown"
    assert_problem(client.claim("w", "k"), 409, "outcome_unknown")


def test_fail_final_refuses_for_good(client):
    held = client.claim("w", "k")
    assert client.say("fail", held, effect="none", final=True, error="no such person").json["state"] == "refused"
    body = assert_problem(client.claim("w", "k"), 409, "refused", retry="false")
    assert list(body)[7:] == ["intent", "error", "refused_at"]
    assert body["error"] == "no such person" and TIME.match(body["refused_at"])
    assert_problem(client.say("confirm", held, result=1), 409, "fenced")


# ---- waiting ----


class Waiting(threading.Thread):
    """A claim in a thread of its own, known to be waiting in the daemon when the constructor returns."""

    def __init__(self, house, daemon, *args, **fields):
        super().__init__(daemon=True)
        self.client, self.args, self.fields, self.answer = house.client(daemon), args, fields, None
        watcher = house.client(daemon)
        before = watcher.get("/readyz").json["intents_waiting"]
        self.start()
        until(lambda: watcher.get("/readyz").json["intents_waiting"] > before, "a claim that waits")

    def run(self):
        self.answer = self.client.claim(*self.args, **self.fields)

    def result(self):
        self.join(120)
        assert self.answer is not None, "the waiting claim was not answered"
        return self.answer


def test_waiting_claim_gets_the_result(house, semel, client):
    held = client.claim("w", "k")
    waiting = [Waiting(house, semel, "w", "k", wait_ms=50000) for _ in range(3)]
    client.confirm_raw(held, b'{"n": 1.0}')
    for one in waiting:
        assert one.result().status == 200 and b'"result":{"n": 1.0}' in one.answer.raw
        assert one.answer.headers["Idempotent-Replayed"] == "true"


def test_one_waiting_claim_proceeds_when_the_holder_lets_go(house, semel, client):
    held = client.claim("w", "k")
    waiting = [Waiting(house, semel, "w", "k", wait_ms=50000) for _ in range(2)]
    client.say("release", held)
    until(lambda: any(one.answer is not None for one in waiting), "the first waiter")
    first = next(one for one in waiting if one.answer is not None)
    other = next(one for one in waiting if one is not first)
    assert_proceed(first.answer, fence=2)
    assert other.answer is None
    assert client.say("confirm", first.answer, result=7).status == 200
    assert other.result().json["result"] == 7


def test_waiting_claim_learns_of_unknown_and_refused(house, semel, client):
    for number, (fields, code) in enumerate([({}, "outcome_unknown"), ({"effect": "none", "final": True}, "refused")]):
        held = client.claim("w", f"k{number}")
        waiting = Waiting(house, semel, "w", f"k{number}", wait_ms=50000)
        client.say("fail", held, **fields)
        assert_problem(waiting.result(), 409, code)


def test_wait_ends_with_in_progress(client):
    client.claim("w", "k")
    assert_problem(client.claim("w", "k", wait_ms=50), 409, "in_progress")
    assert_problem(client.claim("w", "k", headers={"Prefer": "respond-async, wait=1"}), 409, "in_progress")


def test_waiter_takes_over_when_the_lease_lapses_before_sent(client):
    client.claim("w", "k", lease_ms=300, two_phase=True)
    assert_proceed(client.claim("w", "k", two_phase=True, wait_ms=30000), fence=2)


# ---- policy ----

POLICY = """
version: 1
workflows:
  dedup: {capability: idempotent, window: 24h}
  retry: {on_unknown: retry}
  hold: {on_unknown: hold}
  skip: {on_unknown: skip}
  noisy: {ignore: [trace, at]}
  daily: {key: "f:{lead}:{day}", time: at, zone: America/New_York, ignore: [at]}
  twice: {attempts: 2}
  twice_unknown: {attempts: 2, on_unknown: retry}
  careful: {two_phase: true}
  watched: {mode: shadow}
"""


@pytest.fixture
def ruled(house, storage):
    return house.client(house.start(storage, policy=POLICY))


def test_deduplicating_destination_may_be_asked_again(ruled):
    first = assert_proceed(ruled.claim("dedup", "k", lease_ms=SHORT_MS))
    second = assert_proceed(after_lapse(ruled, "dedup", "k"), fence=2)
    assert first.json["downstream_key"] == second.json["downstream_key"]
    assert ruled.say("fail", second).json["state"] == "pending"
    assert_proceed(ruled.claim("dedup", "k"), fence=3)


def test_on_unknown_decides(ruled):
    for workflow, state in (("retry", "pending"), ("hold", "unknown"), ("skip", "unknown")):
        held = assert_proceed(ruled.claim(workflow, "k"))
        assert ruled.say("fail", held, effect="unknown").json["state"] == state
        assert (ruled.intent(held.json["intent"]).json["expires_at"] is not None) == (workflow == "skip")
    assert_proceed(ruled.claim("retry", "k"), fence=2)
    assert_problem(ruled.claim("hold", "k"), 409, "outcome_unknown")
    assert_problem(ruled.claim("skip", "k"), 409, "outcome_unknown")


def test_a_claim_may_say_itself_what_follows_when_nobody_can_tell(ruled):
    for said, state in (("retry", "pending"), ("hold", "unknown"), ("skip", "unknown"), (None, "unknown")):
        held = assert_proceed(ruled.claim("hold", f"k-{said}", on_unknown=said))
        assert "may_have_happened" not in held.json
        assert ruled.intent(held.json["intent"]).json["on_unknown"] == (said or "hold")
        assert ruled.say("fail", held, effect="unknown").json["state"] == state
    assert ruled.claim("hold", "k-retry", on_unknown="retry").json["may_have_happened"] is True
    held = assert_proceed(ruled.claim("retry", "strict", on_unknown="hold"))
    assert ruled.say("fail", held, effect="unknown").json["state"] == "unknown"
    assert assert_problem(ruled.claim("hold", "k", on_unknown="maybe"), 400, "invalid")["field"] == "on_unknown"


def test_a_repetition_accepted_once_is_not_accepted_for_good(ruled):
    held = assert_proceed(ruled.claim("hold", "k", on_unknown="retry"))
    assert ruled.say("fail", held, effect="unknown").json["state"] == "pending"
    assert_problem(ruled.claim("hold", "k"), 409, "outcome_unknown")


def test_ignored_fields_may_differ(ruled):
    ruled.claim("noisy", "k", input={"to": "a", "trace": "1", "at": 1})
    assert_problem(ruled.claim("noisy", "k", input={"to": "a", "trace": "2"}), 409, "in_progress")
    assert ruled.claim("noisy", "k", input={"to": "b", "trace": "1"}).json["differs"] == ["to"]


def test_template_makes_the_key_from_the_events_own_time_in_its_zone(ruled):
    late = ruled.claim("daily", input={"lead": 7, "at": "2026-11-16T03:30:00Z"})  # 22:30 of the 15th in New York
    key = ruled.intent(assert_proceed(late).json["intent"]).json["key"]
    assert key == "f:7:2026-11-15"
    again = ruled.claim("daily", input={"lead": 7.0, "at": "2026-11-15T12:00:00-05:00"})
    assert assert_problem(again, 409, "in_progress")["intent"] == late.json["intent"]
    assert_proceed(ruled.claim("daily", input={"lead": 7, "at": "2026-11-16T05:00:00Z"}))
    assert assert_problem(ruled.claim("daily", input={"at": "2026-11-16"}), 400, "invalid")["field"] == "input.lead"
    assert assert_problem(ruled.claim("daily", input={"lead": 7, "at": "never"}), 400, "invalid")["field"] == "input.at"
    assert_problem(ruled.claim("daily"), 400, "key_required")


def test_attempts_are_limited(ruled):
    for attempt in (1, 2):
        assert ruled.say("fail", assert_proceed(ruled.claim("twice", "k"), fence=attempt), effect="none").status == 200
    assert_problem(ruled.claim("twice", "k"), 409, "refused")
    for attempt in (1, 2):
        assert ruled.say("fail", assert_proceed(ruled.claim("twice_unknown", "k"), fence=attempt)).status == 200
    assert_problem(ruled.claim("twice_unknown", "k"), 409, "outcome_unknown")


def test_a_claim_sent_again_with_its_nonce_gets_the_same_answer(client):
    first = assert_proceed(client.claim("w", "k", two_phase=True, nonce="a-random-text", lease_ms=30000), fence=1)
    assert first.json["two_phase"] is True and first.json["lease_ms"] == 30000
    again = assert_proceed(client.claim("w", "k", two_phase=True, nonce="a-random-text", wait_ms=1000), fence=1)
    assert again.headers["Idempotent-Replayed"] == "true" and "Idempotent-Replayed" not in first.headers
    assert 0 < again.json["lease_ms"] <= 30000 and abs(moment(again.json["lease_until"]) - moment(first.json["lease_until"])) < 5
    assert client.claim("w", "k", two_phase=True, nonce="another-text").code == "in_progress"
    assert client.claim("w", "k").code == "in_progress"
    assert client.say("sent", first).status == 200
    assert client.claim("w", "k", two_phase=True, nonce="a-random-text").code == "in_progress"  # it may have happened
    assert "nonce" not in client.intent(first.json["intent"]).json


def test_a_nonce_needs_two_phases(client, ruled):
    refused = client.claim("w", "one-phase", nonce="a-random-text")
    assert refused.status == 400 and refused.json["field"] == "nonce"
    assert client.claim("w", "short", two_phase=True, nonce="short").status == 400
    assert_proceed(ruled.claim("careful", "by-policy", nonce="a-random-text"))


def test_two_phase_by_policy(ruled):
    held = ruled.claim("careful", "k", lease_ms=SHORT_MS)
    assert held.json["two_phase"] is True
    assert ruled.intent(held.json["intent"]).json["two_phase"] is True
    assert_proceed(after_lapse(ruled, "careful", "k"), fence=2)


def test_shadow_lets_duplicates_through_and_says_what_would_have_happened(ruled):
    first = assert_proceed(ruled.claim("watched", "k"))
    assert "shadow" not in first.json
    duplicate = ruled.claim("watched", "k")
    assert duplicate.status == 201 and duplicate.json["answer"] == "proceed"
    assert duplicate.json["shadow"] == {"would": "in_progress"} and TIME.match(duplicate.json["lease_until"])
    assert list(duplicate.json) == ["answer", "intent", "fence", "lease_until", "lease_ms", "two_phase", "downstream_key", "shadow"]
    assert duplicate.json["fence"] == 0  # it holds nothing, so nothing it says settles the true holder's claim
    other = ruled.say("confirm", duplicate, result=2)
    assert other.status == 200 and other.json["shadow"] == {"would": "fenced"}
    assert ruled.intent(first.json["intent"]).json["state"] == "sent"
    assert ruled.say("confirm", first, result=1).status == 200
    assert ruled.say("confirm", duplicate, result=2).status == 200
    assert ruled.claim("watched", "k").json["shadow"] == {"would": "replay"}
    assert ruled.intent(first.json["intent"]).json["result"] == 1

    def story():
        rows = [(row["kind"], row["reason"]) for row in ruled.decisions(first.json["intent"])]
        return rows if ("replay", "shadow") in rows else None

    rows = until(story, "the decisions about the duplicates")
    assert {("in_progress", "shadow"), ("fenced", "shadow"), ("replay", "shadow")} <= set(rows)


def test_policy_is_replaced_whole_or_not_at_all(client):
    assert client.policy("workflows: {a: {lease: 5s}}").json["version"] == 1
    shown = client.get("/v1/policy")
    assert list(shown.json) == ["version", "hash", "applied_at", "actor", "text"]
    assert shown.json["text"] == "workflows: {a: {lease: 5s}}"
    bad = client.request("PUT", "/v1/policy", b"mode: enforce\nworkflows:\n  a:\n    laese: 5s\n    keep: 5x\n")
    problems = assert_problem(bad, 422, "policy_invalid")["problems"]
    assert [(one["line"], one["column"]) for one in problems] == [(4, 5), (5, 11)]
    assert "lease" in problems[0]["text"]
    assert client.get("/v1/policy").raw == shown.raw
    same = client.policy("workflows: {a: {lease: 5s}}").json
    assert same["version"] == 1 and same["changed"] is False


def test_policy_survives_a_restart(semel, client):
    client.policy("workflows: {w: {key: 'x:{a}'}}")
    client.close()
    assert semel.stop() == 0
    semel.start()
    assert_proceed(client.claim("w", input={"a": 1}))


# ---- how long it is kept ----


def test_expired_result_leaves_the_fact(house):
    daemons = {storage: house.start(storage) for storage in ("sqlite", "postgres")}
    clients = {storage: house.client(daemon) for storage, daemon in daemons.items()}
    for client in clients.values():
        assert client.say("confirm", client.claim("w", "k", keep="1s"), result="short").status == 200
        assert client.say("fail", client.claim("w", "no", keep="1s"), effect="none", final=True).status == 200
        assert client.say("confirm", client.claim("w", "long", keep="30d"), result="long").status == 200
        assert client.claim("w", "open", keep="1s").status == 201
    for client in clients.values():
        until(lambda: client.claim("w", "k").status == 410, "the sweep of expired results", every=0.1)
        body = assert_problem(client.claim("w", "k"), 410, "expired", retry="false")
        assert list(body)[7:] == ["state", "settled_at"]
        assert body["state"] == "confirmed" and TIME.match(body["settled_at"])
        until(lambda: client.claim("w", "no").status == 410, "the sweep of expired refusals", every=0.1)
        assert client.claim("w", "no").json["state"] == "refused"
        assert client.claim("w", "long").json["result"] == "long"
        assert_problem(client.claim("w", "open"), 409, "in_progress")


# ---- what is left after a restart ----


def test_restart_keeps_everything(semel, client):
    done, open_, gone = client.claim("w", "done"), client.claim("w", "open"), client.claim("w", "gone")
    client.confirm_raw(done, b'{ "a" : 1.0 }')
    client.say("fail", gone)
    replay, shown = client.claim("w", "done").raw, client.intent(done.json["intent"]).json
    client.close()
    assert semel.stop() == 0
    semel.start()
    assert client.claim("w", "done").raw == replay
    assert client.intent(done.json["intent"]).json["result"] == shown["result"]
    assert_problem(client.claim("w", "open"), 409, "in_progress")
    assert_problem(client.claim("w", "gone"), 409, "outcome_unknown")
    assert client.say("confirm", open_, result=1).status == 200


# ---- the rest of the face ----


def test_intent_shows_everything(client):
    held = client.claim("w", "k", thread="t", action="a", run="r", input={"x": 1})
    shown = client.intent(held.json["intent"])
    assert list(shown.json) == [
        "intent", "workflow", "key", "state", "fence", "attempts", "mode", "two_phase", "capability", "on_unknown", "run", "thread",
        "action", "lease_until", "created_at", "first_sent_at", "settled_at", "expires_at", "error", "downstream_key", "result"]
    assert (shown.json["thread"], shown.json["action"], shown.json["run"]) == ("t", "a", "r")
    assert (shown.json["state"], shown.json["attempts"], shown.json["result"]) == ("sent", 1, None)
    assert shown.json["downstream_key"] == held.json["downstream_key"]
    assert_compact(shown)


def test_health_metrics_and_problems(client, storage):
    assert client.get("/healthz").json["status"] == "alive"
    ready = client.get("/readyz")
    assert ready.status == 200 and ready.json["status"] == "ready" and ready.json["storage"] == storage
    assert client.get("/").json["name"] == "semel"
    client.claim("w", "k")
    metrics = client.get("/metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'semel_claims_total{outcome="proceed"} 1\n' in metrics.raw
    kind = client.get("/problems/in_progress")
    assert kind.status == 200 and list(kind.json) == ["type", "title", "status", "code", "hint"]
    assert_problem(client.get("/problems/no-such"), 404, "not_found")


def test_head_answers_like_get_without_a_body(client):
    got, head = client.get("/healthz"), client.request("HEAD", "/healthz")
    assert head.status == 200 and head.raw == b"" and head.headers["Content-Length"] == got.headers["Content-Length"]


def test_port_0_is_a_port_of_the_systems_choice(house):
    daemon = house.start("sqlite", port=0)
    assert daemon.port != 0 and house.client(daemon).get("/healthz").status == 200
