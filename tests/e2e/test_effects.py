"""The outbox: what is handed in with POST /v1/effects is carried out once, in order, at the pace that the destination allows, and what cannot be is given to
a person. The providers are the fakes of tests/providers."""

import base64
import datetime
import email
import email.policy
import json
import pathlib
import subprocess
import threading
import time

import pytest

import swarm
from outbox import HASTY, QUICK, Outbox, keyed, policy, sink
from plain_server import reply
from semel_process import run_cli, until


# Handing in


def test_it_is_accepted_once_and_carried_out(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    effect = box.submit("sink", "order-1")
    found = box.over(effect)
    assert (found["state"], found["step"], found["status"], found["tries"]) == ("confirmed", "finished", 200, 1)
    assert found["result"]["status"] == 200 and json.loads(found["result"]["body"])["ref"] == "order-1"
    assert box.submit("sink", "order-1", expect=200) == effect
    assert fake.effects_by_ref() == {"order-1": 1}


def test_the_same_key_again_is_the_same_effect(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    fake.script(["act_then_late:release"])
    effect = box.submit("sink", "k")
    fake.wait("held", 1)
    again = box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}})
    assert (again.status, again.json["effect"], again.json["state"], again.headers["Idempotent-Replayed"]) == (200, effect, "sent", "true")
    fake.release()
    box.over(effect)
    again = box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}})
    assert (again.status, again.json["state"], again.json["result"]["status"]) == (200, "confirmed", 200)
    assert fake.effects_by_ref() == {"k": 1}


def test_the_same_key_with_other_contents_is_refused_and_names_the_field(opened, fake, storage):
    box = opened(storage, sink=sink(fake))
    box.over(box.submit("sink", "k", payload={"ref": "k", "amount": 1}))
    other = box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k", "amount": 2}})
    assert (other.status, other.code, other.json["differs"]) == (422, "key_reused", ["amount"])
    assert len(fake.requests()) == 1


def test_many_at_once_with_one_key_are_one(opened, fake, house, storage):
    box = opened(storage, sink=sink(fake))
    answers = []

    def submit():
        answers.append(house.client(box.daemon).post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}}))

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202] and len({answer.json["effect"] for answer in answers}) == 1
    box.over(answers[0].json["effect"])
    assert fake.effects_by_ref() == {"k": 1}


def test_what_cannot_be_sent_is_refused_at_once(opened, fake):
    box = opened(sink=sink(fake), mail={"provider": "smtp", "host": "127.0.0.1", "from": "a@x.io"}, stripe=sink(fake, "stripe"))
    bad = [
        ({"destination": "nowhere", "key": "k", "payload": {}}, "destination"),
        ({"destination": "sink", "key": "k"}, "request"),
        ({"destination": "sink", "key": "k", "payload": {}, "request": {}}, "request"),
        ({"destination": "mail", "key": "k", "payload": {}}, "mail"),
        ({"destination": "mail", "key": "k", "mail": {"to": "b@y.io", "subject": "a\nBcc: x@y.z"}}, "mail"),
        ({"destination": "mail", "key": "k", "mail": {"to": "nobody", "subject": "a"}}, "mail"),
        ({"destination": "sink", "key": "k", "request": {"path": "no/slash"}}, "request.path"),
        ({"destination": "sink", "key": "k", "request": {"method": "GE T"}}, "request.method"),
        ({"destination": "sink", "key": "k", "request": {"headers": {"Host": "x"}}}, "request.headers"),
        ({"destination": "sink", "key": "k", "request": {"headers": {"X-A": "b\r\nX-C: d"}}}, "request.headers"),
        ({"destination": "sink", "key": "k", "request": {"json": {}, "body": ""}}, "request"),
        ({"destination": "sink", "key": "k", "request": {"body_base64": "%%%"}}, "request.body_base64"),
        ({"destination": "sink", "key": "k", "request": {"form": {"a": {}}}}, "request.form"),
        ({"destination": "sink", "key": "k", "request": {"method": "GET"}}, "request"),
        ({"destination": "sink", "key": "k", "payload": {}, "at": "tomorrow"}, "at"),
        ({"destination": "sink", "key": "k", "payload": {}, "at": "2026-11-16T09:00:00Z", "delay_ms": 5}, "at"),
        ({"destination": "sink", "key": "k", "payload": {}, "priority": "urgent"}, "priority"),
    ]
    for body, field in bad:
        answer = box.client.post("/v1/effects", body)
        assert (answer.status, answer.json.get("field")) == (400, field), (body, answer)
    assert box.client.post("/v1/effects", {"destination": "sink", "payload": {}}).code == "key_required"
    assert box.list() == [] and fake.counts()["connections"] == 0


def test_the_exact_bytes_are_sent(opened, fake):
    box = opened(sink=sink(fake))
    text = '{"z": 1.0, "a":  "é\\u0000", "n": 12345678901234567890}'
    answer = box.client.request("POST", "/v1/effects", ('{"destination":"sink","key":"raw","payload":' + text + "}").encode())
    box.over(answer.json["effect"])
    box.over(box.submit("sink", "form", request={"path": "/f?a=b%20c", "form": {"a": "b c&d", "metadata[x]": 1, "é": True}}))
    box.over(box.submit("sink", "put", request={"method": "PUT", "path": "/p", "headers": {"X-Mine": "é", "Accept": "text/plain"}, "body": "plain"}))
    raw, form, put = fake.requests()
    assert (raw.method, raw.target, raw.body, raw.header("Content-Type")) == ("POST", "/", text.encode(), "application/json")
    assert (form.target, form.body, form.header("Content-Type")) == (
        "/f?a=b%20c", b"a=b+c%26d&metadata%5Bx%5D=1&%C3%A9=true", "application/x-www-form-urlencoded")
    assert (put.method, put.body, put.header("Accept"), put.header("Content-Type")) == ("PUT", b"plain", "text/plain", None)
    assert put.header("X-Mine").encode("latin-1").decode() == "é" and put.header("User-Agent").startswith("semel/")
    assert all(request.header("Expect") is None for request in (raw, form, put))


