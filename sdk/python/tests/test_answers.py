"""One answer to a question, whoever gives it: what claim(thread, action) and answer_once promise."""

import json
import pathlib
import time
import urllib.request

import pytest

import semel as sdk
from semel import InProgress, Invalid, answer_key
from semel.answers import question_of

CASES = json.loads((pathlib.Path(__file__).resolve().parents[2] / "conformance" / "answers.json").read_text(encoding="utf-8"))["cases"]
POLICY = """
sources:
  chat: {preset: json, verify: none}
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_keys_of_answers(case):
    assert answer_key(case["thread"], case["action"], epoch=case.get("epoch"), question=case.get("question")) == case["key"]


@pytest.mark.parametrize("case", [case for case in CASES if "question" in case], ids=lambda case: case["name"])
def test_semel_makes_the_same_key(semel, both, case):
    client = both.client(semel.url)
    assert both.held(client, lambda claim: 1, thread=case["thread"], question=case["question"], action=case["action"]) == 1
    assert semel.intents(workflow="answers")[0]["key"] == case["key"]


def forwarded(semel, text, epoch=1):
    """The headers that come with what somebody wrote, once it is that question."""
    semel.policy(POLICY)
    body = json.dumps({"email": "jon@acme.io", "message": text}).encode()
    urllib.request.urlopen(urllib.request.Request(semel.url + "/in/chat", body, {"Content-Type": "application/json"})).read()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = semel.get("/v1/threads?identity=jon@acme.io")["data"]
        if found and found[0]["epoch"] == epoch:
            return {"semel-thread": found[0]["thread"], "Semel-Epoch": str(found[0]["epoch"]), "Content-Type": "text/plain"}
        time.sleep(0.02)
    raise AssertionError("the message was not decided")


def test_a_question_is_answered_once_and_the_next_one_again(semel, both):
    client, said = both.client(semel.url), []

    def answer(headers, text):
        return both.held(client, lambda claim: said.append(text) or text, action="reply", **question_of(headers))

    first = forwarded(semel, "What does a weekly session cost?")
    assert answer(first, "50") == "50"
    assert answer(first, "60") == "50"
    second = forwarded(semel, "And would you also take my brother along on Fridays?", epoch=2)
    assert second["semel-thread"] == first["semel-thread"]
    assert answer(second, "yes") == "yes"
    assert answer(first, "70") == "50"
    assert said == ["50", "yes"]


def test_answer_once_takes_the_headers(semel):
    client, headers = sdk.Client(semel.url), forwarded(semel, "What does a weekly session cost?")
    with client.answer_once(headers) as claim:
        assert claim.first
        claim.result = "50"
    with client.answer_once([(name.encode(), value.encode()) for name, value in headers.items()]) as claim:  # as ASGI has them
        assert not claim.first and claim.result == "50"
    with client.answer_once(headers, "note") as claim:  # another action is another answer
        assert claim.first
    assert {(i["action"], i["key"]) for i in semel.intents(workflow="answers")} == {
        (action, f"{headers['semel-thread']}:1:{action}") for action in ("reply", "note")
    }


def test_headers_without_a_question_are_refused():
    for headers in ({}, {"Semel-Thread": "thr_1"}, {"Semel-Thread": "thr_1", "Semel-Epoch": "x"}):
        with pytest.raises(Invalid):
            question_of(headers)


def test_an_answer_waits_for_the_one_before(semel):
    client = sdk.Client(semel.url)
    with client.claim(thread="ticket", question="m1", action="reply") as first:
        with pytest.raises(InProgress) as told:
            with client.claim(thread="ticket", question="m2", action="reply", wait=0):
                pass
        assert told.value.problem["waits_for"] == first.intent
        first.result = 1
    with client.claim(thread="ticket", question="m2", action="reply") as second:
        assert second.first
