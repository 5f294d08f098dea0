"""What a person and a program can do with what came in: see it and why, let it through once, forward it again on purpose, quieten a source, and try
another policy on it without consequences."""

import base64
import hashlib
import hmac
import json
import sqlite3

import pytest

from plain_server import reply
from semel_process import run_cli, until

QUESTION = "Hello, what does a weekly coaching session cost for two people, and when could we begin with it in spring"
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


class Inbox:
    def __init__(self, house, server, storage="sqlite", sources=None, destination=None, **more):
        self.sink = server(lambda head, body: reply())
        agent = {"provider": "http", "url": self.sink.url, "allow_private": True, "backoff": "50ms", **(destination or {})}
        default = {"preset": "json", "verify": "none", "forward": "agent", "path": "/new"}
        self.policy = {
            "owner": "dana", "destinations": {"agent": agent},
            "sources": {name: {**default, **own} for name, own in (sources or {"form": {}}).items()}, **more,
        }
        self.daemon = house.start(storage, policy=json.dumps(self.policy), options=more.pop("options", ()))
        self.client = house.client(self.daemon)

    def send(self, text, email="jon@acme.io", source="form", **fields):
        answer = self.client.post(f"/in/{source}", {"email": email, "message": text, **fields}, headers={"Content-Type": "application/json"})
        assert answer.status == 200, answer
        (event,) = answer.json["events"]
        return until(lambda: self.decided(event), "a verdict")

    def decided(self, event):
        found = self.get(event)
        return found if found["verdict"] != "waiting" else None

    def get(self, event, query=""):
        answer = self.client.get(f"/v1/events/{event}{query}")
        assert answer.status == 200, answer
        return answer.json

    def list(self, **filters):
        return self.client.get("/v1/events?" + "&".join(f"{name}={value}" for name, value in filters.items())).json["data"]

    def act(self, event, verb, **fields):
        return self.client.post(f"/v1/events/{event['event']}/{verb}", fields)

    def cards(self):
        return self.client.get("/v1/exceptions").json["data"]

    def forwarded(self, count):
        """The requests that reached the user's webhook, when there are so many and nothing more is on its way."""
        until(lambda: len(self.sink.requests) >= count, f"{count} requests")
        until(lambda: not self.client.get("/v1/effects?step=deliver").json["data"], "an empty outbox")
        assert len(self.sink.requests) == count
        return [(headers_of(head), body) for _, head, body in self.sink.requests]

    def cli(self, *words, expect=0):
        done = run_cli(*words, "--url", f"http://127.0.0.1:{self.daemon.port}")
        assert done.returncode == expect, done
        return done.stdout + done.stderr


def headers_of(head):
    lines = head.decode().split("\r\n")[1:]
    return {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}


@pytest.fixture
def inbox(house, server):
    return lambda storage="sqlite", **more: Inbox(house, server, storage, **more)


# Again after forty minutes


def test_the_same_message_again_is_seen_and_can_be_released_once(inbox, storage):
    box = inbox(storage)
    first, again = box.send(QUESTION, id=1), box.send(QUESTION.upper() + "?", id=2)
    assert (first["verdict"], first["reason"]) == ("accepted", "new") and first["because"]
    assert (again["verdict"], again["reason"], again["score"], again["first"]) == ("suppressed", "same_content", 1000, first["event"])
    assert again["explanation"] == {"same": 1000, "contained": 1000, "only_here": "", "only_there": ""}
    assert again["first_event"]["text"] == QUESTION and again["forward"] is None
    ((headers, body),) = box.forwarded(1)
    assert headers["semel-event-id"] == first["event"] and headers["semel-verdict"] == "accepted" and json.loads(body)["id"] == 1
    seen = until(lambda: box.get(first["event"])["forward"]["state"] == "confirmed" and box.get(first["event"]), "the delivery")
    assert seen["copies"] == 1 and [copy["event"] for copy in seen["copied_by"]] == [again["event"]]

    told = box.cli("why", again["event"])
    assert "suppressed: The same person said the same" in told and first["event"] in told and f"semel inbox release {again['event']}" in told
    released = box.act(again, "release", note="they did ask twice")
    assert released.status == 200 and released.json["changed"] and released.json["verdict"] == "released", released
    box.forwarded(2)
    for _ in range(3):
        second = box.act(again, "release")
        assert second.status == 200 and not second.json["changed"] and second.json["effect"] == released.json["effect"]
    requests = box.forwarded(2)
    assert (requests[1][0]["semel-event-id"], requests[1][0]["semel-verdict"]) == (again["event"], "released")
    assert box.get(again["event"])["reason"] == "same_content"  # why it was suppressed stays visible
    (act,) = box.get(again["event"])["acts"]
    assert (act["act"], act["was"], act["note"]) == ("release", "suppressed", "they did ask twice")
    (decision,) = [row for row in box.client.decisions() if row["kind"] == "released"]
    assert decision["changes"]["event"] == again["event"] and decision["changes"]["note"] == "they did ask twice"
    assert "released by local: they did ask twice" in box.cli("inbox", "why", again["event"])
    assert "was released before; nothing changed" in box.cli("inbox", "release", again["event"])