def test_binary_bodies_both_ways(opened, server, storage):
    blob = bytes(range(256)) * 40
    back = bytes(reversed(range(256))) * 40
    place = server(lambda head, body: reply(200, back, b"Content-Type: application/octet-stream"))
    box = opened(storage, sink=sink(place))
    found = box.over(box.submit("sink", "k", request={"path": "/up", "body_base64": base64.b64encode(blob).decode()}))
    assert place.requests[0][2] == blob
    assert base64.b64decode(found["result"]["body_base64"]) == back and ["Content-Type", "application/octet-stream"] in found["result"]["headers"]


@pytest.mark.parametrize("text", [b"\x00\x01 is UTF-8 too", b"caf\xc3\xa9 \xf0\x9f\x99\x82", b"", b'"\\ \x7f \xef\xbf\xbd'])
def test_any_text_comes_back_as_it_was(opened, server, storage, text):
    place = server(lambda head, body: reply(200, text))
    box = opened(storage, sink=sink(place))
    assert box.over(box.submit("sink", "k"))["result"]["body"].encode() == text


def test_a_header_of_any_bytes_does_no_harm(opened, server, storage):
    place = server(lambda head, body: reply(200, b"{}", b"X-Latin: caf\xe9", b"X-Plain: yes"))
    box = opened(storage, sink=sink(place))
    effect = box.submit("sink", "k")
    headers = dict(box.over(effect)["result"]["headers"])
    assert headers["X-Plain"] == "yes" and headers["X-Latin"].startswith("caf")
    assert box.client.post("/v1/effects", {"destination": "sink", "key": "k", "payload": {"ref": "k"}}).json["state"] == "confirmed"


def test_an_answer_that_is_too_large_is_cut_and_still_counts(opened, server):
    place = server(lambda head, body: reply(200, b"x" * 5000))
    box = opened(sink=sink(place, response_max="1KiB"))
    found = box.over(box.submit("sink", "k"))
    assert (found["state"], found["result"]["status"], found["result"]["partial"]) == ("confirmed", 200, True)
    assert len(place.requests) == 1


# When


def test_not_before_its_time(opened, fake):
    box = opened(sink=sink(fake))
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
    delayed, timed = box.submit("sink", "delayed", delay_ms=3000), box.submit("sink", "timed", at=soon)
    submitted = [box.get(effect) for effect in (delayed, timed)]
    assert submitted[1]["due_at"][:19] == soon[:19] and submitted[0]["due_at"] > submitted[0]["created_at"]
    box.over(box.submit("sink", "now"))
    for before in submitted:
        assert box.over(before["effect"])["first_sent_at"] >= before["due_at"]
    assert fake.effects_by_ref() == {"now": 1, "delayed": 1, "timed": 1}


def order_of(fake):
    return [request.json()["ref"] for request in fake.requests()]


def test_the_urgent_ones_go_first(opened, fake, fakes):
    """Also before those that were looked up long ago and wait for their turn. What is handed in later and done has been looked up after them."""
    box = opened(sink=sink(fake, concurrency=1, timeout="5m"), other=sink(fakes()))
    fake.script(["act_then_late:release"])
    box.submit("sink", "first")
    fake.wait("held", 1)
    low = [box.submit("sink", f"low-{n}", priority="low") for n in range(300)]
    box.over(box.submit("other", "after the low ones"))
    normal = [box.submit("sink", f"normal-{n}") for n in range(3)]
    high = [box.submit("sink", f"high-{n}", priority="high") for n in range(3)]
    box.over(box.submit("other", "after all of them"))
    fake.release()
    for effect in low + normal + high:
        box.over(effect)
    order = order_of(fake)
    assert [ref.split("-")[0] for ref in order] == ["first"] + ["high"] * 3 + ["normal"] * 3 + ["low"] * 300


def test_a_group_goes_in_the_order_of_its_commits(opened, fake, storage):
    box = opened(storage, sink=sink(fake, concurrency=8))
    effects = [box.submit("sink", f"{group}-{n}", group=group) for n in range(12) for group in ("a", "b")]
    loose = [box.submit("sink", f"loose-{n}") for n in range(3)]
    for effect in effects + loose:
        assert box.over(effect)["state"] == "confirmed"
    order = order_of(fake)
    for group in ("a", "b"):
        assert [ref for ref in order if ref.startswith(group)] == [f"{group}-{n}" for n in range(12)]


def test_a_head_that_fails_holds_its_group_and_no_other(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["bad_request"])
    head = box.submit("sink", "a-0", group="a")
    rest = [box.submit("sink", f"a-{n}", group="a") for n in (1, 2)]
    assert box.over(head)["step"] == "person"
    box.over(box.submit("sink", "b-0", group="b"))
    box.over(box.submit("sink", "loose"))
    assert [box.get(effect)["state"] for effect in rest] == ["pending", "pending"]
    assert box.resolve(box.card(head), "drop", note="not needed").status == 200
    assert [box.over(effect)["state"] for effect in rest] == ["confirmed", "confirmed"]
    assert order_of(fake) == ["a-0", "b-0", "loose", "a-1", "a-2"]


