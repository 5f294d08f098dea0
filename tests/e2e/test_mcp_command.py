"""/mcp/{server} for a server that is a command: its processes are bridged to HTTP, and its tool calls are made once."""

import http.client
import json
import pathlib
import re
import sys
import threading

import pytest

from mcp_agent import Agent, replayed, text
from semel_process import until

UNKNOWN, UNAVAILABLE, NO_SESSION = -32080, -32085, -32001
SERVER = pathlib.Path(__file__).resolve().parent / "mcp_server.py"
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
POLICY = """
mcp:
  s: {{command: [{python}, {server}], env: {{COUNT: "{count}", TOKEN: "file:{secret}"}}, cwd: "{cwd}", timeout: 30s, processes: {processes}, idle: {idle},
      tools: {{kept: {{read_only: false}}, dropped: {{detach: false}}, who: {{read_only: true}}}}}}
  gone: {{command: [/no/such/program]}}
  dies: {{command: [/bin/sh, -c, "exit 3"]}}
  again: {{command: [/bin/sh, -c, "echo hi; read x; exit 3"]}}
"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEL_TEST_SECRET_OF_THE_HOUSE", "x")
    (tmp_path / "secret").write_text("s3cret\n")
    return {"python": sys.executable, "server": SERVER, "count": tmp_path / "count", "secret": tmp_path / "secret", "cwd": tmp_path, "processes": 4, "idle": "30m"}


@pytest.fixture
def daemon(house, world):
    return house.start("sqlite", policy=POLICY.format(**world))


def effects(world):
    return world["count"].read_text().split("\n")[:-1] if world["count"].exists() else []


def session(daemon, server="s", **headers):
    """An agent of the era up to 2025-11-25, after its handshake."""
    agent = Agent(daemon.port, server, **headers)
    assert agent.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})["result"]["serverInfo"]["name"] == "counter"
    agent.headers["Mcp-Session-Id"] = agent.answer.headers["Mcp-Session-Id"]
    assert agent.post('{"jsonrpc":"2.0","method":"notifications/initialized"}') is None and agent.answer.status == 202
    return agent


def modern(daemon, **headers):
    agent = Agent(daemon.port, Mcp_Protocol_Version="2026-07-28", **headers)
    call = agent.call
    agent.call = lambda tool, arguments=None, _meta=None, **params: call(tool, arguments, _meta={**MODERN, **(_meta or {})}, **params)
    return agent


def who(agent):
    return json.loads(text(agent.call("who"))[4:])


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Stream:
    """A stream of events that stays open."""

    def __init__(self, agent, method="GET", message=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=60)
        self.connection.request(method, agent.path, json.dumps(message) if message else None, agent.headers)
        self.answer = self.connection.getresponse()

    def next(self):
        while line := self.answer.readline():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    def close(self):
        self.answer.close()
        self.connection.close()


def call_message(number, tool, **arguments):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


# ---- once ----


@pytest.mark.parametrize("begin", [session, modern], ids=["2025", "2026"])
def test_a_repeated_call_gets_the_first_result(daemon, world, begin):
    agent = begin(daemon, Semel_Run="r")
    first, second = agent.call("act", {"a": 1}), agent.call("act", {"a": 1.0})
    assert text(first) == text(second) == "act 1" and not replayed(first) and replayed(second)
    assert text(begin(daemon, Semel_Run="other").call("act", {"a": 1})) == "act 2"
    assert len(effects(world)) == 2


@pytest.mark.parametrize("begin", [session, modern], ids=["2025", "2026"])
def test_a_client_that_leaves_does_not_end_the_call(daemon, world, begin, tmp_path):
    agent = begin(daemon, Semel_Run="r")
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    message = call_message(1, "act", gate=str(tmp_path / "gate"))
    message["params"]["_meta"] = MODERN if begin is modern else {}
    connection.request("POST", "/mcp/s", json.dumps(message), agent.headers)
    until(lambda: len(effects(world)) == 1, "the first call")
    connection.close()
    threading.Timer(0.3, (tmp_path / "gate").touch).start()
    answer = begin(daemon, Semel_Run="r").call("act", {"gate": str(tmp_path / "gate")})
    assert text(answer) == "act 1" and replayed(answer) and len(effects(world)) == 1
    assert not pathlib.Path(f"{world['count']}.cancelled").exists()


@pytest.mark.parametrize("begin", [session, modern], ids=["2025", "2026"])
def test_a_server_that_dies_leaves_it_unknown_and_is_replaced(daemon, world, begin):
    agent = begin(daemon, Semel_Run="r")
    before = who(agent)["pid"]
    lost = agent.call("act", {"die": 1})["error"]
    assert lost["code"] == UNKNOWN and lost["data"]["intent"].startswith("int_")
    assert agent.call("act", {"die": 1})["error"]["code"] == UNKNOWN
    assert text(agent.call("act", {"n": 2})) == "act 3"  # by another process, in the same session
    assert who(agent)["pid"] != before and effects(world) == ["who ", "act ", "act ", "who "]


def test_a_server_that_dies_again_and_again_is_left_alone(daemon):
    agent = Agent(daemon.port, "again")
    codes = [agent.ask("ping", {"_meta": MODERN})["code"] for _ in range(8)]
    assert codes == ["no_answer"] * 6 + ["unreachable"] * 2  # one start, and five more in a minute


def test_a_server_that_cannot_be_started_was_not_called(daemon):
    for server in ("gone", "dies"):
        agent = Agent(daemon.port, server, Mcp_Protocol_Version="2026-07-28")
        assert agent.ask("initialize", {})["code"] in ("unreachable", "no_answer")
    gone = Agent(daemon.port, "gone", Semel_Run="r")
    assert [gone.call("act", _meta=MODERN)["error"]["code"] for _ in range(2)] == [UNAVAILABLE] * 2


# ---- whose is what ----


def test_each_session_has_a_process_and_each_token_without_sessions(daemon):
    one, two, plain, other = session(daemon), session(daemon), modern(daemon), modern(daemon)
    assert who(one)["pid"] == who(one)["pid"] != who(two)["pid"]
    assert who(plain)["pid"] == who(other)["pid"] not in (who(one)["pid"], who(two)["pid"])


def test_equal_ids_and_tokens_of_several_clients_do_not_collide(daemon):
    agent = modern(daemon)
    done = {}

    def one(n):
        message = call_message("same", "act", n=n, sleep=0.2)
        message["params"]["_meta"] = {**MODERN, "progressToken": "same", "dev.semel/run": "r"}
        stream = Stream(agent, "POST", message)
        done[n] = [stream.next(), stream.next()]
        stream.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for progress, answer in done.values():
        assert progress["params"]["progressToken"] == "same" and answer["id"] == "same"
    assert len({text(answer) for _, answer in done.values()}) == 8


def test_a_session_belongs_to_its_token_and_ends(daemon):
    agent = session(daemon)
    pid = who(agent)["pid"]
    stranger = Agent(daemon.port, Mcp_Session_Id="0" * 32)
    assert stranger.call("act")["error"]["code"] == NO_SESSION and stranger.answer.status == 404
    nobody = Agent(daemon.port)
    assert nobody.ask("tools/list")["error"]["code"] == -32600 and nobody.answer.status == 400
    assert Stream(agent, "DELETE").answer.status == 200
    assert agent.ask("ping")["error"]["code"] == NO_SESSION and agent.answer.status == 404
    until(lambda: not is_alive(pid), "the end of the process")


def test_a_session_that_is_ended_finishes_its_calls(daemon, world, tmp_path):
    agent = session(daemon, Semel_Run="r")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(agent.call("act", {"gate": str(tmp_path / "gate")})))
    waiting.start()
    until(lambda: len(effects(world)) == 1, "the call")
    assert Stream(agent, "DELETE").answer.status == 200
    (tmp_path / "gate").touch()
    waiting.join()
    assert text(answers[0]) == "act 1"


def test_tokens_do_not_share_processes(house, world):
    daemon = house.start("sqlite", command="serve", policy=POLICY.format(**world))
    admin = house.client(daemon, token=(daemon.data / "admin.token").read_text().strip())
    tokens = [admin.post("/v1/tokens", {"name": name, "scopes": ["claim"]}).json["token"] for name in ("a", "b")]
    one, two = (modern(daemon, Authorization=f"Bearer {token}") for token in tokens)
    assert who(one)["pid"] != who(two)["pid"]
    mine = session(daemon, Authorization=f"Bearer {tokens[0]}")
    thief = Agent(daemon.port, Authorization=f"Bearer {tokens[1]}", Mcp_Session_Id=mine.headers["Mcp-Session-Id"])
    assert thief.call("act")["error"]["code"] == NO_SESSION


def test_the_environment_is_what_the_policy_gives(daemon, world):
    found = who(session(daemon))
    assert found["cwd"] == str(world["cwd"]) and found["env"]["TOKEN"] == "s3cret" and "PATH" in found["env"]
    assert "SEMEL_TEST_SECRET_OF_THE_HOUSE" not in found["env"]


# ---- streams ----


def test_what_a_server_says_unasked_is_listened_to(daemon):
    agent = session(daemon)
    agent.call("act", {"log": "early"}, headers={"Accept": "application/json"})  # nobody hears it: it waits
    stream = Stream(agent)
    assert stream.answer.status == 200 and stream.answer.headers["Content-Type"] == "text/event-stream"
    assert stream.next()["method"] == "notifications/seen"  # of `initialized`
    assert stream.next()["params"]["data"] == "early"
    again = Stream(agent)
    assert again.answer.status == 409
    again.close()
    agent.call("act", {"log": "late"})
    assert stream.next()["params"]["data"] == "late"
    stream.close()


@pytest.mark.parametrize("listens", [False, True])
def test_a_question_of_the_server_is_answered_by_its_session(daemon, listens):
    agents = [session(daemon), session(daemon)]
    streams = [Stream(agent) for agent in agents] if listens else []
    calls, answers = [], []
    for n, agent in enumerate(agents):
        calls.append(Stream(agent, "POST", call_message("q", "act", question=f"who are you, {n}?"))) if not listens else None
        thread = threading.Thread(target=lambda agent=agent, n=n: answers.append(agent.call("act", {"question": f"who are you, {n}?"}))) if listens else None
        calls.append(thread) if thread else None
        thread.start() if thread else None
    asked = []
    for stream in streams or calls:
        message = stream.next()
        while message["method"] != "elicitation/create":
            message = stream.next()
        asked.append(message)
    assert [message["params"]["message"] for message in asked] == ["who are you, 0?", "who are you, 1?"]
    assert len({message["id"] for message in asked}) == 2
    for n in (1, 0):
        teller = Agent(daemon.port, Mcp_Session_Id=agents[n].headers["Mcp-Session-Id"])
        assert teller.post(json.dumps({"jsonrpc": "2.0", "id": asked[n]["id"], "result": {"n": n}})) is None and teller.answer.status == 202
    if listens:
        for thread in calls:
            thread.join()
        assert sorted(text(answer) for answer in answers) == ['act {"n": 0}', 'act {"n": 1}']
    else:
        assert [text(stream.next()) for stream in calls] == ['act {"n": 0}', 'act {"n": 1}']


def test_headers_are_checked_for_a_command_which_does_not_see_them(daemon, world):
    agent = modern(daemon, Semel_Run="r")
    agent.ask("tools/list", {"_meta": MODERN})
    assert agent.call("routed", {"to": "eu"}, headers={"Mcp_Param_Region": "us"})["error"]["code"] == -32020 and effects(world) == []
    assert text(agent.call("routed", {"to": "eu"}, headers={"Mcp_Param_Region": "eu"})) == "routed 1"


# ---- cancelling ----


def cancelled(world):
    path = pathlib.Path(f"{world['count']}.cancelled")
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("by", ["leaving", "word"])
def test_a_tool_that_does_not_detach_is_cancelled(daemon, world, tmp_path, by):
    agent = session(daemon, Semel_Run="r")
    for tool in ("kept", "dropped"):
        stream = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        stream.request("POST", "/mcp/s", json.dumps(call_message(tool, tool, gate=str(tmp_path / "gate"))), agent.headers)
        until(lambda tool=tool: effects(world)[-1:] == [f"{tool} "], "the call")
        if by == "word":
            Agent(daemon.port, Mcp_Session_Id=agent.headers["Mcp-Session-Id"]).post(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": tool}}))
        else:
            stream.close()
    until(lambda: cancelled(world), "the cancel")
    assert agent.call("dropped", {"gate": str(tmp_path / "gate")})["error"]["code"] == UNKNOWN
    (tmp_path / "gate").touch()
    assert text(agent.call("kept", {"gate": str(tmp_path / "gate")})) == "kept 1"
    assert len(set(cancelled(world))) == 1 and len(effects(world)) == 2


def test_a_client_of_2026_cancels_what_only_reads_by_leaving(daemon, world, tmp_path):
    agent = modern(daemon)
    message = call_message(1, "who", gate=str(tmp_path / "gate"))
    message["params"]["_meta"] = MODERN
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request("POST", "/mcp/s", json.dumps(message), agent.headers)
    until(lambda: len(effects(world)) == 1, "the call")
    connection.close()
    until(lambda: len(cancelled(world)) == 1, "the cancel")


# ---- how many, how long ----


def test_processes_are_bounded_and_the_idlest_makes_room(house, world, tmp_path):
    daemon = house.start("sqlite", policy=POLICY.format(**{**world, "processes": 2}))
    busy, idle = session(daemon, Semel_Run="r"), session(daemon)
    pid = who(idle)["pid"]
    waiting = threading.Thread(target=busy.call, args=("act", {"gate": str(tmp_path / "gate")}))
    waiting.start()
    until(lambda: "act " in effects(world), "the call")
    third = session(daemon, Semel_Run="s")
    assert idle.ask("ping")["error"]["code"] == NO_SESSION
    until(lambda: not is_alive(pid), "the end of the idle one")
    held = threading.Thread(target=third.call, args=("act", {"gate": str(tmp_path / "gate")}))
    held.start()
    until(lambda: effects(world).count("act ") == 2, "the other call")
    fourth = Agent(daemon.port)
    assert fourth.ask("initialize", {})["code"] == "unreachable"
    (tmp_path / "gate").touch()
    waiting.join()
    held.join()


def test_an_idle_process_is_ended(house, world):
    daemon = house.start("sqlite", policy=POLICY.format(**{**world, "idle": "1s"}))
    agent = Agent(daemon.port)
    assert "result" in agent.ask("initialize", {})
    agent.headers["Mcp-Session-Id"] = agent.answer.headers["Mcp-Session-Id"]
    pid = int(re.search(r"an MCP server was started.* pid=(\d+)", daemon.said())[1])
    until(lambda: not is_alive(pid), "the end of the process")
    assert agent.ask("ping")["error"]["code"] == NO_SESSION


@pytest.mark.parametrize("how", ["named no more", "changed", "stopped"])
def test_processes_end_with_their_command(house, daemon, world, how):
    agent, plain = session(daemon), modern(daemon)
    pids = [who(agent)["pid"], who(plain)["pid"]]
    if how == "stopped":
        daemon.stop()
    else:
        changed = POLICY.format(**world).replace("  s:", "  t:") if how == "named no more" else POLICY.format(**{**world, "cwd": "/"})
        house.client(daemon).policy(changed)
    until(lambda: not any(map(is_alive, pids)), "the end of the processes")
    if how == "changed":
        assert agent.ask("ping")["error"]["code"] == NO_SESSION and who(session(daemon))["cwd"] == "/"
