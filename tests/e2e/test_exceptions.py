"""What a person must decide: everything unknown has an owner and a due time, each choice does what it says, once, and all of it is in the log with what
was seen. Where a provider can be asked, it is asked first."""

import json
import threading

import pytest

from outbox import HASTY, Outbox, policy, provider_calls, sink
from semel_process import run_cli, until

CHOICES = {"unknown_outcome": {"happened", "did_not", "retry"}, "dead_letter": {"retry", "drop"}}


@pytest.fixture
def unknown(opened, fake):
    """An outbox with one effect that nobody can tell about, and its card."""

    def make(storage="sqlite", fault="act_then_drop", **settings):
        box = opened(storage, sink=sink(fake, **settings))
        fake.script([fault])
        effect = box.submit("sink", "k")
        assert box.over(effect)["state"] == "unknown"
        return box, effect, box.card(effect)

    return make


@pytest.fixture
def dead(opened, fake):
    def make(storage="sqlite", **settings):
        box = opened(storage, sink=sink(fake, **settings))
        fake.script(["bad_request"])
        effect = box.submit("sink", "k")
        assert box.over(effect)["step"] == "person"
        return box, effect, box.card(effect)

    return make


def cli(box, *words):
    done = run_cli(*words, "--url", f"http://127.0.0.1:{box.daemon.port}")
    assert done.returncode == 0, done
    return done.stdout


def kinds_of(box, effect):
    return [(row["kind"], row["actor"]) for row in box.decisions(effect)]


# Everybody is somebody's


def test_every_unknown_has_an_owner_and_a_due_time(opened, fake, storage):
    """Effects, calls through /to/…, and plain claims that lapse or whose holder cannot tell."""
    box = opened(storage, sink=sink(fake), ninas=sink(fake, owner="nina"), more={"owner": "dana", "workflows": {"w": {"lease": "1s"}, "skips": {"lease": "1s", "on_unknown": "skip"}}})
    fake.script(["act_then_drop"] * 3)
    effects = {}
    for destination in ("sink", "ninas"):
        effects[destination] = box.submit(destination, "e")
        box.over(effects[destination])
    called = box.client.request("POST", "/to/sink/x", b"{}", {"Idempotency-Key": "c"}).json["intent"]
    lapsed = box.client.claim("w", "lapsed", lease_ms=100).json["intent"]
    said = box.client.claim("w", "said")
    assert box.client.say("fail", said, effect="unknown").json["state"] == "unknown"
    skipped = box.client.claim("skips", "skipped", lease_ms=100).json["intent"]
    until(lambda: all(box.client.intent(intent).json["state"] == "unknown" for intent in (lapsed, skipped)), "the end of the leases")
    owners = {effects["sink"]: "dana", effects["ninas"]: "nina", called: "dana", lapsed: "dana", said.json["intent"]: "dana"}
    for subject, owner in owners.items():
        card = box.card(subject)
        assert (card["kind"], card["state"], card["owner"]) == ("unknown_outcome", "open", owner), subject
        assert card["due_at"] > card["created_at"] and card["reason"] and {choice["choice"] for choice in card["choices"]} == CHOICES["unknown_outcome"]
        raised = [row for row in box.decisions(subject) if row["kind"] == "raise"]
        assert len(raised) == 1 and raised[0]["changes"]["owner"] == owner and raised[0]["changes"]["exception"] == card["exception"]
    assert box.card(skipped) is None and len(box.cards()) == len(owners)


def test_a_late_word_closes_the_card(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    for word, fields, resolution in (("confirm", {"result": 1}, "happened"), ("fail", {"effect": "none"}, "retry"), ("fail", {"effect": "none", "final": True}, "did_not")):
        held = box.client.claim("w", f"{word}{resolution}", lease_ms=100)
        intent = held.json["intent"]
        until(lambda: box.client.intent(intent).json["state"] == "unknown", "the end of the lease")
        assert box.card(intent)
        assert box.client.say(word, held, **fields).status == 200
        assert box.card(intent) is None
        closed = box.card(intent, "all")
        assert (closed["state"], closed["resolution"]) == ("resolved", resolution) and closed["resolved_at"] and closed["choices"] == []


# Each choice


def test_it_happened(unknown, fake, storage):
    box, effect, card = unknown(storage)
    done = box.resolve(card, "happened", note="their dashboard shows it", result={"id": "x-1"})
    assert (done.status, done.json["state"], done.json["resolution"]) == (200, "confirmed", "happened")
    again = box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}})
    assert (again.status, again.json["state"], again.json["result"]) == (200, "confirmed", {"id": "x-1"}) and len(fake.requests()) == 1
    closed = box.client.get(f"/v1/exceptions/{card['exception']}").json
    assert (closed["state"], closed["resolution"], closed["resolved_by"], closed["note"]) == ("resolved", "happened", "local", "their dashboard shows it")
    move = [row for row in box.decisions(effect) if row["kind"] == "confirm"][-1]
    assert move["changes"]["evidence"] == {"resolution": "happened", "by": "local", "note": "their dashboard shows it"}
    assert ("resolve", "local") in kinds_of(box, effect)


