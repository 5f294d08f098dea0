"""The conversation lock for tools: a question gets one answer, by whichever agent, tool or face, and the next question the next one."""

import json
import threading

import pytest

import test_mcp
import test_mcp_http
from mcp_http_server import McpServer
from plain_server import Server, reply
from semel_process import until
from test_mcp import IN_PROGRESS, UNKNOWN, place, replayed, text  # noqa: F401 (place is a fixture)
from test_once_per_question import FOLLOW_UP, QUESTION, header

PARAMS = -32602
POLICY = """
destinations:
  agent: {{provider: http, url: "{agent}", allow_private: true}}
  up: {{provider: http, url: "http://127.0.0.1:{upstream}", allow_private: true}}
sources:
  chat: {{preset: json, verify: none, forward: agent}}
mcp:
  s:
    destination: up
    timeout: 30s
    tools:
      act: {{answers: {{action: reply, thread: ticket, event: event, question: message}}}}
      put: {{idempotent: true, answers: {{action: reply, thread: ticket, event: event, question: message}}}}
"""


class World:
    """Messages come in, are forwarded to a server that only listens, and are answered by agents through their tools."""

    def __init__(self, house, storage, directory):
        self.listener, self.upstream, self.directory, self.agents = Server(lambda head, body: reply(200)), McpServer(), directory, []
        policy = POLICY.format(agent=self.listener.url, upstream=self.upstream.port)
        self.daemon = house.start(storage, policy=policy)
        self.client = house.client(self.daemon)
        self.place = test_mcp.Place(directory, f"http://127.0.0.1:{self.daemon.port}")

    def ask(self, question):
        """The forwarded event of a question."""
        before = len(self.listener.requests)
        answer = self.client.request("POST", "/in/chat", json.dumps({"email": "jon@acme.io", "message": question}).encode(), {"Content-Type": "application/json"})
        assert answer.status == 200, answer
        until(lambda: len(self.listener.requests) > before, "the forwarded event")
        head = self.listener.requests[before][1]
        return {"event": header(head, "Semel-Event-Id"), "thread": header(head, "Semel-Thread"), "epoch": header(head, "Semel-Epoch")}

    def stdio(self, *options):
        return self.place.agent("--server", "s", *options)

    def http(self, **headers):
        return test_mcp_http.Agent(self.daemon.port, **headers)

    def claim(self, expect, **fields):
        answer = self.client.post("/v1/claims", {"action": "reply", **fields})
        assert answer.status == expect, answer
        return answer.json

    def confirm(self, held, result):
        assert self.client.post(f"/v1/claims/{held['intent']}/confirm", {"fence": held["fence"], "result": result}).status == 200

    def stop(self):
        self.place.end()
        self.listener.stop()
        self.upstream.stop()


@pytest.fixture
def world(house, storage, tmp_path):
    made = World(house, storage, tmp_path)
    yield made
    made.stop()