def test_a_head_that_is_unknown_holds_its_group_until_someone_says(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["act_then_drop"])
    head, rest = box.submit("sink", "a-0", group="a"), box.submit("sink", "a-1", group="a")
    assert box.over(head)["state"] == "unknown"
    box.over(box.submit("sink", "loose"))
    assert box.get(rest)["state"] == "pending"
    assert box.resolve(box.card(head), "happened").status == 200
    assert box.over(rest)["state"] == "confirmed" and order_of(fake) == ["a-0", "loose", "a-1"]


def test_an_ordered_destination_is_one_group(opened, fake):
    box = opened(sink=sink(fake, ordered=True, concurrency=8))
    fake.script(["429:0"])
    effects = [box.submit("sink", f"{n}") for n in range(8)]
    assert {box.over(effect)["state"] for effect in effects} == {"confirmed"}
    assert order_of(fake) == ["0"] + [f"{n}" for n in range(8)]


# Not at all


def test_what_was_not_sent_can_be_cancelled_and_what_was_cannot(opened, fake, storage):
    box = opened(storage, sink=sink(fake, timeout="5m"))
    waiting = box.submit("sink", "waiting", delay_ms=60000)
    cancelled = box.say(waiting, "cancel", note="changed our mind")
    assert (cancelled.status, cancelled.json["state"], cancelled.json["resolution"]) == (200, "refused", "cancelled")
    assert box.over(waiting)["state"] == "refused" and box.card(waiting) is None
    again = box.client.post("/v1/effects", {"destination": "sink", "key": "waiting", "payload": {"ref": "waiting"}})
    assert (again.status, again.code) == (409, "refused")
    fake.script(["act_then_late:release"])
    sent = box.submit("sink", "sent")
    fake.wait("held", 1)
    refused = box.say(sent, "cancel")
    assert (refused.status, refused.code, refused.json["intent"], refused.json["state"]) == (409, "already_sent", sent.replace("eff_", "int_"), "sent")
    fake.release()
    box.over(sent)
    assert (box.say(sent, "cancel").status, box.say(sent, "cancel").code) == (409, "already_sent")
    assert fake.effects_by_ref() == {"sent": 1}


def many_answer(verb, matched=0, done=0, **more):
    return {"dry_run": False, "matched": matched, verb: done, "refused": {}, "left": 0, "more": False, "next": None, **more}


def test_what_may_have_happened_cannot_be_cancelled(opened, fakes):
    fake = fakes("generic-keys")
    box = opened(keyed=keyed(fake, backoff="1h", backoff_max="1h"))
    fake.script(["act_then_drop"])
    effect = box.submit("keyed", "k")
    until(lambda: box.get(effect)["note"], "the lost answer")
    assert box.get(effect)["state"] == "pending" and box.say(effect, "cancel").code == "already_sent"
    assert box.client.post("/v1/effects/cancel", {}).json == many_answer("cancelled", refused={"may_have_happened": 1})


def test_many_are_cancelled_or_sent_again_after_they_were_counted(opened, fake, storage):
    box = opened(storage, one=sink(fake), other=sink(fake), quiet=sink(fake))
    waiting = [box.submit("one", f"w{n}", delay_ms=600000) for n in range(5)] + [box.submit("other", "w5", delay_ms=600000)]
    fake.script(["bad_request"] * 3)
    dead = []
    for n in range(3):  # one after the other, so that no other takes the refusals
        dead.append(box.submit("one", f"d{n}"))
        assert box.over(dead[-1])["step"] == "person"
    many = lambda verb, **fields: box.client.post(f"/v1/effects/{verb}", fields).json
    assert many("cancel", destination="one", step="deliver", dry_run=True) == many_answer("cancelled", 5, dry_run=True, left=5)
    assert many("retry", destination="one", step="person", dry_run=True) == many_answer("retried", 3, dry_run=True, left=3)
    assert all(box.get(effect)["state"] == "pending" for effect in waiting + dead)
    assert many("retry", destination="one", step="person") == many_answer("retried", 3, 3)
    assert {box.over(effect)["state"] for effect in dead} == {"confirmed"}
    assert all(box.card(effect) is None for effect in dead)
    assert many("cancel", destination="one") == many_answer("cancelled", 5, 5)
    assert [box.get(effect)["state"] for effect in waiting] == ["refused"] * 5 + ["pending"]
    assert many("retry", destination="nowhere")["matched"] == 0
    assert sorted(fake.effects_by_ref()) == ["d0", "d1", "d2"]


def submit_many(box, count):
    """Sixteen at once, so that they wait for the disk together."""

    def some(first):
        for n in range(first, count, 16):
            status, body = yield swarm.request("POST", "/v1/effects", {"destination": "sink", "key": f"{n}", "payload": {"ref": f"{n}"}, "delay_ms": 3_600_000})
            assert status == 202, body

    clients = swarm.Swarm()
    for first in range(16):
        clients.add(some(first), box.daemon.port)
    clients.run()


def go_through(box, verb, **fields):
    """All pages, as a client does it."""
    answers, after = [], ""
    while not answers or after:
        answers.append(box.client.post(f"/v1/effects/{verb}", {**fields, "after": after}).json)
        after = answers[-1]["next"]
    return answers


