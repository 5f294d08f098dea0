"""One message, one answer, whatever the channel. Messages come in by `/in/…`, are forwarded to an agent, and the agent replies through `/v1/effects` with the thread and
the action, to a sink that counts. What the agent says differs each time, as with a language model: only the lock keeps it from answering twice."""

import hashlib
import hmac
import itertools
import json
import threading

import pytest

from http_client import Client
from plain_server import Server, reply
from semel_process import until
from test_clock import LIBRARY, WITHOUT, Clock

SECRET = "hook_secret"
QUESTION = "What does a weekly coaching session cost, and when could we begin? I would prefer mornings."
FOLLOW_UP = "And would you also take my brother along on Fridays, for the same price?"
QUICK = "allow_private: true, timeout: {timeout}, backoff: 50ms, backoff_max: 200ms, attempts: 40, capability: idempotent, key_header: Idempotency-Key, window: 24h"
POLICY = """version: 1
owner: dana
destinations:
  agent: {{provider: http, url: "{agent}", {quick}}}
  replies: {{provider: http, url: "{sink}", {quick}}}
sources:
  form: {{preset: json, verify: none, forward: agent, window: 24h, across: 24h}}
  chat: {{preset: json, verify: none, forward: agent, window: 24h}}
  mail: {{preset: postmark, verify: none, forward: agent}}
  platform1: {{preset: whatsapp, secret: env:HOOK_SECRET, verify_token: env:HOOK_SECRET, forward: agent}}
  platform2: {{preset: whatsapp, secret: env:HOOK_SECRET, verify_token: env:HOOK_SECRET, forward: agent}}
"""


def header(head, name):
    for line in head.decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    return None


class Agent:
    """Answers what is forwarded to it, in words that are never the same twice, unless told to be passive. It knows nothing of what it answered before."""

    def __init__(self, daemon_port):
        self.port_of = daemon_port
        self.passive = False
        self.slow = []  # seconds to think for, one for each of the next forwards
        self.words = itertools.count()
        self.seen, self.said = [], []
        self.lock = threading.Lock()
        self.server = Server(self.handle)

    def handle(self, head, body):
        about = {"event": header(head, "Semel-Event-Id"), "thread": header(head, "Semel-Thread"), "epoch": int(header(head, "Semel-Epoch") or 0)}
        with self.lock:
            self.seen.append(about)
            pause = self.slow.pop(0) if self.slow else 0
        if pause:
            threading.Event().wait(pause)
        if not self.passive and self.answer(about).status not in (200, 202):
            return reply(503)
        return reply(200)

    def answer(self, about, **more):
        with self.lock:
            text = f"reply number {next(self.words)}"
        client = Client(self.port_of())
        said = client.post("/v1/effects", {"destination": "replies", "thread": about["thread"], "epoch": about["epoch"], "action": "reply",
                                           "payload": {"text": text, "thread": about["thread"]}, **more})
        client.close()
        with self.lock:
            self.said.append(said)
        return said

    def events(self):
        return {about["event"] for about in self.seen}


class World:
    def __init__(self, house, storage="sqlite", timeout="60s", **options):
        self.sink = Server(lambda head, body: reply(200))
        self.agent = Agent(lambda: self.daemon.port)
        policy = POLICY.format(agent=self.agent.server.url, sink=self.sink.url, quick=QUICK.format(timeout=timeout))
        self.daemon = house.start(storage, policy=policy, **options)
        self.client = house.client(self.daemon)

    def post(self, source, body, headers=None):
        answer = self.client.request("POST", f"/in/{source}", body, {"Content-Type": "application/json", **(headers or {})})
        assert answer.status == 200, answer
        return answer

    def say(self, source, text, email="jon@acme.io", **headers):
        return self.post(source, json.dumps({"email": email, "message": text}).encode(), headers)

    def decided(self, count):
        """All that came in was decided, and what was forwarded is over."""
        until(lambda: sum(self.verdicts().values()) >= count, f"{count} decisions")
        until(lambda: all(e["state"] == "confirmed" for e in self.effects()), "the end of all effects")

    def verdicts(self):
        found = {}
        for decision in self.client.get("/v1/decisions?limit=200").json["data"]:
            if decision["kind"] in ("accepted", "suppressed", "held", "ignored"):
                found[decision["kind"]] = found.get(decision["kind"], 0) + 1
        return found

    def effects(self):
        return self.client.get("/v1/effects?limit=200").json["data"]

    def replies(self):
        """By key: the sink recognises our keys, as a provider does."""
        return {header(head, "Idempotency-Key"): json.loads(body) for _, head, body in self.sink.requests}

    def claim(self, expect, **fields):
        answer = self.client.post("/v1/claims", {"action": "reply", **fields})
        assert answer.status == expect, answer
        return answer.json

    def stop(self):
        self.sink.stop()
        self.agent.server.stop()


