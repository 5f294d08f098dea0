"""/mcp/{server}: tool calls over HTTP are made once, everything else passes, and an agent can be stopped."""

import http.client
import json
import subprocess
import threading

import pytest

from mcp_agent import Agent, replayed, text
from mcp_http_server import McpServer
from semel_process import binary, until

UNKNOWN, IN_PROGRESS, NOT_KEPT, UNAVAILABLE, STOPPED, BUDGET = -32080, -32081, -32084, -32085, -32086, -32087
POLICY = """
destinations:
  up: {{provider: http, url: "http://127.0.0.1:{port}", allow_private: true}}
  down: {{provider: http, url: "http://127.0.0.1:1", allow_private: true}}
mcp:
  s: {{destination: up, path: /any, timeout: 30s, tools: {{put: {{idempotent: true}}, note: {{repeat: 0s}}, dropped: {{detach: false}}}}}}
  few: {{destination: up, calls_per_run: 2, calls_per_hour: 3}}
  down: {{destination: down}}
  nowhere: {{}}
"""


@pytest.fixture(params=["json", "events"])
def upstream(request):
    made = McpServer(events=request.param == "events")
    yield made
    made.stop()


@pytest.fixture
def daemon(house, storage, upstream):
    return house.start(storage, policy=POLICY.format(port=upstream.port))


def test_a_repeated_call_gets_the_first_result(daemon, upstream):
    agent = Agent(daemon.port, Semel_Run="r")
    first, second = agent.call("act", {"a": 1}), agent.call("act", {"a": 1.0})
    assert text(first) == text(second) == "1" and not replayed(first) and replayed(second)
    assert agent.answer.headers["Semel-Intent"].startswith("int_")
    assert text(Agent(daemon.port, Semel_Run="other").call("act", {"a": 1})) == "2"
    assert len(upstream.calls) == 2


def test_sessions_runs_and_tokens_are_what_makes_calls_equal(daemon, upstream):
    plain, one, two = Agent(daemon.port), Agent(daemon.port, Mcp_Session_Id="one"), Agent(daemon.port, Mcp_Session_Id="two")
    assert [text(agent.call("act")) for agent in (plain, plain, one, one, two)] == ["1", "1", "2", "2", "3"]
    assert text(plain.call("act", _meta={"dev.semel/run": "r"})) == "4" == text(one.call("act", headers={"Semel_Run": "r"}))
    assert text(one.call("act", idempotencyKey="k")) == "5" == text(plain.call("act", _meta={"dev.semel/key": "k"}))


def test_what_only_reads_passes_and_repeats_are_new(daemon, upstream):
    agent = Agent(daemon.port)
    assert text(agent.call("look")) == text(agent.call("look")) == "1"  # nobody has said yet that it only reads
    agent.ask("tools/list")
    assert [text(agent.call("look")) for _ in range(2)] == ["2", "3"]
    assert [text(agent.call("note")) for _ in range(2)] == ["4", "5"]


def test_equal_calls_at_the_same_time_run_once(daemon, upstream):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(Agent(daemon.port, Semel_Run="r").call("act", {"sleep": 0.3}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {text(answer) for answer in answers} == {"1"} and sum(map(replayed, answers)) == 7 and len(upstream.calls) == 1


def test_a_client_that_leaves_does_not_end_the_call(daemon, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act", "arguments": {"gate": 1}}}
    connection.request("POST", "/mcp/s", json.dumps(message), {"Content-Type": "application/json", "Semel-Run": "r"})
    until(lambda: upstream.calls == ["act"], "the first call")
    connection.close()
    threading.Timer(0.3, upstream.gate.set).start()
    answer = Agent(daemon.port, Semel_Run="r").call("act", {"gate": 1})
    assert text(answer) == "1" and replayed(answer) and upstream.calls == ["act"]


def test_a_repeat_is_new_only_when_the_answer_before_reached_its_client(daemon, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "note", "arguments": {"gate": 1}}}
    connection.request("POST", "/mcp/s", json.dumps(message), {"Content-Type": "application/json", "Semel-Run": "r"})
    until(lambda: upstream.calls == ["note"], "the first call")
    connection.close()
    agent = Agent(daemon.port, Semel_Run="r")
    agent.ask("ping")  # by now the daemon has seen that the client is gone
    upstream.gate.set()
    assert [text(agent.call("note", {"gate": 1})) for _ in range(3)] == ["1", "2", "3"]


def test_a_cancel_of_a_call_is_not_passed_on_and_others_are(daemon, upstream):
    agent = Agent(daemon.port, Mcp_Session_Id="one")
    waiting = threading.Thread(target=agent.call, args=("act", {"gate": 1}))
    waiting.start()
    until(lambda: upstream.calls == ["act"], "the first call")
    for number in (f"{id(agent)}-1", "another"):
        Agent(daemon.port, Mcp_Session_Id="one").post(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}))
    upstream.gate.set()
    waiting.join()
    assert [json.loads(body)["params"]["requestId"] for _, body in upstream.requests if b"cancelled" in body] == ["another"]