def test_a_released_question_is_a_question_of_its_own(inbox, storage):
    """Its conversation is answered already; what is released opens the next epoch, and a message behind it joins that one."""
    box = inbox(storage)
    first, again = box.send(QUESTION), box.send(QUESTION, x=1)
    held = box.client.claim("reply", f"{first['thread']}:1:reply", thread=first["thread"], action="reply")
    assert held.status == 201 and box.client.say("confirm", held, result=1).status == 200
    released = box.act(again, "release")
    assert released.json["thread"] == first["thread"] and released.json["epoch"] == 2
    assert box.client.get(f"/v1/threads/{first['thread']}").json["question"] == again["event"]
    for query in ("", "?identity=jon@acme.io"):
        assert [row["question"] for row in box.client.get(f"/v1/threads{query}").json["data"]] == [again["event"]]
    assert box.send("One more thing: is parking possible near your place in the evening?")["epoch"] == 2


def test_events_are_listed_by_what_is_asked_for(inbox, storage):
    box = inbox(storage, sources={"form": {}, "chat": {}})
    sent = [box.send(f"Question number {n} about something quite different: {'abcdefgh'[n] * 9}", email=f"p{n}@x.io") for n in range(5)]
    copy = box.send(sent[2]["text"], email="p2@x.io", x=1)
    other = box.send("Is anybody there to talk about prices?", email="zoe@y.io", source="chat")
    assert [event["event"] for event in box.list()] == [event["event"] for event in [other, copy, *reversed(sent)]]
    assert [event["event"] for event in box.list(source="chat")] == [other["event"]]
    assert [event["event"] for event in box.list(verdict="suppressed")] == [copy["event"]]
    assert [event["event"] for event in box.list(q="ZOE@y")] == [other["event"]] == [event["event"] for event in box.list(q="about%20prices")]
    assert {event["event"] for event in box.list(thread=sent[2]["thread"])} == {sent[2]["event"], copy["event"]}
    pages, after = [], ""
    while after is not None:
        page = box.client.get(f"/v1/events?limit=2&after={after}").json
        pages += [event["event"] for event in page["data"]]
        after = page["page"]["next"]
    assert pages == [event["event"] for event in box.list()]
    assert box.client.get("/v1/events?verdict=odd").status == 400 and box.client.get("/v1/events/evt_0000000000000").status == 404
    assert "p2@x.io" in box.cli("inbox", "ls", "--verdict", "suppressed") and "QUESTION" not in box.cli("inbox", "show", copy["event"])


def test_the_request_as_it_came_is_for_admins(inbox, house, server):
    box = inbox()
    event = box.send(QUESTION)
    raw = box.get(event["event"], "?raw=1")["raw"]
    assert raw["method"] == "POST" and raw["url"].endswith("/in/form") and json.loads(raw["body"])["message"] == QUESTION
    assert "raw" not in box.get(event["event"]) and "/in/form" in box.cli("inbox", "show", event["event"], "--raw")


# Held


LIKELY = QUESTION.rsplit(" ", 1)[0]