@pytest.fixture
def world(house, storage, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    made = World(house, storage)
    yield made
    made.stop()


@pytest.fixture
def timed(house, tmp_path, monkeypatch):
    """A world whose wall clock the test moves."""
    if LIBRARY is None:
        pytest.skip(WITHOUT)
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    clock = Clock(tmp_path / "clock")
    made = World(house, wrapper=clock.wrapper())
    made.clock = clock
    yield made
    made.stop()


# ---- the first seed's story


def test_the_same_message_again_after_forty_minutes_is_answered_once(timed):
    timed.say("form", QUESTION)
    timed.decided(1)
    timed.clock.set(40 * 60)
    timed.say("form", QUESTION)
    timed.decided(2)
    assert timed.verdicts() == {"accepted": 1, "suppressed": 1}
    assert len(timed.agent.events()) == 1 and len(timed.replies()) == 1


def test_two_equal_questions_a_week_apart_get_two_answers(timed):
    timed.say("form", QUESTION)
    timed.decided(1)
    timed.clock.set(7 * 24 * 3600)
    timed.say("form", QUESTION)
    timed.decided(2)
    assert timed.verdicts() == {"accepted": 2}
    assert len(timed.replies()) == 2
    assert sorted(about["epoch"] for about in timed.agent.seen) == [1, 2]


def test_a_form_and_its_notification_mail_are_one_message(world):
    world.say("form", QUESTION)
    world.decided(1)
    mail = {"FromFull": {"Email": "forms@builder.example", "Name": "Forms"}, "From": "forms@builder.example", "Subject": "New submission", "MessageID": "n-1",
            "Date": "Mon, 16 Nov 2026 06:00:00 +0000", "To": "us@example.com",
            "Headers": [{"Name": "Message-ID", "Value": "<n1@builder.example>"}],
            "TextBody": f"Your form has a new submission.\n\nE-mail: jon@acme.io\nMessage: {QUESTION}\n\nReply to this mail to answer.\n"}
    world.post("mail", json.dumps(mail).encode())
    world.decided(2)
    assert world.verdicts() == {"accepted": 1, "suppressed": 1}
    assert len(world.replies()) == 1


def whatsapp(wamid, text, number):
    value = {"messaging_product": "whatsapp", "metadata": {"display_phone_number": "15551304520", "phone_number_id": number},
             "contacts": [{"profile": {"name": "Jon"}, "wa_id": "447900012345"}],
             "messages": [{"from": "447900012345", "id": wamid, "timestamp": "1706955513", "type": "text", "text": {"body": text}}]}
    body = json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "210", "changes": [{"field": "messages", "value": value}]}]}).encode()
    return body, {"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}


def test_one_whatsapp_message_through_two_platforms_is_answered_once(world):
    world.post("platform1", *whatsapp("wamid.1", QUESTION, "p1"))
    world.post("platform2", *whatsapp("wamid.1", QUESTION, "p2"))
    world.decided(2)
    assert world.verdicts() == {"accepted": 1, "suppressed": 1}
    assert len(world.replies()) == 1


def test_a_webhook_that_is_retried_during_a_slow_answer_is_answered_once(house, storage, monkeypatch):
    """The sender retries, and the forward runs into its own time-out and is tried again: two agents think about the same question at the same time."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    world = World(house, storage, timeout="1s")
    world.agent.slow = [3]
    world.say("form", QUESTION, **{"Idempotency-Key": "d-1"})
    until(lambda: world.agent.seen, "the agent to begin")
    world.say("form", QUESTION, **{"Idempotency-Key": "d-1"})
    until(lambda: len(world.agent.said) >= 2, "two agents to have answered")
    world.decided(2)
    assert world.verdicts() == {"accepted": 1, "suppressed": 1}
    assert len(world.agent.seen) >= 2 and len(world.agent.events()) == 1
    assert len({said.json["effect"] for said in world.agent.said}) == 1
    assert len(world.replies()) == 1
    world.stop()


def test_a_follow_up_question_in_the_same_thread_is_answered(world):
    world.say("chat", QUESTION)
    world.decided(1)
    world.say("chat", FOLLOW_UP)
    world.decided(2)
    assert len({about["thread"] for about in world.agent.seen}) == 1
    assert [about["epoch"] for about in world.agent.seen] == [1, 2]
    assert len(world.replies()) == 2


def test_what_is_said_before_the_agent_acted_shares_one_answer(world):
    world.agent.passive = True
    world.say("chat", "Hi")
    world.say("chat", QUESTION)
    world.decided(2)
    assert [about["epoch"] for about in world.agent.seen] == [1, 1]
    said = [world.agent.answer(about) for about in world.agent.seen]
    assert [answer.status for answer in said] == [202, 200]
    assert said[0].json["effect"] == said[1].json["effect"]
    world.decided(2)
    assert len(world.replies()) == 1


def test_of_two_agents_that_answer_one_event_at_the_same_time_one_does(world):
    world.agent.passive = True
    world.say("chat", QUESTION)
    world.decided(1)
    event = world.agent.seen[0]["event"]
    gate, answers = threading.Barrier(8), []

    def agent(number):
        client = Client(world.daemon.port)
        gate.wait()
        if number % 2 == 0:
            body = {"destination": "replies", "event": event, "action": "reply", "payload": {"text": f"by {number}"}}
            answers.append(client.post("/v1/effects", body))
        else:
            answers.append(client.post("/v1/claims", {"event": event, "action": "reply", "two_phase": True}))
        client.close()

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    began = [answer for answer in answers if answer.status in (201, 202)]
    assert len(began) == 1, answers
    intents = world.client.get("/v1/intents?workflow=answers").json["data"]
    assert len(intents) == 1 and intents[0]["key"].endswith(":1:reply")


def test_an_agent_killed_between_claim_and_confirm_leaves_a_card_and_no_second_answer(world):
    world.agent.passive = True
    world.say("chat", QUESTION)
    world.decided(1)
    first = world.agent.seen[0]
    held = world.claim(201, thread=first["thread"], epoch=first["epoch"], lease_ms=300)
    card = until(lambda: next((c for c in world.client.get("/v1/exceptions").json["data"] if c["intent"] == held["intent"]), None), "the card")
    assert world.claim(409, thread=first["thread"], epoch=1)["code"] == "outcome_unknown"
    assert world.agent.answer(first).json["code"] == "outcome_unknown"
    world.say("chat", FOLLOW_UP)
    world.decided(2)
    second = world.agent.seen[1]
    assert (second["thread"], second["epoch"]) == (first["thread"], 2)
    waits = world.claim(409, thread=second["thread"], epoch=2)
    assert waits["code"] == "outcome_unknown" and waits["waits_for"] == held["intent"] and "intent" not in waits
    resolved = world.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": "happened"})
    assert resolved.status == 200, resolved
    assert world.claim(200, thread=first["thread"], epoch=1)["answer"] == "replay"
    assert world.agent.answer(second).status == 202
    until(lambda: len(world.replies()) == 1, "the reply to the second question")


# ---- the lock


def test_an_answer_waits_for_the_answer_to_the_question_before(world):
    world.agent.passive = True
    world.say("chat", QUESTION)
    world.decided(1)
    first = world.agent.seen[0]
    queued = world.agent.answer(first, delay_ms=8000)
    assert queued.status == 202
    assert world.claim(409, thread=first["thread"], epoch=1)["code"] == "in_progress"  # it is in the queue: nobody else may answer
    world.say("chat", FOLLOW_UP)
    until(lambda: len(world.agent.seen) == 2, "the follow-up")
    second = world.agent.seen[1]
    assert second["epoch"] == 2
    refused = world.agent.answer(second)
    assert refused.status == 409 and refused.code == "in_progress" and refused.json["waits_for"] == queued.json["intent"]
    assert int(refused.headers["Retry-After"]) >= 1
    waited = world.claim(201, thread=second["thread"], epoch=2, wait_ms=120_000)
    assert waited["answer"] == "proceed" and len(world.replies()) == 1
    assert world.claim(201, thread=second["thread"], epoch=2, action="note")["answer"] == "proceed"  # another action waits for nobody


def test_two_nodes_begin_one_answer_at_a_time(house):
    """Each node claims the answer to another question of one conversation at the same moment: one goes ahead, the other one is told to wait for it."""
    first = house.start("postgres")
    second = house.start("postgres", db=house.databases[-1])
    clients = [house.client(first), house.client(second)]
    for round_ in range(40):
        gate, answers = threading.Barrier(2), [None, None]

        def ask(number):
            gate.wait()
            answers[number] = clients[number].post("/v1/claims", {"thread": f"ticket {round_}", "question": f"m{number}", "action": "reply"})

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [201, 409], answers
        held, waits = sorted(answers, key=lambda answer: answer.status)
        assert waits.json["waits_for"] == held.json["intent"]


def test_an_answer_is_named_by_event_by_epoch_or_by_the_moment(world):
    world.agent.passive = True
    world.say("chat", QUESTION)
    world.decided(1)
    about = world.agent.seen[0]
    held = world.claim(201, event=about["event"])
    world.client.post(f"/v1/claims/{held['intent']}/confirm", {"fence": held["fence"], "result": {"text": "the first answer"}})
    for naming in ({"thread": about["thread"]}, {"thread": about["thread"], "epoch": 1}, {"event": about["event"]}, about, {"thread": about["thread"], "workflow": "answers"}):
        assert world.claim(200, **naming)["result"] == {"text": "the first answer"}
    shown = world.client.get(f"/v1/intents/{held['intent']}").json
    assert (shown["workflow"], shown["key"], shown["thread"]) == ("answers", f"{about['thread']}:1:reply", about["thread"])


@pytest.mark.parametrize("fields, status, field", [
    ({"thread": "thr_0000000000001"}, 404, None),
    ({"thread": "thr_nonsense"}, 404, None),
    ({"event": "evt_0000000000001"}, 404, None),
    ({"event": "nonsense"}, 400, "event"),
    ({"thread": "ticket 7"}, 400, "question"),
    ({"thread": "ticket 7", "epoch": 1}, 400, "epoch"),
    ({"thread": "ticket 7", "question": "m1", "workflow": "support"}, 400, "workflow"),
    ({"thread": "ticket 7", "question": "m1", "workflow": "support", "key": "k"}, 400, "question"),
    ({"epoch": 1, "workflow": "support", "key": "k"}, 400, "epoch"),
    ({}, 400, "workflow"),
])
def test_what_names_no_answer_is_refused_and_says_why(module_client, fields, status, field):
    answer = module_client.post("/v1/claims", {"action": "reply", **fields})
    assert answer.status == status, answer
    assert answer.json.get("field") == field and answer.json["detail"]


@pytest.fixture(scope="module")
def module_client(module_house):
    return module_house.client(module_house.start())


def test_a_conversation_of_the_users_own_is_locked_by_its_question(module_client):
    def claim(**fields):
        return module_client.post("/v1/claims", {"thread": "ticket 8", "action": "reply", **fields})

    first = claim(question="m1")
    assert first.status == 201
    waits = claim(question="m2")
    assert waits.status == 409 and waits.json["waits_for"] == first.json["intent"]
    module_client.post(f"/v1/claims/{first.json['intent']}/confirm", {"fence": 1, "result": 1})
    assert claim(question="m1").json["answer"] == "replay"
    assert claim(question="m2").status == 201
    keys = {intent["key"] for intent in module_client.get("/v1/intents?workflow=answers").json["data"]}
    assert {"ticket 8:m1:reply", "ticket 8:m2:reply"} <= keys


def test_a_conversation_can_be_looked_at(world):
    world.say("chat", QUESTION)
    world.decided(1)
    world.say("chat", FOLLOW_UP)
    world.decided(2)
    thread = world.agent.seen[0]["thread"]
    shown = world.client.get(f"/v1/threads/{thread}").json
    assert (shown["thread"], shown["epoch"], shown["question"]) == (thread, 2, world.agent.seen[1]["event"])
    assert [(event["source"], event["verdict"], event["epoch"]) for event in shown["events"]] == [("chat", "accepted", 2), ("chat", "accepted", 1)]
    assert [(answer["action"], answer["epoch"], answer["state"]) for answer in shown["answers"]] == [("reply", 2, "confirmed"), ("reply", 1, "confirmed")]
    world.say("chat", QUESTION, email="eve@acme.io")
    world.decided(3)
    for identity, count in (("Jon@Acme.io", 1), ("eve@acme.io", 1), ("nobody@acme.io", 0)):
        assert len(world.client.get(f"/v1/threads?identity={identity}").json["data"]) == count
    page = world.client.get("/v1/threads?limit=1").json
    assert len(page["data"]) == 1 and page["page"]["next"]
    assert world.client.get(f"/v1/threads?limit=1&after={page['page']['next']}").json["data"][0]["thread"] == thread
    assert world.client.get("/v1/threads/thr_0000000000001").status == 404