def test_it_did_not(unknown, fake, storage):
    box, effect, card = unknown(storage, "drop_before")
    assert box.resolve(card, "did_not").json["state"] == "refused" and box.get(effect)["step"] == "finished"
    again = box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}})
    assert (again.status, again.code) == (409, "refused") and fake.effects_by_ref() == {} and len(fake.requests()) == 1


def test_again_but_not_too_early(unknown, fake, storage):
    """While something of the last attempt may still arrive, a person cannot have it sent again."""
    box, effect, card = unknown(storage, "drop_before", timeout="8s")
    early = box.resolve(card, "retry")
    assert (early.status, early.code) == (409, "too_early") and early.headers["Retry-After"] and 0 < early.json["retry_after_ms"] <= 8001
    assert box.card(effect)["state"] == "open" and len(fake.requests()) == 1
    assert box.say(effect, "retry").code == "too_early"
    until(lambda: box.resolve(card, "retry").status == 200, "the end of the quarantine", every=0.1)
    assert box.over(effect)["state"] == "confirmed" and fake.effects_by_ref() == {"k": 1}
    closed = box.card(effect, "all")
    assert (closed["resolution"], closed["resolved_by"]) == ("retry", "local")


def test_a_dead_letter_again_or_never(dead, fake, storage):
    box, effect, card = dead(storage)
    assert {choice["choice"] for choice in card["choices"]} == CHOICES["dead_letter"] and card["reason"] == "the destination refuses it"
    assert box.resolve(card, "happened").json["field"] == "choice"
    assert box.resolve(card, "retry", note="the address is right now").status == 200
    assert box.over(effect)["state"] == "confirmed" and fake.effects_by_ref() == {"k": 1}
    fake.script(["bad_request"])
    other = box.submit("sink", "other")
    box.over(other)
    assert box.resolve(box.card(other), "drop").status == 200
    found = box.over(other)
    assert (found["state"], found["step"]) == ("refused", "finished") and box.cards() == [] and fake.effects_by_ref() == {"k": 1}


def test_a_refusal_that_is_final_can_only_be_put_away(opened, fakes):
    """on_4xx: replay. The key is used up, so that `retry` is no choice; putting it away lets its group go on."""
    stripe = fakes("stripe")
    box = opened(stripe=sink(stripe, "stripe", rate="1000/s"))
    form = {"amount": 500, "currency": "eur", "source": "tok_chargeDeclined", "metadata[ref]": "r"}
    head = box.submit("stripe", "declined", request={"path": "/v1/charges", "form": form}, group="g")
    rest = box.submit("stripe", "next", request={"path": "/v1/charges", "form": {**form, "source": "tok_visa"}}, group="g")
    found = box.over(head)
    assert (found["state"], found["step"], found["result"]["status"]) == ("refused", "person", 402)
    card = box.card(head)
    assert (card["kind"], [choice["choice"] for choice in card["choices"]]) == ("refused", ["drop"])
    assert box.resolve(card, "retry").status in (400, 409) and box.get(rest)["state"] == "pending"
    assert box.resolve(card, "drop").status == 200
    assert box.get(head)["step"] == "finished" and box.over(rest)["state"] == "confirmed" and stripe.effects_by_ref() == {"r": 1}


def test_what_may_have_happened_earlier_is_not_a_plain_refusal(opened, fakes):
    """The first attempt may have happened, the second is refused: nobody knows, and a dead letter would say that it did not."""
    fake = fakes("generic-keys")
    box = opened(it=sink(fake, capability="idempotent", key_header="Idempotency-Key", window="24h"))
    fake.script(["act_then_drop", "bad_request"])
    effect = box.submit("it", "k")
    found = box.over(effect)
    assert (found["state"], fake.effects_by_ref()) == ("unknown", {"k": 1}) and box.card(effect)["kind"] == "unknown_outcome"


def test_the_second_word_is_too_late(unknown):
    box, effect, card = unknown()
    assert box.resolve(card, "happened").status == 200
    for choice in ("happened", "did_not", "retry"):
        again = box.resolve(card, choice)
        assert (again.status, again.code) == (409, "not_open")
    assert box.say(effect, "resolve", outcome="did_not").code == "not_open" and box.get(effect)["state"] == "confirmed"