def test_a_likely_copy_waits_with_both_texts_side_by_side(inbox, storage):
    box = inbox(storage)
    first, held = box.send(f"{LIKELY} spring"), box.send(f"{LIKELY} autumn")
    assert (held["verdict"], held["reason"]) == ("held", "maybe_same") and 800 <= held["score"] < 950
    assert (held["explanation"]["only_here"], held["explanation"]["only_there"]) == ("autumn", "spring")
    (card,) = box.cards()
    assert (card["kind"], card["event"], card["intent"], card["owner"]) == ("likely_duplicate", held["event"], None, "dana")
    card = box.client.get(f"/v1/exceptions/{card['exception']}").json
    assert (card["about"]["text"], card["like"]["text"]) == (f"{LIKELY} autumn", f"{LIKELY} spring") and card["like"]["event"] == first["event"]
    assert {choice["choice"] for choice in card["choices"]} == {"release", "suppress"}
    shown = box.cli("exceptions", "show", card["exception"])
    assert "autumn" in shown and "spring" in shown and "release" in shown
    assert box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "happened"}).status == 400
    resolved = box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "release", "note": "they changed their mind"})
    assert resolved.status == 200 and resolved.json["verdict"] == "released" and not box.cards()
    assert box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "suppress"}).status == 409
    assert [headers["semel-verdict"] for headers, _ in box.forwarded(2)] == ["accepted", "released"]
    assert box.client.get(f"/v1/exceptions/{card['exception']}").json["resolution"] == "release"


def test_a_held_copy_can_be_suppressed_and_later_released(inbox):
    box = inbox()
    box.send(f"{LIKELY} spring")
    held = box.send(f"{LIKELY} autumn")
    assert "is now suppressed" in box.cli("inbox", "suppress", held["event"], "--note", "same person") and not box.cards()
    assert box.act(held, "suppress").json["changed"] is False
    assert box.act(held, "replay").code == "not_open"
    box.forwarded(1)
    assert box.act(held, "release").json["changed"] and box.act(held, "suppress").code == "not_open"
    box.forwarded(2)


def test_a_conversation_that_runs_away_is_held_and_a_burst_of_copies_is_reported(inbox, storage):
    box = inbox(storage, sources={"chat": {"loop": "3/10m"}})
    events = [box.send(f"Automatic answer number {n} with a text of its own {'xyzuvw'[n] * 7}", source="chat") for n in range(4)]
    assert [event["verdict"] for event in events] == ["accepted"] * 3 + ["held"] and events[3]["reason"] == "loop"
    (card,) = box.cards()
    assert (card["kind"], card["event"]) == ("loop", events[3]["event"])
    assert box.act(events[3], "release").json["changed"] and not box.cards()
    box.forwarded(4)
    for n in range(3):
        box.send(events[0]["text"], source="chat", x=n)
    (card,) = box.cards()
    card = box.client.get(f"/v1/exceptions/{card['exception']}").json
    assert (card["kind"], card["event"]) == ("loop", events[0]["event"]) and [choice["choice"] for choice in card["choices"]] == ["suppress"]
    assert "is now accepted" in box.cli("exceptions", "resolve", card["exception"], "--choice", "suppress") and not box.cards()
    box.forwarded(4)


# What cannot be forwarded

PICKY = {"capability": "idempotent", "window": "24h", "key_form": "id"}  # the key goes into a form, and what comes is JSON


def mend(box):
    policy = json.loads(json.dumps(box.policy))
    del policy["destinations"]["agent"]["key_form"]
    policy["destinations"]["agent"]["key_header"] = "Id"
    assert box.client.policy(json.dumps(policy)).status == 200


def test_what_cannot_be_forwarded_is_held_with_a_card_until_the_policy_is_mended(inbox, storage):
    box = inbox(storage, destination=PICKY)
    held, copy = box.send(QUESTION, id=1), box.send(QUESTION, id=1)
    assert (held["verdict"], held["reason"], held["mode"], held["intent"]) == ("held", "cannot_forward", "enforce", None)
    assert "form body as 'id'" in held["explanation"]["why"] and held["because"]
    assert (copy["verdict"], copy["first"]) == ("suppressed", held["event"])
    (card,) = box.cards()
    assert (card["kind"], card["event"], card["owner"], card["reason"]) == ("cannot_forward", held["event"], "dana", held["explanation"]["why"])
    assert card["due_at"] > card["created_at"] and {choice["choice"]: bool(choice["follows"]) for choice in card["choices"]} == {"retry": True, "drop": True}
    (decision,) = [row for row in box.client.decisions() if row["kind"] == "held"]
    assert decision["reason"] == "cannot_forward" and decision["changes"]["why"] == card["reason"]
    told = box.cli("why", held["event"])
    assert "What is in the way: the key goes into the form body" in told and f"semel inbox release {held['event']}" in told and "words are the same" not in told
    assert "cannot_forward" in box.cli("inbox", "show", held["event"]) and "form body" in box.cli("exceptions", "show", card["exception"])

    for answer in (box.act(held, "release"), box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "retry"})):
        assert answer.code == "not_open" and "form body" in answer.json["detail"], answer
    assert box.get(held["event"])["verdict"] == "held" and len(box.cards()) == 1 and box.get(held["event"])["acts"] == []
    assert box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "release"}).status == 400

    mend(box)
    resolved = box.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "retry", "note": "the key is in a header now"})
    assert resolved.status == 200 and resolved.json["verdict"] == "released" and resolved.json["effect"], resolved
    assert not box.cards() and box.act(held, "release").json["changed"] is False
    ((headers, body),) = box.forwarded(1)
    assert headers["semel-event-id"] == held["event"] and headers["id"] and json.loads(body)["id"] == 1
    assert "released by local" in box.cli("why", held["event"])
    assert box.client.get(f"/v1/exceptions/{card['exception']}").json["resolution"] == "release"
    same = box.client.post("/v1/policy/backtest", json.dumps(box.policy).encode()).json
    assert same["changed"] == 0


