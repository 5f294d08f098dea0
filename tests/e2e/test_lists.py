"""Lists: every intent once, filters, the story of an intent."""

import json

import pytest

import swarm
from semel_process import until

COUNT = 300


def pages(client, path, limit):
    """All rows of a list, page by page."""
    rows, after = [], None
    while True:
        answer = client.get(f"{path}limit={limit}" + (f"&after={after}" if after else ""))
        assert answer.status == 200, answer
        assert list(answer.json) == ["data", "page"] and answer.json["page"]["limit"] == limit
        assert len(answer.json["data"]) <= limit
        rows += answer.json["data"]
        after = answer.json["page"]["next"]
        if after is None:
            return rows
        assert len(answer.json["data"]) == limit
        assert len(rows) <= 10 * COUNT, "the pages do not end"


def make_one(number):
    status, body = yield swarm.claim("even" if number % 2 == 0 else "odd", f"key {number}", lease_ms=3_600_000)
    assert status == 201
    held = json.loads(body)
    if number % 3 == 0:
        status, _ = yield swarm.say("confirm", held["intent"], held["fence"], result=number)
        assert status == 200


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def filled(request, module_house):
    daemon = module_house.start(request.param, name=f"lists_{request.param}")
    clients = swarm.Swarm()
    for first in range(10):
        def ten(first=first):
            for number in range(first, COUNT, 10):
                yield from make_one(number)
        clients.add(ten(), daemon.port)
    clients.run()
    return module_house.client(daemon)


@pytest.mark.parametrize("limit", [1, 37, 100, 200])
def test_paging_gives_each_intent_once_newest_first(filled, limit):
    if limit == 1:
        rows = pages(filled, "/v1/intents?workflow=odd&state=confirmed&", 1)
        assert len(rows) == len({row["intent"] for row in rows}) == 50
        return
    rows = pages(filled, "/v1/intents?", limit)
    assert sorted(row["key"] for row in rows) == sorted(f"key {number}" for number in range(COUNT))
    ids = [row["intent"] for row in rows]
    assert ids == sorted(ids, reverse=True)


def test_filters(filled):
    def numbers(query):
        rows = pages(filled, f"/v1/intents?{query}&", 100)
        return sorted(int(row["key"].split()[1]) for row in rows)

    assert numbers("workflow=even") == list(range(0, COUNT, 2))
    assert numbers("state=confirmed") == list(range(0, COUNT, 3))
    assert numbers("state=sent") == [n for n in range(COUNT) if n % 3]
    assert numbers("workflow=odd&state=confirmed") == list(range(3, COUNT, 6))
    assert numbers("workflow=odd&key=key%205") == [5]
    assert numbers("workflow=odd&key=key+5") == [5]
    assert numbers("workflow=even&key=key+5") == []
    assert numbers("workflow=none") == [] and numbers("state=unknown") == [] and numbers("workflow=even&state=pending") == []


def test_list_rows_are_like_the_intent_without_its_result(filled):
    row = filled.get("/v1/intents?limit=1&state=confirmed").json["data"][0]
    shown = filled.intent(row["intent"]).json
    del shown["result"]
    assert row == shown


def test_all_decisions_newest_first_each_once(filled):
    rows = pages(filled, "/v1/decisions?", 90)
    ids = [row["decision"] for row in rows]
    assert len(ids) == len(set(ids)) and ids == sorted(ids, reverse=True)
    kinds = [row["kind"] for row in rows]
    assert kinds.count("claim") == COUNT and kinds.count("confirm") == COUNT // 3
    assert list(rows[0]) == ["decision", "at", "kind", "intent", "fence", "state", "count", "actor", "reason", "policy", "changes", "lane", "seq", "hash"]


def test_story_of_an_intent(client):
    held = client.claim("w", "k", two_phase=True)
    client.say("release", held)
    again = client.claim("w", "k", two_phase=True)
    client.say("sent", again)
    client.say("extend", again, lease_ms=50000)
    client.say("fail", again, error="broken pipe")
    client.say("confirm", again, result=1)
    client.claim("w", "other")
    story = [(row["kind"], row["fence"], row["state"], row["reason"]) for row in pages(client, f"/v1/decisions?intent={held.json['intent']}&", 2)]
    assert story == [
        ("claim", 1, "claimed", "first"),
        ("release", 1, "pending", "released"),
        ("claim", 2, "claimed", "again"),
        ("sent", 2, "sent", "before_the_act"),
        ("extend", 2, "sent", "heartbeat"),
        ("fail", 2, "unknown", "holder_cannot_tell"),
        ("raise", 0, None, "holder_cannot_tell"),
        ("confirm", 2, "confirmed", "late_confirm_settles_unknown"),
        ("resolve", 0, None, "holder_cannot_tell"),
    ]


def test_suppressed_duplicates_are_counted(client):
    held = client.claim("w", "k", input={"a": 1})
    for _ in range(5):
        assert client.claim("w", "k", input={"a": 1}).code == "in_progress"
    for _ in range(3):
        assert client.claim("w", "k", input={"a": 2}).code == "key_reused"
    client.say("confirm", held)
    for _ in range(4):
        assert client.claim("w", "k", input={"a": 1}).status == 200
    expected = {"in_progress": 5, "key_reused": 3, "replay": 4}

    def counted():
        found = dict.fromkeys(expected, 0)
        for row in client.decisions(held.json["intent"]):
            if row["kind"] in found:
                found[row["kind"]] += row["count"]
        assert all(found[kind] <= expected[kind] for kind in expected), found
        return found == expected

    until(counted, "the counts of suppressed duplicates")
    assert any(row["changes"] == {"differs": ["a"]} for row in client.decisions(held.json["intent"]) if row["kind"] == "key_reused")


def test_intents_of_nobody_are_an_empty_list(client):
    assert client.get("/v1/intents").json == {"data": [], "page": {"next": None, "limit": 50}}
    assert client.get("/v1/decisions").json == {"data": [], "page": {"next": None, "limit": 50}}
    assert client.get("/v1/decisions?intent=int_0000000000001").json["data"] == []
