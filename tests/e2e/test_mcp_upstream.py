"""`semel mcp --upstream URL`: a stdio client of a server over HTTP. The rules of test_mcp.py hold, and a connection that breaks is `unknown`."""

import base64
import json
import subprocess

import pytest

from mcp_http_server import McpServer
from semel_process import binary, free_port, until
from test_mcp import UNAVAILABLE, UNKNOWN, WAIT, Agent, Place, replayed, text

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


@pytest.fixture(params=["json", "events"])
def upstream(request):
    made = McpServer(events=request.param == "events")
    yield made
    made.stop()


class Remotes(Place):
    def remote(self, upstream, *options, path="/mcp", **env):
        server = ("--upstream", f"http://127.0.0.1:{upstream.port}{path}", "--allow-private")
        self.agents.append(Agent(self.directory, self.url, options, self.data, env, server))
        return self.agents[-1]


@pytest.fixture
def place(tmp_path):
    made = Remotes(tmp_path, f"http://127.0.0.1:{free_port()}", data="data")
    yield made
    made.end()


def posted(upstream, method):
    """The headers of the requests with this method, with small letters."""
    found = [(headers, json.loads(body)) for headers, body in list(upstream.requests) if body]
    return [{name.lower(): value for name, value in headers.items()} for headers, message in found if message.get("method") == method]


# ---- once ----


def test_a_repeated_call_gets_the_first_result_under_its_own_id(place, upstream):
    agent = place.remote(upstream)
    first, second, other = agent.call("act", {"tag": "a"}), agent.call("act", {"tag": "a"}), agent.call("act", {"tag": "b"})
    assert text(first) == text(second) == "1" and text(other) == "2"
    assert not replayed(first) and replayed(second) and not replayed(other) and len(upstream.calls) == 2
    assert [text(agent.call("look")) for _ in range(2)] == ["3", "4"]
    assert agent.leave() == 0


def test_a_double_dispatch_runs_once(place, upstream):
    agent = place.remote(upstream)
    numbers = [agent.begin_call("act", {"sleep": 0.3}) for _ in range(8)]
    assert {text(agent.wait(number)) for number in numbers} == {"1"} and len(upstream.calls) == 1


def test_a_client_that_leaves_does_not_end_the_call(place, upstream):
    agent = place.remote(upstream, "--run", "r")
    agent.begin_call("act", {"gate": True})
    until(lambda: upstream.calls, "the first call")
    agent.process.kill()
    agent.process.wait()
    again = place.remote(upstream, "--run", "r")
    number = again.begin_call("act", {"gate": True})
    upstream.gate.set()
    answer = again.wait(number)
    assert text(answer) == "1" and replayed(answer) and len(upstream.calls) == 1


# ---- what breaks ----


@pytest.mark.parametrize("how", [{"drop": True}, {"half": True}, {"status": 500}])
def test_a_connection_that_breaks_after_the_tool_ran_leaves_it_unknown(place, upstream, how):
    agent = place.remote(upstream)
    dead = agent.call("act", how)["error"]
    assert dead["code"] == UNKNOWN and dead["data"]["intent"].startswith("int_")
    assert agent.call("act", how)["error"]["code"] == UNKNOWN
    calls = [body for _, body in upstream.requests if b"tools/call" in body]
    assert len(calls) == 1  # neither semel nor its HTTP library sent it again
    assert text(agent.call("act", {"tag": "other"})) == str(len(upstream.calls))


def test_a_call_that_was_refused_or_never_left_may_be_made_again(place, upstream):
    agent = place.remote(upstream)
    refused = [agent.call("act", {"status": 401})["error"] for _ in range(2)]
    assert [error["code"] for error in refused] == [UNAVAILABLE] * 2 and "status 401" in refused[0]["message"]
    upstream.stop()
    gone = [agent.call("act", {"tag": "a"})["error"]["code"] for _ in range(2)]
    assert gone == [UNAVAILABLE] * 2 and agent.ask("tools/list")["error"]["code"] == UNAVAILABLE


def test_a_forgotten_session_is_begun_anew(place, upstream):
    agent = place.remote(upstream)
    assert text(agent.call("act", {"tag": "a"})) == "1"
    upstream.forget_sessions()
    assert agent.call("act", {"tag": "b"})["error"]["code"] == UNAVAILABLE  # the server did not take it
    assert text(agent.call("act", {"tag": "b"})) == "2" and replayed(agent.call("act", {"tag": "a"}))
    assert len(posted(upstream, "initialize")) == 2 and len(posted(upstream, "notifications/initialized")) == 2
    agent.leave()
    assert upstream.ended == [upstream.session]


def test_a_server_without_get_may_say_so_with_404(place, upstream):
    upstream.listens = False
    agent = place.remote(upstream)
    until(lambda: any(not body for _, body in list(upstream.requests)), "the question")
    assert [text(agent.call("act", {"tag": tag})) for tag in "ab"] == ["1", "2"]
    agent.leave()
    assert len(posted(upstream, "initialize")) == 1