def test_what_cannot_be_forwarded_survives_a_kill_and_can_be_dropped(inbox, storage):
    box = inbox(storage, destination=PICKY)
    held = box.send(QUESTION)
    box.daemon.kill()
    box.daemon.start()
    box.client.port = box.daemon.port
    (card,) = box.cards()
    assert box.get(held["event"])["verdict"] == "held" and card["event"] == held["event"]
    assert "is now suppressed" in box.cli("exceptions", "resolve", card["exception"], "--choice", "drop", "--note", "spam anyway")
    assert not box.cards() and box.get(held["event"])["verdict"] == "suppressed"
    mend(box)
    assert box.send(QUESTION + " and more of it, quite other words")["verdict"] == "accepted"
    box.forwarded(1)


# On purpose


def test_a_replay_is_forwarded_again_under_a_key_of_its_own(inbox, storage):
    box = inbox(storage)
    event = box.send(QUESTION)
    box.forwarded(1)
    answers = [box.act(event, "replay", note="the agent lost it").json for _ in range(2)]
    assert [answer["replay"] for answer in answers] == [1, 2] and len({answer["effect"] for answer in answers}) == 2
    requests = box.forwarded(3)
    assert [headers["semel-verdict"] for headers, _ in requests] == ["accepted", "replayed", "replayed"]
    assert len({headers["semel-event-id"] for headers, _ in requests}) == 1 and len({body for _, body in requests}) == 1
    assert [act["act"] for act in box.get(event["event"])["acts"]] == ["replay", "replay"]


def test_many_are_counted_before_they_are_replayed(inbox, storage):
    box = inbox(storage)
    for n in range(25):
        box.send(f"A question of its own, number {n}: {chr(97 + n) * 8} {chr(98 + n) * 9}", email=f"p{n}@x.io")
    copy = box.send("A question of its own, number 3: dddddddd eeeeeeeee", email="p3@x.io", x=1)
    assert copy["verdict"] == "suppressed"
    box.forwarded(25)
    since = {"source": "form", "since": "2020-01-01T00:00:00Z"}
    counted = box.client.post("/v1/events/replay", {**since, "dry_run": True})
    assert counted.json == {"dry_run": True, "matched": 25, "replayed": 0, "failed": 0, "reason": None, "more": False}
    assert box.client.post("/v1/events/replay", {**since, "until": "2020-01-02T00:00:00Z"}).json["matched"] == 0
    assert box.client.post("/v1/events/replay", {"source": "form"}).status == 400
    box.forwarded(25)
    assert "25 matched, 25 replayed" in box.cli("inbox", "replay", "--source", "form", "--since", "2020-01-01T00:00:00Z")
    box.forwarded(50)


# Noisy sources