def test_a_tool_that_does_not_detach_is_hung_up_when_its_client_leaves(daemon, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "dropped", "arguments": {"watch": 1}}}
    connection.request("POST", "/mcp/s", json.dumps(message), {"Content-Type": "application/json", "Semel-Run": "r"})
    until(lambda: upstream.calls == ["dropped"], "the call")
    connection.close()
    assert upstream.hung_up.wait(30)
    assert Agent(daemon.port, Semel_Run="r").call("dropped", {"watch": 1})["error"]["code"] == UNKNOWN


def test_what_is_not_a_result_is_not_remembered(daemon, upstream):
    agent = Agent(daemon.port)
    assert [agent.call("act", {"bad": 1})["result"]["isError"] for _ in range(2)] == [True, True] and len(upstream.calls) == 2
    assert agent.call("act", {"status": 404}) == {"error": "as told"} and agent.answer.status == 404  # the session is gone: the client must know
    assert agent.call("act", {"status": 404}) == {"error": "as told"}
    lost = agent.call("act", {"drop": 1})["error"]
    assert lost["code"] == UNKNOWN and lost["data"]["intent"].startswith("int_")
    assert agent.call("act", {"drop": 1})["error"]["code"] == UNKNOWN and len(upstream.calls) == 3
    assert agent.call("act", {"status": 500})["error"]["code"] == UNKNOWN
    assert [agent.call("put", {"drop": 1})["error"]["code"] for _ in range(2)] == [UNKNOWN, UNKNOWN] and len(upstream.calls) == 5  # it may be repeated
    down = Agent(daemon.port, "down")
    assert [down.call("act")["error"]["code"] for _ in range(2)] == [UNAVAILABLE, UNAVAILABLE]


def test_everything_else_passes(daemon, upstream):
    agent = Agent(daemon.port, Mcp_Protocol_Version="2025-11-25", Last_Event_Id="5", Authorization="Bearer theirs")
    body = '{ "jsonrpc":"2.0", "id" : "%s-1","method":"resources/read","params":{"uri":"x","n":1.50}}' % id(agent)
    agent.number = 1
    assert agent.post(body)["result"] == {} and agent.answer.headers["Mcp-Session-Id"] == "from-the-server"
    headers, arrived = upstream.requests[-1]
    assert arrived.decode() == body and headers["Mcp-Protocol-Version"] == "2025-11-25" and headers["Last-Event-Id"] == "5" and headers["Authorization"] == "Bearer theirs"
    assert agent.post('{"jsonrpc":"2.0","method":"notifications/initialized"}') is None and agent.answer.status == 202
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
    connection.request("GET", "/mcp/s", headers={"Accept": "text/event-stream"})
    stream = connection.getresponse()
    assert stream.status == 200 and stream.readline().startswith(b"data: ")
    connection.close()


@pytest.mark.parametrize("body, status", [
    ('{"id":1,"method":"ping","method":"tools/call","params":{"name":"act"}}', 400),
    ('[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}]', 400),
    ('{"method":"tools/call","params":{"name":"act"}}', 400),
    ('{"id":null,"method":"tools/call","params":{"name":"act"}}', 400),
    ('{"id":1,"method":"tools\\/call","params":{"name":"act"}}', 400),
    ("nonsense", 400),
])
def test_a_tool_call_cannot_hide(daemon, upstream, body, status):
    agent = Agent(daemon.port)
    assert "error" in agent.post(body) and agent.answer.status == status and upstream.requests == []


def test_headers_must_say_what_the_body_says(daemon, upstream):
    agent = Agent(daemon.port, Mcp_Protocol_Version="2026-07-28")
    assert agent.call("act", headers={"Mcp_Method": "tools/call", "Mcp_Name": "look"})["error"]["code"] == -32020 and agent.answer.status == 400
    assert agent.call("act", headers={"Mcp_Method": "tools/list", "Mcp_Name": "act"})["error"]["code"] == -32020
    assert text(agent.call("act", headers={"Mcp_Method": "tools/call", "Mcp_Name": "act"})) == "1"


def test_budgets_end(daemon, upstream):
    one = Agent(daemon.port, "few", Semel_Run="one")
    assert [one.call("act", {"n": n}).get("error", {}).get("code") for n in range(3)] == [None, None, BUDGET]
    two = Agent(daemon.port, "few", Semel_Run="two")
    assert [two.call("act", {"n": n}).get("error", {}).get("code") for n in range(2)] == [None, BUDGET]  # three an hour; what is refused does not count
    assert len(upstream.calls) == 3


def test_budgets_and_repeats_hold_when_the_daemon_restarts(daemon, upstream):
    few, notes = Agent(daemon.port, "few", Semel_Run="r"), Agent(daemon.port, Semel_Run="r")
    assert few.call("act").get("error") is None and [text(notes.call("note")) for _ in range(2)] == ["2", "3"]
    daemon.kill()
    daemon.start()
    few.port = notes.port = daemon.port
    assert [few.call("act", {"n": n}).get("error", {}).get("code") for n in range(2)] == [None, BUDGET]
    assert text(notes.call("note")) == "5"  # neither the first again nor the second