def test_thousands_are_gone_through_page_by_page_and_every_one_is_accounted_for(opened, fake, fakes, storage):
    lossy = fakes("generic-keys")
    box = opened(storage, sink=sink(fake), keyed=keyed(lossy, backoff="1h", backoff_max="1h"))
    fake.script(["429"])
    call = box.client.request("POST", "/to/sink/x", b'{"ref":"called"}', {"Idempotency-Key": "called"})
    assert call.status == 429  # its caller was told so
    lossy.script(["act_then_drop"])
    lost = box.submit("keyed", "lost")
    until(lambda: box.get(lost)["note"], "the lost answer")
    submit_many(box, 2345)
    counted = box.client.post("/v1/effects/retry", {"dry_run": True}).json
    assert counted == many_answer("retried", 2345, dry_run=True, left=2345, refused={"may_have_happened": 1, "caller_decides": 1})
    pages = go_through(box, "cancel", limit=1000)
    assert [(page["cancelled"], page["left"], page["more"]) for page in pages] == [(1000, 1346, True), (1000, 346, True), (346, 0, False)]
    assert [page["refused"] for page in pages] == [{}, {}, {"may_have_happened": 1}]
    assert box.get(lost)["state"] == "pending" and box.client.post("/v1/effects/cancel", {"dry_run": True}).json["matched"] == 0
    assert box.client.post("/v1/effects/cancel", {"after": "eff_nothing"}).status == 400
    assert list(fake.effects_by_ref()) == []


def test_what_was_cut_off_in_the_middle_goes_on(opened, fake, house, storage):
    box, count = opened(storage, sink=sink(fake)), 1500
    submit_many(box, count)
    daemon = box.daemon
    first = box.client.post("/v1/effects/cancel", {"destination": "sink", "limit": 300}).json
    assert (first["cancelled"], first["left"]) == (300, 1200)

    def cut_off():
        try:
            house.client(daemon).post("/v1/effects/cancel", {"destination": "sink", "limit": 10000, "after": first["next"]})
        except OSError:
            pass  # it was

    other = threading.Thread(target=cut_off)
    other.start()
    until(lambda: box.client.post("/v1/effects/cancel", {"dry_run": True}).json["matched"] < 1200, "the next page")
    daemon.kill()
    other.join()
    box = Outbox(house.client(daemon.start()))
    left = box.client.post("/v1/effects/cancel", {"dry_run": True}).json["matched"]
    rest = go_through(box, "cancel", destination="sink", limit=10000)  # from the beginning: what is done is not found again
    assert sum(page["cancelled"] for page in rest) == left and rest[-1]["left"] == 0
    seen, after = [], ""
    while after is not None:
        page = box.client.get(f"/v1/effects?limit=200&after={after}").json
        seen += [(effect["state"], effect["step"]) for effect in page["data"]]
        after = page["page"]["next"]
    assert seen == [("refused", "finished")] * count


def test_the_command_goes_through_all_and_shows_how_far_it_is(opened, fake):
    box = opened(sink=sink(fake))
    submit_many(box, 1100)
    semel = lambda *words: run_cli("effects", *words, "--url", f"http://127.0.0.1:{box.daemon.port}")
    assert semel("cancel", "--all", "--destination", "sink", "--dry-run").stdout == "1100 would be cancelled\n"
    done = semel("cancel", "--all", "--destination", "sink")
    assert (done.returncode, done.stdout) == (0, "1100 cancelled, 0 left\n") and "1000 cancelled, 100 left" in done.stderr
    assert semel("cancel").returncode == 64 and semel("retry", "--all", "--step", "person").stdout == "0 retried, 0 left\n"


# Trying again


def test_when_all_attempts_are_used_up_a_person_gets_it(opened, fake, storage):
    box = opened(storage, sink=sink(fake, attempts=3, owner="nina"))
    fake.script(["429:0"] * 3)
    effect = box.submit("sink", "k")
    found = box.over(effect)
    assert (found["state"], found["step"], found["tries"], found["status"]) == ("pending", "person", 3, 429)
    card = box.card(effect)
    assert (card["kind"], card["owner"], card["state"]) == ("dead_letter", "nina", "open") and card["due_at"] > card["created_at"]
    assert card["reason"] == "all its attempts are used up" and {choice["choice"] for choice in card["choices"]} == {"retry", "drop"}
    assert box.say(effect, "retry").status == 200
    assert box.over(effect)["state"] == "confirmed" and box.card(effect) is None
    assert fake.effects_by_ref() == {"k": 1}
    closed = box.card(effect, "all")
    assert (closed["state"], closed["resolution"]) == ("resolved", "retry")


def test_after_its_deadline_nothing_is_tried(opened, fake):
    box = opened(sink=sink(fake, attempts=1000, backoff="300ms", backoff_max="300ms"))
    fake.script(["429:0"] * 100)
    effect = box.submit("sink", "k", deadline_ms=5000)
    found = box.over(effect)
    assert (found["state"], found["step"]) == ("pending", "person") and box.card(effect)["reason"] == "its time is over"
    before = len(fake.requests())
    assert all(request.status == 429 for request in fake.requests()) and 1 <= before < 50
    fake.reset()
    assert box.say(effect, "retry").status == 200  # a person gives it its time anew
    assert box.over(effect)["state"] == "confirmed"


def test_retry_after_is_honoured(opened, fake):
    box = opened(sink=sink(fake))
    fake.script(["429:3"])
    effect = box.submit("sink", "k")
    box.over(effect)
    first, second = fake.requests()
    assert second.at - first.at >= 3 and fake.effects_by_ref() == {"k": 1}