def test_a_refusal_without_an_id_is_the_answer_to_its_request(place, upstream):
    agent = place.remote(upstream)
    upstream.session = "never given"
    error = agent.ask("tools/list")["error"]
    assert error == {"code": -32001, "message": "Session not found"}


# ---- over the wire ----


def test_up_to_2025_11_25_there_is_a_session(place, upstream):
    agent = place.remote(upstream, "--header", "Authorization=env:MAIL_AUTH,X-Team=env:TEAM", MAIL_AUTH="Bearer b", TEAM="a=b")
    agent.call("act")
    first, call = posted(upstream, "initialize")[0], posted(upstream, "tools/call")[0]
    assert "mcp-session-id" not in first and first["accept"] == "application/json, text/event-stream" and first["content-type"] == "application/json"
    assert call["mcp-session-id"] == "from-the-server" and call["mcp-protocol-version"] == "2025-06-18" and "mcp-method" not in call
    assert all(headers["authorization"] == "Bearer b" and headers["x-team"] == "a=b" for headers in (first, call))
    while agent.others.get(timeout=WAIT).get("method") != "notifications/x":  # of the stream that GET opened
        pass
    assert agent.leave() == 0 and upstream.ended == ["from-the-server"]


def test_since_2026_07_28_the_headers_say_what_the_body_says(place, upstream):
    agent = place.remote(upstream)
    agent.call("act", _meta=MODERN)
    agent.call("schön", _meta=MODERN)
    plain, coded = posted(upstream, "tools/call")
    assert (plain["mcp-protocol-version"], plain["mcp-method"], plain["mcp-name"]) == ("2026-07-28", "tools/call", "act")
    assert "mcp-session-id" not in plain and coded["mcp-name"] == f"=?base64?{base64.b64encode('schön'.encode()).decode()}?="


def test_since_2026_07_28_a_cancelled_request_is_hung_up(place, upstream):
    agent = place.remote(upstream)
    number = agent.begin_call("look", {"watch": True}, _meta=MODERN)
    until(lambda: upstream.calls, "the call")
    agent.send({"method": "notifications/cancelled", "params": {"requestId": number}})
    assert upstream.hung_up.wait(WAIT) and not posted(upstream, "notifications/cancelled")
    assert text(agent.call("look")) == "2" and number not in agent.answers


def test_notifications_arrive_in_their_order(place, upstream):
    agent = place.remote(upstream)
    agent.send({"method": "notifications/slow", "params": {"sleep": 0.5}})
    agent.send({"method": "notifications/fast"})
    agent.ask("tools/list")
    assert upstream.taken == ["notifications/initialized", "notifications/slow", "notifications/fast"]


def test_the_server_asks_and_the_client_answers(place, upstream):
    agent = place.remote(upstream)
    number = agent.begin_call("act", {"sample": True})
    message = agent.others.get(timeout=WAIT)
    while message.get("method") != "sampling/createMessage":
        message = agent.others.get(timeout=WAIT)
    agent.send({"id": message["id"], "result": {"said": "yes"}})
    assert text(agent.wait(number)) == "yes"


# ---- options ----


@pytest.mark.parametrize("words, said", [
    (["--upstream", "http://127.0.0.1:9/mcp"], "--allow-private"),
    (["--upstream", "http://localhost/mcp"], "--allow-private"),
    (["--upstream", "http://169.254.169.254/mcp", "--allow-private"], "169.254"),
    (["--upstream", "smtp://example.com"], "http"),
    (["--upstream", "http://example.com/", "--header", "Authorization=Bearer x"], "env:VARIABLE"),
    (["--upstream", "http://example.com/", "--header", "Authorization=env:NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
    (["--upstream", "http://example.com/", "--header", "Mcp-Name=env:HOME"], "Mcp-Name"),
    (["--upstream", "http://example.com/", "--", "true"], "either"),
    (["--header", "A=env:HOME", "--", "true"], "--upstream"),
    ([], "either"),
])
def test_what_cannot_be_meant_is_refused(tmp_path, words, said):
    done = subprocess.run([binary(), "mcp", "--data", str(tmp_path / "data"), *words], capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 64 and said in done.stderr, done.stderr


def test_headers_repeat_the_arguments_that_the_list_of_tools_names(place, upstream):
    agent = place.remote(upstream)  # it has asked for the list of tools
    for to in ("eu", "s\u00fcd"):
        assert "result" in agent.call("routed", {"to": to}, _meta=MODERN)
    assert [headers["mcp-param-region"] for headers in posted(upstream, "tools/call")] == ["eu", "=?base64?" + base64.b64encode("s\u00fcd".encode()).decode() + "?="]
    assert "result" in agent.call("routed", {"to": "old"})
    assert "mcp-param-region" not in posted(upstream, "tools/call")[-1]  # before 2026-07-28 there are none