def test_a_muted_source_is_kept_and_can_be_released(inbox, storage):
    box = inbox(storage, sources={"form": {}, "chat": {}})
    for body in ({}, {"for_ms": 31 * 86400000}, {"for_ms": 10}):
        assert box.client.post("/v1/sources/form/mute", body).status == 400, body
    assert box.client.post("/v1/sources/nobody/mute", {"for_ms": 60000}).status == 404
    assert "form is muted until" in box.cli("inbox", "mute", "form", "--for", "2h", "--note", "a test")
    muted = box.send(QUESTION)
    assert (muted["verdict"], muted["reason"]) == ("muted", "muted")
    assert box.send(QUESTION, email="x@y.io", source="chat")["verdict"] == "accepted"
    (form,) = [source for source in box.client.get("/v1/sources").json["data"] if source["source"] == "form"]
    assert form["muted_until"] and (form["note"], form["last_24h"]["muted"], form["last_event"]) == ("a test", 1, muted["event"])
    assert form["path"] == "/in/form" and form["forward"] == "agent" and form["verify"] == []
    box.forwarded(1)
    assert box.act(muted, "release").json["changed"]
    box.forwarded(2)
    assert "heard again" in box.cli("inbox", "unmute", "form")
    assert box.send("Now that is another question about something else entirely, please")["verdict"] == "accepted"
    kinds = [row["kind"] for row in box.client.decisions()]
    assert "source_mute" in kinds and "source_unmute" in kinds and "form" in box.cli("sources", "ls")


def test_a_limited_source_lets_so_many_through(inbox, storage):
    box = inbox(storage)
    box.cli("inbox", "limit", "form", "--most", "2", "--every", "1h", "--for", "2h")
    verdicts = [box.send(f"Question {n} from another person about {'abcd'[n] * 9}", email=f"p{n}@x.io")["verdict"] for n in range(4)]
    assert verdicts == ["accepted", "accepted", "muted", "muted"]
    box.forwarded(2)
    assert box.client.get("/v1/sources").json["data"][0]["limit"]["most"] == 2


# Signed