def test_concurrency_and_rate_are_respected(opened, server):
    open_ = threading.Event()

    def answer(head, body):
        open_.wait(60)
        return reply()

    narrow, slow = server(answer), server(lambda head, body: reply())
    box = opened(narrow=sink(narrow, concurrency=3, timeout="5m"), slow=sink(slow, rate="10/s", burst=2, timeout="5m"))
    begun = time.monotonic()
    effects = [box.submit(name, f"{n}") for n in range(24) for name in ("narrow", "slow")]
    until(lambda: narrow.most == 3, "as many as may be under way")
    open_.set()
    for effect in effects:
        assert box.over(effect)["state"] == "confirmed"
    assert narrow.most == 3
    assert max(at for at, _, _ in slow.requests) - begun >= (24 - 2) / 10


def test_the_breaker_leaves_a_failing_destination_alone(opened, fake):
    box = opened(sink=sink(fake, attempts=1000, backoff="10ms", backoff_max="20ms"))
    fake.down()
    effects = [box.submit("sink", f"{n}") for n in range(3)]

    def open_breakers():
        text = box.client.get("/metrics").raw.decode()
        return [line for line in text.splitlines() if "breaker" in line and not line.startswith("#") and line.endswith(" 1")]

    until(open_breakers, "an open breaker in the metrics")
    fake.up()
    for effect in effects:
        assert box.over(effect)["state"] == "confirmed"
    assert not open_breakers() and fake.effects_by_ref() == {"0": 1, "1": 1, "2": 1}


def test_a_redirect_is_not_followed(opened, server):
    place = server(lambda head, body: reply(307, b"", b"Location: http://127.0.0.1:1/elsewhere"))
    box = opened(sink=sink(place))
    effect = box.submit("sink", "k")
    found = box.over(effect)
    assert (found["step"], found["status"], len(place.requests)) == ("person", 307, 1) and "redirect" in found["note"]


def test_a_private_address_is_refused_unless_allowed(opened, fake):
    box = opened(sink={"provider": "http", "url": f"https://127.0.0.1:{fake.port}", "attempts": 2, "backoff": "10ms"})
    effect = box.submit("sink", "k")
    found = box.over(effect)
    assert (found["state"], found["step"]) == ("pending", "person") and fake.counts()["connections"] == 0
    assert "127.0.0.1" in found["note"] and "allow_private" in found["note"], found["note"]


# Surviving


def test_what_was_accepted_is_delivered_after_a_restart(opened, fake, storage):
    box = opened(storage, sink=sink(fake, attempts=1000))
    fake.down()
    effects = [box.submit("sink", f"{n}") for n in range(20)]
    box.daemon.stop()
    fake.up()
    box.daemon.start()
    for effect in effects:
        assert box.over(effect)["state"] == "confirmed"
    assert fake.effects_by_ref() == {f"{n}": 1 for n in range(20)}
    if storage == "sqlite":
        box.daemon.stop()
        assert run_cli("audit", "verify", "--data", str(box.daemon.data)).returncode == 0


def test_a_calm_stop_waits_for_the_answer(opened, fake):
    box = opened(sink=sink(fake, timeout="5m"))
    fake.script(["act_then_late:2"])
    effect = box.submit("sink", "k")
    fake.wait("effects", 1)
    assert box.daemon.stop() == 0
    box.daemon.start()
    found = box.over(effect)
    assert (found["state"], found["result"]["status"]) == ("confirmed", 200) and fake.effects_by_ref() == {"k": 1}


def two_nodes(house, destinations):
    first = house.start("postgres", policy=policy(destinations))
    second = house.start(db=first.db)
    return first, second, [Outbox(house.client(node)) for node in (first, second)]


def test_two_nodes_on_one_database_do_each_effect_once(house, fake):
    _, _, boxes = two_nodes(house, {"sink": sink(fake, concurrency=16)})
    effects = [boxes[n % 2].submit("sink", f"{n}") for n in range(120)]
    assert boxes[1].submit("sink", "0", expect=200) == effects[0]
    for n, effect in enumerate(effects):
        assert boxes[(n + 1) % 2].over(effect)["state"] == "confirmed"
    assert fake.effects_by_ref() == {f"{n}": 1 for n in range(120)}


def test_the_other_node_takes_over_what_a_dead_one_had(house, fakes):
    fake = fakes("generic-keys")
    first, second, boxes = two_nodes(house, {"keyed": keyed(fake, timeout=HASTY), "plain": sink(fake, timeout=HASTY)})
    second.kill()
    fake.script(["act_then_hang", "act_then_hang"])
    asked, told = boxes[0].submit("keyed", "asked"), boxes[0].submit("plain", "told")
    fake.wait("effects", 2)
    first.kill()
    second.start()
    box = Outbox(house.client(second))
    assert box.over(asked)["state"] == "confirmed"  # sent again with the same key, after the lease
    found = box.over(told)
    assert (found["state"], box.card(told)["owner"]) == ("unknown", "dana")
    assert fake.effects_by_ref() == {"asked": 1, "told": 1}


def test_a_group_keeps_its_order_over_two_nodes_one_of_which_is_killed(house, fakes):
    fake = fakes("generic-keys")
    first, second, boxes = two_nodes(house, {"keyed": keyed(fake, concurrency=8, timeout=HASTY)})
    groups, effects = ("a", "b", "c"), []
    for n in range(18):
        if n == 6:
            first.kill()  # whatever it has under way; the other goes on after its leases
        if n == 12:
            boxes[0] = Outbox(house.client(first.start()))
        box = boxes[1] if 6 <= n < 12 else boxes[n % 2]
        effects += [box.submit("keyed", f"{group}-{n:02}", group=group) for group in groups]
    assert {boxes[1].over(effect)["state"] for effect in effects} == {"confirmed"}
    order = order_of(fake)
    for group in groups:
        sent = [ref for ref in order if ref.startswith(group)]  # one that was cut off is sent again, before the next
        assert sent == sorted(sent) and sorted(set(sent)) == [f"{group}-{n:02}" for n in range(18)]
    assert set(fake.effects_by_ref().values()) == {1}


