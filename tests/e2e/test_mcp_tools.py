"""`semel mcp-server`: semel's own tools for an agent."""

import json
import os
import subprocess

import pytest

from interop.mcp_peers import LEGACY, MODERN
from semel_process import REPO, binary, free_port

TOOLS = json.loads((REPO / "src/agent/tools.json").read_text())["tools"]


class Tools:
    def __init__(self, url):
        self.process = subprocess.Popen([binary(), "mcp-server", "--url", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")})
        self.number = 0

    def ask(self, method, params=None):
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.number
        return answer

    def call(self, tool, /, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        if not result["isError"]:
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            schema = next(one for one in TOOLS if one["name"] == tool)["outputSchema"]
            assert set(schema["required"]) <= set(result["structuredContent"])
        return result

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def tools(house, storage):
    daemon = house.start(storage)
    made = Tools(f"http://127.0.0.1:{daemon.port}")
    yield made
    made.end()


def test_an_agent_does_a_thing_once(tools):
    assert tools.call("semel_check", workflow="w", key="k")["structuredContent"] == {"known": False}
    claim = tools.call("semel_claim", workflow="w", key="k", input={"to": "a"})["structuredContent"]
    assert claim["answer"] == "proceed" and claim["fence"] == 1
    assert tools.call("semel_claim", workflow="w", key="k", input={"to": "a"})["structuredContent"]["answer"] == "in_progress"
    reused = tools.call("semel_claim", workflow="w", key="k", input={"to": "b"})["structuredContent"]
    assert reused["answer"] == "key_reused" and reused["differs"] == ["to"]
    assert tools.call("semel_confirm", intent=claim["intent"], fence=1, result={"m": 1})["structuredContent"]["state"] == "confirmed"
    again = tools.call("semel_claim", workflow="w", key="k", input={"to": "a"})["structuredContent"]
    assert again["answer"] == "replay" and again["result"] == {"m": 1}
    assert tools.call("semel_check", intent=claim["intent"])["structuredContent"]["state"] == "confirmed"
    story = tools.call("semel_explain", workflow="w", key="k")["structuredContent"]
    assert "claimed for the first time" in story["story"][0] and "It happened once" in story["next"]


def test_what_nobody_can_tell_is_listed(tools):
    claim = tools.call("semel_claim", workflow="w", key="k")["structuredContent"]
    assert tools.call("semel_fail", intent=claim["intent"], fence=claim["fence"], effect="unknown", error="time-out")["structuredContent"]["state"] == "unknown"
    assert tools.call("semel_claim", workflow="w", key="k")["structuredContent"]["answer"] == "outcome_unknown"
    listed = tools.call("semel_list_exceptions")["structuredContent"]["exceptions"]
    assert [card["intent"] for card in listed] == [claim["intent"]]


def test_an_agent_finds_a_person_and_says_what_it_knows_once(tools):
    person = {"name": "Jon Smith", "email": "jon@acme.io", "phone": "+33612345678"}
    assert tools.call("semel_find_lead", **person)["structuredContent"] == {"found": "new", "lead": None, "candidates": []}
    made = tools.call("semel_upsert_lead", source="agent", **person)["structuredContent"]
    assert made["found"] == "new" and tools.call("semel_upsert_lead", source="agent", **person)["structuredContent"]["record"] == made["record"]
    found = tools.call("semel_find_lead", name="Jon Smith", phone="+33 6 12 34 56 78")["structuredContent"]
    assert (found["found"], found["lead"]) == ("same", made["lead"]) and found["candidates"][0]["explanation"]
    refused = tools.call("semel_upsert_lead", source="agent", name="Jon Smith")
    assert refused["isError"] and "by a name alone nobody is known" in refused["content"][0]["text"]
    hints = {tool["name"]: tool["annotations"] for tool in tools.ask("tools/list")["result"]["tools"]}
    assert hints["semel_find_lead"]["readOnlyHint"] and not hints["semel_upsert_lead"]["readOnlyHint"] and hints["semel_upsert_lead"]["idempotentHint"]


def test_what_is_refused_is_an_error_that_says_why(tools):
    for name, arguments, word in [
        ("semel_claim", {"workflow": "w"}, "key"),
        ("semel_claim", {"workflow": "w", "kye": "k"}, "kye"),
        ("semel_confirm", {"intent": "int_0000000000001", "fence": 1}, "no such intent"),
        ("semel_confirm", {"intent": "x", "fence": 1}, "int_"),
        ("semel_check", {"workflow": "w"}, "key"),
        ("semel_list_exceptions", {"limit": 1000}, "limit"),
    ]:
        result = tools.call(name, **arguments)
        assert result["isError"] and word in result["content"][0]["text"], result
    assert tools.ask("tools/call", {"name": "semel_other"})["error"]["code"] == -32602
    assert tools.ask("prompts/list")["error"]["code"] == -32601
    assert tools.ask("ping")["result"] == {}
    assert tools.ask("initialize", {"protocolVersion": "2024-11-05"})["result"]["protocolVersion"] == "2024-11-05"
    assert tools.ask("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"] == "2025-11-25"


def test_without_a_daemon_it_says_so():
    tools = Tools(f"http://127.0.0.1:{free_port()}")
    assert tools.call("semel_check", workflow="w", key="k")["isError"]
    tools.end()


@pytest.mark.parametrize("peers", [LEGACY, MODERN], ids=["sdk 1.x", "sdk 2.x"])
def test_real_clients_take_the_tools_and_their_schemas(peers, house, tmp_path):
    if not peers.available():
        pytest.skip(f"npm could not provide the packages of {peers.folder.name}: python3 tools/interop.py")
    daemon = house.start("sqlite")
    stdio = {"command": binary(), "args": ["mcp-server", "--url", f"http://127.0.0.1:{daemon.port}"]}
    claim = {"call": {"name": "semel_claim", "arguments": {"workflow": "w", "key": "k"}}}
    check = {"call": {"name": "semel_check", "arguments": {"workflow": "w", "key": "k"}}}
    listed, first, second, looked = peers.run({"stdio": stdio, "steps": [{"list": True}, claim, claim, check]})[-4:]
    assert listed["tools"] == [tool["name"] for tool in TOOLS]
    assert first["result"]["structuredContent"]["answer"] == "proceed" and second["result"]["structuredContent"]["answer"] == "in_progress"
    assert looked["result"]["structuredContent"]["known"] is True