def test_nodes_share_budgets_and_repeats(house):
    upstream = McpServer()
    one = house.start("postgres", policy=POLICY.format(port=upstream.port))
    two = house.start("postgres", policy=POLICY.format(port=upstream.port), db=one.db)
    codes = []
    agents = [Agent(node.port, "few", Semel_Run="r") for node in (one, two) for _ in range(4)]
    threads = [threading.Thread(target=lambda agent=agent, n=n: codes.append(agent.call("act", {"n": n}).get("error", {}).get("code"))) for n, agent in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes, key=str) == [BUDGET] * 6 + [None] * 2 and len(upstream.calls) == 2
    assert [text(Agent(node.port, Semel_Run="r").call("note")) for node in (one, two, one)] == ["3", "4", "5"]
    upstream.stop()


def test_headers_that_repeat_arguments_must_say_what_they_say(daemon, upstream):
    agent = Agent(daemon.port, Semel_Run="r")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    agent.ask("tools/list", {"_meta": meta})
    for headers in ({}, {"Mcp_Param_Region": "us"}):
        assert agent.call("routed", {"to": "eu"}, headers=headers, _meta=meta)["error"]["code"] == -32020 and agent.answer.status == 400
    assert text(agent.call("routed", {"to": "eu"}, headers={"Mcp_Param_Region": "eu"}, _meta=meta)) == "1"
    assert upstream.requests[-1][0]["Mcp-Param-Region"] == "eu"
    assert agent.call("routed", {"to": "eu"}, headers={"Mcp_Param_Region": "us"}, _meta=meta)["error"]["code"] == -32020  # no replay either
    assert replayed(agent.call("routed", {"to": "eu"}))  # before 2026-07-28 nobody sent them


def test_a_caller_says_how_long_it_waits_for_an_equal_call(daemon, upstream):
    first = threading.Thread(target=Agent(daemon.port, Semel_Run="r").call, args=("act", {"gate": 1}))
    first.start()
    until(lambda: upstream.calls == ["act"], "the first call")
    assert Agent(daemon.port, Semel_Run="r", Prefer="wait=1").call("act", {"gate": 1})["error"]["code"] == IN_PROGRESS
    upstream.gate.set()
    first.join()


def test_servers_that_are_not_there(daemon):
    for server in ("nowhere", "other"):
        assert Agent(daemon.port, server).call("act")["code"] == "not_found"


def test_counts_are_metrics(daemon, house, upstream):
    agent = Agent(daemon.port)
    for _ in range(2):
        agent.call("act")
    metrics = house.client(daemon).get("/metrics").raw.decode()
    assert 'semel_mcp_calls_total{server="s",outcome="done"} 1' in metrics and 'semel_mcp_calls_total{server="s",outcome="replayed"} 1' in metrics


def test_a_stopped_agent_begins_nothing_and_finishes_what_it_began(house, storage, tmp_path):
    upstream = McpServer()
    daemon = house.start(storage, command="serve", policy=POLICY.format(port=upstream.port))
    url = ["--url", f"http://127.0.0.1:{daemon.port}", "--data", str(daemon.data)]

    def semel(*words, env=None):
        return subprocess.run([binary(), *words, *url], capture_output=True, text=True, timeout=60, env=env)

    token = semel("token", "create", "--name", "support bot", "--scopes", "claim").stdout.strip()
    agent = Agent(daemon.port, Authorization=f"Bearer {token}")
    client = house.client(daemon, token=token)
    begun = client.post("/v1/claims", {"workflow": "w", "key": "begun"}).json
    assert text(agent.call("act")) == "1"
    assert semel("agents", "stop", "support bot").stdout == "stopped support bot\n"
    stopped = agent.call("act", {"n": 2})["error"]
    assert stopped["code"] == STOPPED and "operator" in stopped["message"]
    assert agent.ask("tools/list")["error"]["code"] == STOPPED
    refused = client.post("/v1/claims", {"workflow": "w", "key": "new"})
    assert refused.status == 403 and refused.json["code"] == "agent_stopped"
    assert client.post(f"/v1/claims/{begun['intent']}/confirm", {"fence": begun["fence"], "result": 1}).status == 200
    assert semel("agents", "start", "support bot").stdout == "started support bot\n"
    assert text(agent.call("act", {"n": 2})) == "2" and len(upstream.calls) == 2
    assert semel("agents", "stop", "nobody").returncode != 0
    admin = house.client(daemon, token=(daemon.data / "admin.token").read_text().strip())
    decisions = admin.get("/v1/decisions").json["data"]
    assert not any(token["stopped"] for token in admin.get("/v1/tokens").json["data"])
    assert {"agent_stop", "agent_start"} <= {decision["kind"] for decision in decisions}
    upstream.stop()