# Without a destination


def test_effects_of_a_destination_that_was_taken_out_are_not_forgotten(opened, fake, storage):
    rules = {"sink": sink(fake, attempts=1000), "late": sink(fake, attempts=1000, deadline="5s"), "other": sink(fake)}
    box = opened(storage, **rules)
    fake.down()
    waits, late = box.submit("sink", "waits"), box.submit("late", "late")
    left = policy({"other": rules["other"]})
    applied = box.client.request("PUT", "/v1/policy", left.encode())
    assert (applied.status, applied.json["stranded"]) == (200, 2)
    assert [box.get(effect)["stranded"] for effect in (waits, late)] == [True, True]
    assert {effect["stranded"] for effect in box.list(destination="sink")} == {True}
    card = until(lambda: box.card(late), "the card of an effect whose time is over")
    assert (card["kind"], card["owner"], card["reason"]) == (
        "dead_letter", "dana", "its time is over, and its destination is not in the policy")
    assert (box.get(late)["step"], box.get(late)["stranded"]) == ("person", False)
    until(lambda: box.client.get("/readyz").json["effects_stranded"] == 1, "the count of what is stranded")
    assert b'semel_effects_stranded{destination="sink"} 1' in box.client.get("/metrics").raw
    box.daemon.stop()
    pathlib.Path(box.daemon.policy).write_text(left)
    box.daemon.start()  # a process that has never known the destination
    until(lambda: box.client.get("/readyz").json["effects_stranded"] == 1, "the count after a restart")
    assert box.get(waits)["state"] == "pending"
    fake.up()
    applied = box.client.request("PUT", "/v1/policy", policy(rules).encode())
    assert applied.json["stranded"] == 0 and box.over(waits)["state"] == "confirmed"
    until(lambda: box.client.get("/readyz").json["effects_stranded"] == 0, "the end of the count")
    assert fake.effects_by_ref() == {"waits": 1}


def test_what_may_have_happened_at_a_destination_that_was_taken_out_is_unknown(opened, fakes):
    fake = fakes("generic-keys")
    box = opened(keyed=keyed(fake, deadline="5s", backoff="1h", backoff_max="1h"))
    fake.script(["act_then_drop"])
    effect = box.submit("keyed", "k")
    until(lambda: box.get(effect)["note"], "the lost answer")
    box.client.policy(policy({}))
    found = box.over(effect)
    assert (found["state"], found["step"], box.card(effect)["kind"]) == ("unknown", "person", "unknown_outcome")
    assert fake.effects_by_ref() == {"k": 1} and len(fake.requests()) == 1


def test_the_commands_say_what_is_stranded(opened, fake, tmp_path):
    box = opened(sink=sink(fake, attempts=1000))
    fake.down()
    effect = box.submit("sink", "k")
    (tmp_path / "bare.yaml").write_text(policy({}))
    where = ("--url", f"http://127.0.0.1:{box.daemon.port}")
    applied = run_cli("policy", "apply", str(tmp_path / "bare.yaml"), *where)
    assert applied.returncode == 0 and "1 effects wait for a destination that this policy does not have" in applied.stderr
    assert "sink (not in the policy)" in run_cli("effects", "ls", *where).stdout
    assert "true" in next(line for line in run_cli("effects", "show", effect, *where).stdout.splitlines() if line.startswith("stranded"))
    until(lambda: "1 effects wait" in run_cli("status", *where).stdout, "what the status says")


# Mail


def test_a_mail_is_one_mail(opened, fakes, storage):
    smtp = fakes("smtp")
    box = opened(storage, mail=sink(smtp, "smtp"))
    smtp.script(["429", "reply:DOT:451"])
    effect = box.submit("mail", "m", mail={
        "to": ["Bo <b@y.io>", '"Last, First" <c@y.io>'], "cc": "d@y.io", "bcc": ["e@y.io", "f@y.io"], "reply_to": "r@x.io",
        "subject": "Grüße an alle, 你好", "text": "Zeile\n.Punkt\nÄ", "html": "<p>Ä</p>", "headers": {"X-Ref": "m"}})
    assert box.over(effect)["state"] == "confirmed"
    first, second, third = smtp.requests()
    assert third.recipients == ["b@y.io", "c@y.io", "d@y.io", "e@y.io", "f@y.io"] and third.sender == "a@x.io"
    message = email.message_from_bytes(third.data, policy=email.policy.default)
    assert str(message["Subject"]) == "Grüße an alle, 你好" and message["Reply-To"] == "r@x.io" and message["Date"]
    assert message["Bcc"] is None and b"e@y.io" not in third.data and b"f@y.io" not in third.data
    assert message["Cc"] == "d@y.io" and "Last, First" in str(message["To"])
    parts = {part.get_content_type(): part.get_content() for part in message.iter_parts()}
    assert parts["text/plain"].replace("\r\n", "\n") == "Zeile\n.Punkt\nÄ" and parts["text/html"] == "<p>Ä</p>"
    assert second.data == third.data and message["Message-ID"]  # the same mail to the byte, so the same Message-ID
    assert list(smtp.by_message_id().values()) == [1] and set(smtp.by_recipient().values()) == {1}