def test_what_is_forwarded_is_signed_as_standard_webhooks_say(inbox, house, monkeypatch):
    monkeypatch.setenv("AGENT_SECRET", SECRET)
    box = inbox(destination={"auth": "webhook", "secret": "env:AGENT_SECRET"})
    event = box.send(QUESTION)
    box.forwarded(1)
    box.act(event, "replay")
    ids = []
    for headers, body in box.forwarded(2):
        content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        made = base64.b64encode(hmac.new(b"0123456789abcdef0123456789abcdef", content, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{made}"
        ids.append(headers["webhook-id"])
    assert ids == [event["event"], f"{event['event']}~replay-1"]


# Figures


def test_figures_count_by_source_and_decision(inbox):
    box = inbox(sources={"form": {}, "shut": {"verify": "hmac", "secret": "env:NOBODY_HAS_IT"}})
    box.send(QUESTION)
    again = box.send(QUESTION, x=1)
    assert box.client.post("/in/shut", {"message": "x"}).status == 401
    box.act(again, "release")
    figures = box.client.get("/metrics").raw.decode()
    for line in ('events_total{source="form",decision="accepted"} 1', 'events_total{source="form",decision="suppressed"} 1',
                 'events_total{source="form",decision="released"} 1', 'refused_total{source="shut"} 1'):
        assert f"semel_inbound_{line}" in figures, line
    assert box.client.get("/readyz").json["events_waiting"] == 0


# Another policy


def test_a_backtest_tells_what_another_policy_would_do_and_changes_nothing(inbox, storage, tmp_path):
    box = inbox(storage, sources={"form": {"window": "1d"}, "chat": {"loop": "3/10m"}})
    first = box.send(QUESTION)
    copies = [box.send(QUESTION, x=n) for n in range(3)]
    box.act(copies[2], "release")
    runaway = [box.send(f"Automatic answer number {n} with a text of its own {'xyzuvw'[n] * 7}", email="bot@x.io", source="chat") for n in range(4)]
    assert [event["verdict"] for event in (first, *copies, *runaway)] == ["accepted"] + ["suppressed"] * 3 + ["accepted"] * 3 + ["held"]
    box.forwarded(5)
    before = box.list(), box.client.decisions(), box.cards()

    same = box.client.post("/v1/policy/backtest", json.dumps(box.policy).encode()).json
    assert (same["events"], same["changed"], same["examples"], same["whole"]) == (8, 0, [], True)
    assert {(row["was"], row["would"]): row["count"] for row in same["verdicts"]} == {
        ("accepted", "accepted"): 4, ("suppressed", "suppressed"): 2, ("released", "suppressed"): 1, ("held", "held"): 1,
    }
    other = json.loads(json.dumps(box.policy))
    other["sources"]["chat"]["loop"] = "2/10m"
    told = box.client.post("/v1/policy/backtest?since=1h", json.dumps(other).encode()).json
    (example,) = told["examples"]
    assert told["changed"] == 1 and (example["event"], example["was"], example["would"]) == (runaway[2]["event"], "accepted", "held")
    assert example["because"] and (example["was_reason"], example["would_reason"]) == ("new", "loop")
    (tmp_path / "other.yaml").write_text(json.dumps(other))
    assert "8 events" in box.cli("policy", "backtest", str(tmp_path / "other.yaml"), "--since", "1h")
    assert box.client.post("/v1/policy/backtest", b"sources: 3").code == "policy_invalid"
    assert box.client.post("/v1/policy/backtest?since=never", b"").status == 400
    assert (box.list(), box.client.decisions(), box.cards()) == before
    box.forwarded(5)


def multiply(box, times):
    """The stored events many times over, in the past: (ids are times), each with its marks gone, as if they had come before semel kept any."""
    box.daemon.stop()
    (database,) = box.daemon.data.glob("*.db")
    with sqlite3.connect(database) as data:
        columns = [row[1] for row in data.execute("PRAGMA table_info(event)")]
        moved = {"id": "id - (n * 10000 << 22)", "received": "received - n * 10000000"}
        data.execute("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) INSERT INTO event SELECT "
                     + ", ".join(moved.get(name, name) for name in columns) + " FROM event, c", (times - 1,))
        data.execute("DELETE FROM event_mark")
        count = data.execute("SELECT count(*) FROM event").fetchone()[0]
    box.daemon.start()
    box.client.port = box.daemon.port
    return count


def test_a_backtest_in_slices_says_what_one_whole_pass_says(inbox, tmp_path):
    box = inbox()
    box.send(QUESTION)
    box.send(QUESTION, x=1)
    box.send("Is parking possible near your place in the evening, and what does it cost?", email="zoe@y.io")
    count = multiply(box, 500)
    policy = json.dumps(box.policy).encode()
    whole = box.client.post("/v1/policy/backtest", policy).json
    assert (whole["events"], whole["whole"], whole["next"]) == (count, True, None) and whole["changed"] > 0 and whole["at"] == whole["until"]
    slices, told = 0, box.client.post("/v1/policy/backtest?slice=1ms", policy).json
    while told["next"]:
        slices += 1
        assert not told["whole"] and told["since"] < told["at"] < told["until"] and box.client.get("/readyz").status == 200
        assert slices > 1 or box.client.post("/v1/policy/backtest", policy).code == "busy"
        told = box.client.post(f"/v1/policy/backtest/{told['next']}?slice=1ms").json
    assert slices >= 1
    same = ("events", "whole", "next", "changed", "verdicts", "examples")
    assert [told[name] for name in same] == [whole[name] for name in same]
    assert box.client.post("/v1/policy/backtest/bt_0000000000000000").code == "not_found"
    assert box.client.post("/v1/policy/backtest?slice=1h", policy).status == 400

    (tmp_path / "same.yaml").write_bytes(policy)
    said = box.cli("policy", "backtest", str(tmp_path / "same.yaml"), "--slice", "1ms")
    assert said.startswith(f"{count} events since") and "events decided again, up to 20" in said and "% of them otherwise" not in said


def test_a_backtest_remembers_what_came_before_its_time(inbox, house):
    """The first of two equal messages lies before the time that is looked at. Its copy is still one."""
    box = inbox()
    box.send(QUESTION)
    copy = box.send(QUESTION, x=1)
    assert copy["verdict"] == "suppressed"
    box.daemon.stop()
    (database,) = box.daemon.data.glob("*.db")
    with sqlite3.connect(database) as data:
        first = data.execute("SELECT min(id) FROM event").fetchone()[0]
        hour = 3_600_000_000
        data.execute("UPDATE event SET id = id - ?, received = received - ? WHERE id = ?", ((2 * hour // 1000) << 22, 2 * hour, first))
        data.execute("UPDATE event_mark SET event = event - ?, at = at - ? WHERE event = ? AND at = (SELECT min(at) FROM event_mark)", ((2 * hour // 1000) << 22, 2 * hour, first))
    box.daemon.start()
    box.client.port = box.daemon.port
    told = box.client.post("/v1/policy/backtest?since=1h", json.dumps(box.policy).encode()).json
    assert told["events"] == 1 and told["verdicts"] == [{"was": "suppressed", "would": "suppressed", "count": 1}]