def test_of_many_at_once_one_decides(unknown, house):
    box, effect, card = unknown()
    answers = []

    def say(choice):
        answers.append(house.client(box.daemon).post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": choice}))

    threads = [threading.Thread(target=say, args=(choice,)) for choice in ("happened", "did_not") * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good = [answer for answer in answers if answer.status == 200]
    assert {answer.status for answer in answers} == {200, 409} and len({answer.json["state"] for answer in good}) == 1
    assert box.get(effect)["state"] == good[0].json["state"]
    assert len([row for row in box.decisions(effect) if row["kind"] == "resolve"]) == 1


def test_by_the_command_line(opened, fake):
    box = opened(sink=sink(fake, timeout=HASTY))
    fake.script(["act_then_drop", "drop_before", "drop_before", "bad_request", "act_then_drop"])
    effects = []
    for n in range(5):
        effects.append(box.submit("sink", f"{n}"))
        box.over(effects[-1])
    happened, did_not, retried, dropped, resolved = effects
    listed = cli(box, "exceptions", "ls")
    assert all(box.card(effect)["exception"] in listed for effect in effects) and "dana" in listed
    shown = cli(box, "exceptions", "show", box.card(happened)["exception"])
    assert "unknown_outcome" in shown and "happened" in shown and "It counts as done" in shown
    cli(box, "exceptions", "assign", box.card(happened)["exception"], "--owner", "nina", "--due", "2031-01-02T03:04:05Z")
    card = box.card(happened)
    assert (card["owner"], card["due_at"][:19]) == ("nina", "2031-01-02T03:04:05")
    for effect, choice in ((happened, "happened"), (did_not, "did_not"), (dropped, "drop")):
        cli(box, "exceptions", "resolve", box.card(effect)["exception"], "--choice", choice, "--note", "by hand")
    until(lambda: run_cli("effects", "resolve", retried, "--retry", "--url", f"http://127.0.0.1:{box.daemon.port}").returncode == 0, "a good time", every=0.2)
    cli(box, "effects", "resolve", resolved, "--happened", "--result", '{"id":1}', "--note", "seen")
    assert [box.over(effect)["state"] for effect in effects] == ["confirmed", "refused", "confirmed", "refused", "confirmed"]
    assert box.get(resolved)["result"] == {"id": 1} and box.cards() == []
    assert retried in cli(box, "effects", "ls", "--state", "confirmed") and "confirmed" in cli(box, "effects", "show", retried)
    assert "happened" in cli(box, "exceptions", "ls", "--state", "all")
    again = run_cli("effects", "resolve", resolved, "--did-not", "--url", f"http://127.0.0.1:{box.daemon.port}")
    assert again.returncode != 0 and again.stderr


def test_assigning_and_lists(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    fake.script(["act_then_drop"] * 5)
    effects = []
    for n in range(5):
        effects.append(box.submit("sink", f"{n}"))
        box.over(effects[-1])
    cards = [box.card(effect) for effect in effects]
    assign = lambda card, **fields: box.client.post(f"/v1/exceptions/{card['exception']}/assign", fields)
    moved = assign(cards[4], owner="nina", due="2020-01-01T00:00:00Z")
    assert (moved.status, moved.json["owner"], moved.json["due_at"][:10]) == (200, "nina", "2020-01-01")
    order = [4, 0, 1, 2, 3]  # by due time
    assert [card["exception"] for card in box.cards()] == [cards[n]["exception"] for n in order]
    seen, after = [], ""
    while after is not None:
        page = box.client.get(f"/v1/exceptions?limit=2{after and '&after=' + after}").json
        seen += [card["exception"] for card in page["data"]]
        after = page["page"]["next"]
    assert seen == [cards[n]["exception"] for n in order]
    assert assign(cards[0]).json["field"] == "owner" and assign(cards[0], due="soon").json["field"] == "due"
    assert box.resolve(cards[0], "happened").status == 200 and assign(cards[0], owner="x").status == 404
    assert len(box.cards()) == 4 and len(box.cards("all")) == 5
    assert box.client.get("/v1/exceptions?state=odd").json["field"] == "state"
    assert [row for row in box.decisions(effects[4]) if row["kind"] == "assign"][0]["changes"]["owner"] == "nina"


# Asking first


def asked(fake, provider, **settings):
    return sink(fake, provider, timeout=HASTY, rate="1000/s", calls=provider_calls(provider, settle="0s", **settings))


def slack_message(ref):
    return {"path": "/api/chat.postMessage", "json": {"channel": "C1", "text": ref, "metadata": {"event_type": "lead", "event_payload": {"ref": ref}}}}


def probes_of(box, effect):
    """What the destination said, oldest first, whether it moved the intent or not."""
    evidence = [row["changes"].get("evidence") or row["changes"] for row in box.decisions(effect) if row["changes"]]
    return [found["probe"] for found in evidence if "probe" in found]


def test_found_is_done(opened, fakes, storage):
    slack = fakes("slack")
    box = opened(storage, slack=asked(slack, "slack"))
    slack.script(["act_then_drop"])
    effect = box.submit("slack", "k", request=slack_message("k"))
    found = box.over(effect)
    assert (found["state"], found["result"]["partial"]) == ("confirmed", True) and slack.effects_by_ref() == {"k": 1}
    assert probes_of(box, effect) == ["found"] and box.card(effect) is None
    evidence = [row["changes"]["evidence"] for row in box.decisions(effect) if row["kind"] == "confirm"][0]
    assert evidence["found"][0]["ts"] == slack.effects()[0].id and evidence["status"] == 200


def test_absent_is_sent_again(opened, fakes, storage):
    slack = fakes("slack")
    box = opened(storage, slack=asked(slack, "slack"))
    slack.script(["drop_before"])
    effect = box.submit("slack", "k", request=slack_message("k"))
    found = box.over(effect)
    assert (found["state"], found["tries"]) == ("confirmed", 2) and slack.effects_by_ref() == {"k": 1} and probes_of(box, effect) == ["absent"]
    post, history, again = slack.requests()
    assert history.path.endswith("conversations.history") and post.body == again.body
    assert history.at - post.at >= 1, "it is not asked while the first attempt may still arrive"


def test_a_person_is_asked_when_the_answer_proves_nothing(opened, fakes, storage):
    """Postmark shows a mail to the same person, which may be another one."""
    postmark = fakes("postmark")
    box = opened(storage, postmark=asked(postmark, "postmark", tries=2))
    mail = {"path": "/email", "json": {"From": "a@x.io", "To": "b@y.io", "Subject": "Hi", "TextBody": "Hi", "Metadata": {"ref": "k"}}}
    postmark.script(["act_then_drop"])
    effect = box.submit("postmark", "k", request=mail)
    found = box.over(effect)
    assert (found["state"], found["step"], found["probes"]) == ("unknown", "person", 2) and postmark.effects_by_ref() == {"k": 1}
    assert probes_of(box, effect) == ["unsure", "unsure"]
    shown = [row["changes"]["found"] for row in box.decisions(effect) if row["kind"] == "probe"]
    assert shown[0][0]["MessageID"] == postmark.effects()[0].id
    assert box.resolve(box.card(effect), "happened").status == 200 and box.over(effect)["state"] == "confirmed"


def test_postmark_without_a_mail_is_sent_again(opened, fakes):
    postmark = fakes("postmark")
    box = opened(postmark=asked(postmark, "postmark"))
    mail = {"path": "/email", "json": {"From": "a@x.io", "To": "b@y.io", "Subject": "Hi", "TextBody": "Hi", "Metadata": {"ref": "k"}}}
    postmark.script(["drop_before"])
    effect = box.submit("postmark", "k", request=mail)
    assert box.over(effect)["state"] == "confirmed" and postmark.effects_by_ref() == {"k": 1} and probes_of(box, effect) == ["absent"]


def test_a_question_without_an_answer_is_asked_again(opened, fakes):
    slack = fakes("slack")
    box = opened(slack=asked(slack, "slack", tries=3))
    slack.script(["act_then_drop"])
    slack.script(["500_before", "429:0"], on="read")
    effect = box.submit("slack", "k", request=slack_message("k"))
    assert box.over(effect)["state"] == "confirmed" and probes_of(box, effect) == ["unsure", "unsure", "found"]
    assert slack.effects_by_ref() == {"k": 1}


def test_a_person_may_be_faster_than_the_question(opened, fakes):
    slack = fakes("slack")
    calls = provider_calls("slack", settle="1h")
    box = opened(slack=sink(slack, "slack", rate="1000/s", calls=calls))
    slack.script(["act_then_drop"])
    effect = box.submit("slack", "k", request=slack_message("k"))
    card = until(lambda: box.card(effect), "the card")
    assert (box.get(effect)["state"], box.get(effect)["step"]) == ("unknown", "ask")
    assert box.resolve(card, "happened").status == 200
    assert (box.over(effect)["state"], len(slack.requests())) == ("confirmed", 1)


def test_all_of_it_is_in_the_chain(unknown):
    box, effect, card = unknown()
    box.resolve(card, "happened", note="x")
    kinds = [kind for kind, _ in kinds_of(box, effect)]
    assert [kind for kind in kinds if kind in ("submit", "take", "fail", "raise", "confirm", "resolve")] == ["submit", "take", "fail", "raise", "confirm", "resolve"]
    failed = [row for row in box.decisions(effect) if row["kind"] == "fail"][0]
    assert failed["changes"]["evidence"]["outcome"] == "unknown" and failed["changes"]["evidence"]["because"]
    box.daemon.stop()
    assert run_cli("audit", "verify", "--data", str(box.daemon.data)).returncode == 0