def test_a_long_subject_in_any_script_is_readable(opened, fakes):
    smtp = fakes("smtp")
    box = opened(mail=sink(smtp, "smtp"))
    subject = "Ω≈ç√∫ 你好 " * 12
    box.over(box.submit("mail", "m", mail={"to": ['Jörg "der" Bär <b@y.io>', "c@y.io"], "from": '"Ärger, Ö" <a@x.io>', "subject": subject.strip(), "text": "x"}))
    data = smtp.requests()[0].data
    assert smtp.requests()[0].recipients == ["b@y.io", "c@y.io"] and all(byte < 128 for byte in data)
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert [address.display_name for address in message["To"].addresses + message["From"].addresses] == ['Jörg "der" Bär', "", "Ärger, Ö"]
    assert str(email.message_from_bytes(data, policy=email.policy.default)["Subject"]) == subject.strip()
    assert max(len(line) for line in data.split(b"\r\n")) <= 998
    words = [line for line in data.split(b"\r\n") if b"=?" in line]
    assert words and all(len(line) <= 78 for line in words), "RFC 2047: an encoded word has at most 75 characters"


def test_a_mail_that_is_refused_goes_to_a_person_and_one_that_is_lost_is_unknown(opened, fakes):
    smtp = fakes("smtp")
    box = opened(mail=sink(smtp, "smtp"))
    smtp.script(["bad_request"])
    refused = box.submit("mail", "refused", mail={"to": "b@y.io", "subject": "Hi", "text": "Hi"})
    assert (box.over(refused)["step"], box.card(refused)["kind"]) == ("person", "dead_letter")
    smtp.script(["act_then_drop"])
    lost = box.submit("mail", "lost", mail={"to": "b@y.io", "subject": "Hi", "text": "Hi"})
    assert (box.over(lost)["state"], box.card(lost)["kind"]) == ("unknown", "unknown_outcome")
    assert len(smtp.effects()) == 1


def test_a_mail_server_that_does_not_answer_holds_up_only_its_own_destination(opened, fake, fakes, storage):
    slow, quick = fakes("smtp"), fakes("smtp")
    box = opened(storage, sink=sink(fake), slow=sink(slow, "smtp", timeout="5m", concurrency=2), quick=sink(quick, "smtp"))
    slow.script(["act_then_late:release", "act_then_late:release"])
    mail = {"to": "b@y.io", "subject": "Hi", "text": "Hi"}
    held = [box.submit("slow", f"held-{n}", mail=mail) for n in range(3)]
    slow.wait("held", 2)  # as many as it may have at a time; the third waits behind them
    for n in range(5):
        assert box.over(box.submit("sink", f"web-{n}"))["state"] == "confirmed"
        assert box.over(box.submit("quick", f"mail-{n}", mail=mail))["state"] == "confirmed"
    assert [box.get(effect)["state"] for effect in held] == ["sent", "sent", "pending"] and len(slow.effects()) == 2
    slow.release()
    assert {box.over(effect)["state"] for effect in held} == {"confirmed"}
    assert len(slow.effects()) == 3 and len(quick.effects()) == 5


def test_a_mail_under_way_does_not_keep_semel_from_stopping(opened, fakes, storage):
    smtp = fakes("smtp")
    box = opened(storage, mail=sink(smtp, "smtp", timeout="5m"))
    smtp.script(["act_then_hang"])
    effect = box.submit("mail", "m", mail={"to": "b@y.io", "subject": "Hi", "text": "Hi"})
    smtp.wait("effects", 1)
    assert box.daemon.stop() == 0
    box.daemon.start()
    assert (box.over(effect)["state"], box.card(effect)["kind"]) == ("unknown", "unknown_outcome")
    assert len(smtp.effects()) == 1


def test_a_mail_server_with_a_password(opened, fakes, monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "pw-7ab31")
    smtp = fakes("smtp", token="pw-7ab31")
    box = opened(mail=sink(smtp, "smtp", user="mailer", secret="env:MAIL_PASSWORD"))
    assert box.over(box.submit("mail", "m", mail={"to": "b@y.io", "subject": "Hi", "text": "Hi"}))["state"] == "confirmed"


# Commands