def at_once(*calls):
    answers = [None] * len(calls)

    def run(number):
        answers[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_agents_that_answer_one_event_through_their_tools_answer_once(world):
    one, two, about = world.stdio(), world.stdio(), world.ask(QUESTION)
    answers = at_once(lambda: one.call("act", {"event": about["event"], "text": "50 euros"}), lambda: two.call("put", {"event": about["event"], "text": "It is 50."}))
    assert one.effects() == 1 and sorted(map(replayed, answers)) == [False, True]
    assert text(answers[0]) == text(answers[1])
    assert replayed(two.call("act", {"ticket": about["thread"], "text": "Fifty."}, idempotencyKey="another"))
    (intent,) = world.client.get("/v1/intents?workflow=answers").json["data"]
    assert (intent["key"], intent["state"]) == (f"{about['thread']}:1:reply", "confirmed")
    assert world.claim(200, event=about["event"])["result"]["content"] == answers[0]["result"]["content"]
    later = world.ask(FOLLOW_UP)
    assert later["thread"] == about["thread"] and later["epoch"] == "2"
    follow_up = two.call("put", {"event": later["event"], "text": "Yes."})
    assert not replayed(follow_up) and text(follow_up) == "put 2" and text(one.call("act", {"event": later["event"]})) == "put 2"
    assert replayed(one.call("act", {"event": about["event"]})) and one.effects() == 2


def test_what_the_api_answered_first_is_told_to_the_tool(world):
    agent, about = world.stdio(), world.ask(QUESTION)
    world.confirm(world.claim(201, event=about["event"]), {"text": "50 euros"})
    for answer in (agent.call("act", {"event": about["event"]}), world.http().call("act", {"ticket": about["thread"]})):
        assert replayed(answer) and json.loads(text(answer)) == {"text": "50 euros"}
    assert agent.effects() == 0 and not world.upstream.calls


def test_the_call_itself_may_say_what_it_answers(world):
    about = world.ask(QUESTION)
    meta = {"dev.semel/thread": about["thread"], "dev.semel/epoch": about["epoch"]}
    one, two = world.stdio(), world.http(Mcp_Session_Id="x")
    assert text(one.call("other", {"a": 1}, _meta={**meta, "dev.semel/action": "reply"})) == "other 1"
    assert text(two.call("other", {"a": 2}, _meta={**meta, "dev.semel/action": "reply"})) == "other 1"
    assert text(two.call("act", {"ticket": "elsewhere"}, _meta=meta)) == "other 1"  # wins over the arguments
    assert text(two.call("act", _meta={**meta, "dev.semel/action": "note"})) == "1"  # another action is another answer
    assert [text(one.call("other", {"a": 1})) for _ in range(2)] == ["other 2"] * 2  # and without it, it is a call as any other


def test_of_agents_at_the_gateway_one_answers(world):
    about = world.ask(QUESTION)
    agents = [world.http(Mcp_Session_Id=f"s{number}") for number in range(6)]
    answers = at_once(*[lambda a=agent, n=number: a.call("act", {"event": about["event"], "text": str(n), "sleep": 0.2}) for number, agent in enumerate(agents)])
    assert len(world.upstream.calls) == 1 and sum(map(replayed, answers)) == 5
    later = world.ask(FOLLOW_UP)
    assert not replayed(agents[0].call("act", {"event": later["event"]})) and len(world.upstream.calls) == 2


def test_an_answer_waits_for_the_one_before(world):
    about, hasty, patient = world.ask(QUESTION), world.stdio("--wait", "1s"), world.stdio()
    held = world.claim(201, event=about["event"], lease_ms=600000)
    later = world.ask(FOLLOW_UP)
    refused = hasty.call("act", {"event": later["event"]})["error"]
    assert refused["code"] == IN_PROGRESS and refused["data"]["intent"] == held["intent"] and "another question" in refused["message"]
    number = patient.begin_call("act", {"event": later["event"]})
    world.confirm(held, {"text": "50 euros"})
    assert not replayed(patient.wait(number)) and patient.effects() == 1


def test_an_unknown_answer_holds_back_every_other_one(world):
    """Also when its tool may be called again: the next answer could say something else."""
    agents = [world.stdio(), world.http()]
    for ticket, agent in enumerate(agents):
        assert agent.call("put", {"ticket": ticket, "message": "m1", "code": -32603, "drop": True})["error"]["code"] in (-32603, UNKNOWN)
        for other in (agent, *agents):
            assert other.call("put", {"ticket": ticket, "message": "m1", "text": "in other words"})["error"]["code"] == UNKNOWN
            refused = other.call("act", {"ticket": ticket, "message": "m2"})["error"]
            assert refused["code"] == UNKNOWN and "another question" in refused["message"]
    assert agents[0].effects() == len(world.upstream.calls) == 1


@pytest.mark.parametrize("arguments, meta, says", [
    ({}, {}, 'Send the argument ticket or event, or _meta["dev.semel/thread"]'),
    ({"ticket": ["x"]}, {}, "ticket has to be a text"),
    ({"ticket": "mine"}, {}, "say which question is answered"),
    ({"ticket": "thr_0000000000001"}, {}, "There is no such conversation"),
    ({"event": "evt_0000000000001"}, {}, "There is no such event"),
    ({"event": "nonsense"}, {}, "event's id"),
    ({}, {"dev.semel/thread": "mine", "dev.semel/epoch": 1}, "say question"),
])
def test_what_names_no_answer_is_refused_and_says_what_to_send(module_world, arguments, meta, says):
    for agent in module_world:
        refused = agent.call("act", arguments, _meta=meta)["error"]
        assert refused["code"] == PARAMS and says in refused["message"], refused


@pytest.fixture(scope="module")
def module_world(module_house, tmp_path_factory):
    made = World(module_house, "sqlite", tmp_path_factory.mktemp("turns"))
    yield made.stdio(), made.http()
    made.stop()


def meta_of(question):
    return {"dev.semel/thread": "ticket 7", "dev.semel/question": question, "dev.semel/action": "reply"}


def test_a_conversation_of_the_users_own_is_locked_with_and_without_a_daemon(place):  # noqa: F811
    one, two = place.agent(), place.agent("--wait", "1s")
    answers = at_once(lambda: one.call("act", {"text": "a"}, _meta=meta_of("m1")), lambda: two.call("put", {"text": "b"}, _meta=meta_of("m1")))
    assert one.effects() == 1 and [replayed(answer) for answer in answers].count(True) == 1, answers
    assert text(two.call("put", _meta=meta_of("m2"))) == "put 2" and replayed(one.call("act", _meta=meta_of("m2")))
    refused = one.call("act", _meta={"dev.semel/thread": "ticket 7", "dev.semel/action": "reply"})["error"]
    assert refused["code"] == PARAMS and "say which question is answered" in refused["message"]


def test_an_answer_under_way_holds_back_the_next_with_and_without_a_daemon(place, tmp_path):  # noqa: F811
    one, two = place.agent(), place.agent("--wait", "1s")
    gate = tmp_path / "gate"
    number = one.begin_call("act", {"gate": str(gate)}, _meta=meta_of("m1"))
    until(lambda: one.effects() == 1, "the first answer")
    refused = two.call("act", _meta=meta_of("m2"))["error"]
    assert refused["code"] == IN_PROGRESS and "another question" in refused["message"]
    gate.touch()
    one.wait(number)
    assert text(two.call("act", _meta=meta_of("m2"))) == "act 2"