@pytest.fixture
def script(tmp_path):
    def make(text, name="script.sh"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return {"provider": "command", "command": [str(path), "an argument; $HOME"], **{name: value for name, value in QUICK.items() if name != "allow_private"}}

    return make


def test_a_command_gets_its_input_and_a_key_and_says_how_it_went(opened, script, tmp_path):
    log = tmp_path / "log"
    box = opened(
        good=script(f'cat >> {log}; echo "arg=$1 mine=$SEMEL_MINE" >> {log}; echo out; echo err >&2'),
        later=script(f'echo later >> {log}; test -e {tmp_path}/open || {{ touch {tmp_path}/open; exit 75; }}', "later.sh"),
        refused=script("exit 127", "refused.sh"),
        odd=script("exit 3", "odd.sh"),
        signalled=script("kill -9 $$", "signalled.sh"),
        missing={"provider": "command", "command": ["/nowhere/at/all"], "attempts": 2, "backoff": "10ms"},
    )
    good = box.over(box.submit("good", "k", request={"body": "stdin!\n", "headers": {"SEMEL_MINE": "yes"}}))
    assert (good["state"], good["status"], good["result"]["body"]) == ("confirmed", 0, "out\nerr\n")
    assert log.read_text() == "stdin!\narg=an argument; $HOME mine=yes\n"
    assert box.over(box.submit("later", "k"))["state"] == "confirmed" and log.read_text().count("later") == 2
    found = box.over(box.submit("refused", "k"))
    assert (found["state"], found["step"], found["status"]) == ("pending", "person", 127)
    found = box.over(box.submit("odd", "k"))
    assert (found["state"], found["status"]) == ("unknown", 3)
    found = box.over(box.submit("signalled", "k"))
    assert (found["state"], found["status"]) == ("unknown", 137)
    found = box.over(box.submit("missing", "k"))
    assert (found["state"], found["step"]) == ("pending", "person") and "/nowhere/at/all" in found["note"]


def test_whoever_asks_does_not_choose_the_environment_of_a_command(opened, script):
    box = opened(it=script("true"))
    answer = box.client.post("/v1/effects", {"destination": "it", "key": "k", "request": {"headers": {"LD_PRELOAD": "/tmp/x.so"}}})
    assert (answer.status, answer.json["field"]) == (400, "request.headers")


def test_a_command_has_the_key_in_its_environment(opened, script, tmp_path):
    log = tmp_path / "log"
    box = opened(it=script(f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; echo $SEMEL_KEY >> {log}; exit 75; }}; echo $SEMEL_KEY >> {log}"))
    box.over(box.submit("it", "k"))
    first, second = log.read_text().split()
    assert first == second and first.startswith("sml-")


def test_a_command_that_does_not_end_is_killed_and_unknown(opened, script, tmp_path):
    box = opened(it={**script(f"sleep 300 & echo $! > {tmp_path}/child; sleep 300"), "timeout": HASTY})
    effect = box.submit("it", "k")
    found = box.over(effect)
    assert (found["state"], box.card(effect)["owner"]) == ("unknown", "dana")
    child = int((tmp_path / "child").read_text())
    until(lambda: subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True).stdout.strip()[:1] in ("", "Z"), "the end of its child")


# Secrets


SECRETS = {"env": "sk-env-91d2f7", "file": "sk-file-77aa01", "stored": "sk-stored-5c3e9b"}


def test_secrets_reach_the_provider_and_nothing_else(opened, fakes, house, monkeypatch, tmp_path, storage):
    fake = fakes()
    monkeypatch.setenv("SINK_KEY", SECRETS["env"])
    (tmp_path / "secret").write_text(SECRETS["file"] + "\n")
    (tmp_path / "secret").chmod(0o600)
    references = {"env": "env:SINK_KEY", "file": f"file:{tmp_path}/secret", "stored": "secret:SINK"}
    (tmp_path / "master").write_text(base64.b64encode(bytes(range(32))).decode())
    (tmp_path / "master").chmod(0o400)
    box = opened(storage, options=["--master-key", str(tmp_path / "master")], missing=sink(fake, secret="secret:NOBODY", attempts=1), **{name: sink(fake, secret=text) for name, text in references.items()},
                 header=sink(fake, secret="env:SINK_KEY", auth="header", auth_header="Api-Key", auth_prefix="Token "))
    stored = box.client.request("PUT", "/v1/secrets/SINK", {"value": SECRETS["stored"]})
    assert stored.status in (200, 201), stored
    seen = [stored.raw]
    for name in (*references, "header"):
        effect = box.submit(name, "k", payload={"ref": name})
        assert box.over(effect)["state"] == "confirmed"
        seen += [json.dumps(box.get(effect)).encode(), json.dumps(box.decisions(effect)).encode()]
    sent = {request.json()["ref"]: request for request in fake.requests()}
    assert {name: sent[name].header("Authorization") for name in references} == {name: f"Bearer {SECRETS[name]}" for name in references}
    assert (sent["header"].header("Api-Key"), sent["header"].header("Authorization")) == (f"Token {SECRETS['env']}", None)
    missing = box.submit("missing", "k")
    assert box.over(missing)["step"] == "person" and "NOBODY" in box.get(missing)["note"] and len(fake.requests()) == 4
    seen += [box.client.get(path).raw for path in ("/v1/policy", "/v1/secrets", "/v1/effects", "/v1/intents", "/v1/exceptions?state=all", "/metrics")]
    box.daemon.stop()
    seen += [path.read_bytes() for path in box.daemon.data.rglob("*") if path.is_file()] + [box.daemon.said().encode()]
    for secret in SECRETS.values():
        for text in (secret, base64.b64encode(secret.encode()).decode()):
            assert not any(text.encode() in place for place in seen), text


def test_lists_can_be_filtered_and_paged(opened, fake):
    box = opened(one=sink(fake), other=sink(fake))
    done = [box.submit("one", f"{n}") for n in range(3)]
    waiting = [box.submit("other", f"{n}", delay_ms=600000) for n in range(4)]
    for effect in done:
        box.over(effect)
    ids = lambda found: [row["effect"] for row in found]
    assert ids(box.list()) == list(reversed(done + waiting))
    assert ids(box.list(destination="one")) == list(reversed(done)) and ids(box.list(state="pending")) == list(reversed(waiting))
    assert ids(box.list(step="finished")) == list(reversed(done)) and box.list(state="unknown") == []
    first = box.client.get("/v1/effects?limit=3").json
    second = box.client.get(f"/v1/effects?limit=3&after={first['page']['next']}").json
    last = box.client.get(f"/v1/effects?limit=3&after={second['page']['next']}").json
    assert ids(first["data"] + second["data"] + last["data"]) == ids(box.list()) and last["page"]["next"] is None
    assert box.client.get("/v1/effects?state=odd").json["field"] == "state" and box.client.get("/v1/effects/eff_0").status in (400, 404)
