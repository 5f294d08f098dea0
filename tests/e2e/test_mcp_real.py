"""Real MCP clients and servers with semel between them, over stdio and HTTP, in both protocol eras: the effect happens once."""

import json
import os
import subprocess

import pytest

from interop.mcp_peers import INSPECTOR, LEGACY, MODERN
from semel_process import binary, free_port, until

WAIT = 300


def peers_or_skip(peers):
    if not peers.available():
        pytest.skip(f"npm could not provide the packages of {peers.folder.name}: python3 tools/interop.py")
    return peers


@pytest.fixture(params=["sdk 1.x", "sdk 2.x"])
def peers(request):
    return peers_or_skip(LEGACY if request.param == "sdk 1.x" else MODERN)


@pytest.fixture
def env(tmp_path):
    return {"SEMEL_URL": f"http://127.0.0.1:{free_port()}", "SEMEL_DATA": str(tmp_path / "data"), "COUNT": str(tmp_path / "count"), "XDG_STATE_HOME": str(tmp_path / "state")}


def through(command, *options):
    return {"command": binary(), "args": ["mcp", *options, "--", *command]}


def call(name, **arguments):
    return {"call": {"name": name, "arguments": arguments}}


def text(outcome):
    assert outcome["ok"], outcome
    return outcome["result"]["content"][0]["text"]


def replayed(outcome):
    return outcome["result"].get("_meta", {}).get("dev.semel/replayed", False)


def effects(env):
    try:
        return open(env["COUNT"]).read().split()
    except FileNotFoundError:
        return []


STEPS = [
    {"list": True},
    {"together": [call("bump", tag="a", ms=100), call("bump", tag="a", ms=100)]},  # a double dispatch
    {**call("bump", tag="b", ms=4000), "timeout": 200},  # the client gives up and cancels …
    call("bump", tag="b", ms=4000),  # … and the model tries again
    call("fails", tag="c"),
    call("peek"),
    call("peek"),
]


def check_steps(outcomes, env):
    both, given_up, again, failed, one, two = outcomes[-6:]
    assert {text(outcome) for outcome in both} == {"1"} and sorted(map(replayed, both)) == [False, True]
    assert not given_up["ok"] and text(again) == "2" and replayed(again)
    assert failed["result"]["isError"] and not replayed(failed)
    assert text(one) != text(two)  # what only reads is not remembered
    assert effects(env) == ["a", "b", "c", "peek", "peek"]


# ---- stdio ----


def test_over_stdio_each_effect_happens_once(peers, env):
    outcomes = peers.run({"stdio": through(peers.counter()), "steps": STEPS}, env)
    check_steps(outcomes, env)
    if peers is MODERN:
        assert outcomes[0]["protocol"] == "2026-07-28"


@pytest.mark.parametrize("with_semel", [False, True])
def test_a_retried_move_returns_the_first_success(peers, env, tmp_path, with_semel):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("x")
    server = peers.server("filesystem", str(root))
    move = call("move_file", source=str(root / "a"), destination=str(root / "b"))
    stdio = through(server) if with_semel else {"command": server[0], "args": server[1:]}
    first, second = peers.run({"stdio": stdio, "steps": [{"list": True}, move, move]}, env)[-2:]
    assert not first["result"].get("isError")
    assert bool(second["result"].get("isError")) is not with_semel
    if with_semel:
        assert replayed(second) and text(second) == text(first)


def test_the_memory_and_everything_servers_work_behind_it(env, tmp_path):
    peers = peers_or_skip(LEGACY)
    create = call("create_entities", entities=[{"name": "ada", "entityType": "person", "observations": ["first"]}])
    env = {**env, "MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    one, two, graph = peers.run({"stdio": through(peers.server("memory")), "steps": [{"list": True}, create, create, call("read_graph")]}, env)[-3:]
    assert text(one) == text(two) and replayed(two) and len(graph["result"]["structuredContent"]["entities"]) == 1
    echo = call("echo", message="hello")
    assert "hello" in text(peers.run({"stdio": through(peers.server("everything", "stdio")), "steps": [{"list": True}, echo]}, env)[-1])


def test_a_new_process_of_the_same_run_gets_the_result(peers, env):
    plan = {"stdio": through(peers.counter(), "--run", "ticket-7", "--server", "counter"), "steps": [{"list": True}, call("bump", tag="a")]}
    first, second = (peers.run(plan, env)[-1] for _ in range(2))
    assert text(first) == text(second) == "1" and replayed(second) and effects(env) == ["a"]


def test_the_inspector_is_a_third_client(env, tmp_path):
    peers = peers_or_skip(MODERN)
    (tmp_path / "a").write_text("x")
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"files": {**through(peers.server("filesystem", str(tmp_path)), "--run", "r"), "env": env}}}))
    words = [peers.node, str(INSPECTOR.resolve()), "--cli", "--config", str(config), "--server", "files", "--method", "tools/call", "--tool-name", "move_file",
             "--tool-arg", f"source={tmp_path / 'a'}", f"destination={tmp_path / 'b'}"]
    done = [subprocess.run(words, capture_output=True, text=True, timeout=WAIT, env={**os.environ, "HOME": str(tmp_path)}, stdin=subprocess.DEVNULL) for _ in range(2)]
    first, second = (json.loads(one.stdout) if one.returncode == 0 else pytest.fail(one.stderr + one.stdout) for one in done)
    assert not first.get("isError") and not second.get("isError") and second["_meta"]["dev.semel/replayed"] is True


# ---- HTTP ----

POLICY = """
destinations:
  up: {{provider: http, url: "http://127.0.0.1:{port}", allow_private: true}}
mcp:
  counter: {{destination: up}}
"""


@pytest.fixture
def http(peers, house, env, request):
    """A counting server over HTTP and a daemon in front of it."""
    port = free_port()
    server = peers.start_counter(port, env["COUNT"], **getattr(request, "param", {}))
    daemon = house.start("sqlite", policy=POLICY.format(port=port))
    yield peers, f"http://127.0.0.1:{daemon.port}/mcp/counter", server, daemon
    server.kill()
    server.wait()


@pytest.mark.parametrize("http", [{}, {"JSON_ANSWERS": "1"}], indirect=True, ids=["events", "json"])
def test_over_http_each_effect_happens_once(http, env):
    peers, url, _, _ = http
    outcomes = peers.run({"url": url, "steps": STEPS}, env)
    check_steps(outcomes, env)
    if peers is MODERN:
        assert outcomes[0]["protocol"] == "2026-07-28"


def drop_and_ask_again(peers, plan, env):
    dropped = subprocess.Popen([peers.node, "client.mjs", json.dumps(plan)], cwd=peers.folder, stdin=subprocess.DEVNULL)
    until(lambda: effects(env) == ["a"], "the first call")
    dropped.kill()
    dropped.wait()
    again = peers.run(plan, env)[-1]
    assert text(again) == "1" and replayed(again) and effects(env) == ["a"]


def test_over_http_a_dropped_client_gets_its_result_when_it_asks_again(http, env):
    peers, url, _, _ = http
    plan = {"url": url, "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, call("bump", tag="a", ms=2000)]}
    drop_and_ask_again(peers, plan, env)


def test_over_http_a_server_that_dies_leaves_it_unknown(http, env):
    peers, url, server, _ = http
    plan = {"url": url, "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, call("bump", tag="a", ms=30000)]}
    waiting = subprocess.Popen([peers.node, "client.mjs", json.dumps(plan)], cwd=peers.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    until(lambda: effects(env) == ["a"], "the first call")
    server.kill()
    outcome = json.loads(waiting.communicate(timeout=WAIT)[0])[-1]
    assert not outcome["ok"] and outcome["code"] == -32080 and outcome["data"]["intent"].startswith("int_")


# ---- stdio in front, HTTP behind ----


def in_front(port, *options):
    return {"command": binary(), "args": ["mcp", "--upstream", f"http://127.0.0.1:{port}/mcp", "--allow-private", *options]}


@pytest.fixture
def remote(peers, env, request):
    """A counting server over HTTP, without a daemon."""
    port = free_port()
    server = peers.start_counter(port, env["COUNT"], **getattr(request, "param", {}))
    yield peers, port, server
    server.kill()
    server.wait()


@pytest.mark.parametrize("remote", [{}, {"JSON_ANSWERS": "1"}], indirect=True, ids=["events", "json"])
def test_a_stdio_client_of_an_http_server_has_each_effect_once(remote, env):
    peers, port, _ = remote
    outcomes = peers.run({"stdio": in_front(port), "steps": STEPS}, env)
    check_steps(outcomes, env)
    if peers is MODERN:
        assert outcomes[0]["protocol"] == "2026-07-28"


def test_a_new_stdio_client_of_an_http_server_gets_the_result(remote, env):
    peers, port, _ = remote
    plan = {"stdio": in_front(port, "--run", "ticket-7"), "steps": [{"list": True}, call("bump", tag="a")]}
    first, second = (peers.run(plan, env)[-1] for _ in range(2))
    assert text(first) == text(second) == "1" and replayed(second) and effects(env) == ["a"]


def test_an_http_server_that_dies_leaves_the_call_of_a_stdio_client_unknown(remote, env):
    peers, port, server = remote
    plan = {"stdio": in_front(port, "--run", "ticket-7"), "steps": [{"list": True}, call("bump", tag="a", ms=30000), call("bump", tag="a", ms=30000)]}
    waiting = subprocess.Popen([peers.node, "client.mjs", json.dumps(plan)], cwd=peers.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    until(lambda: effects(env) == ["a"], "the first call")
    server.kill()
    outcomes = json.loads(waiting.communicate(timeout=WAIT)[0])[-2:]
    assert [(outcome["ok"], outcome["code"]) for outcome in outcomes] == [(False, -32080)] * 2 and effects(env) == ["a"]


def test_the_everything_server_works_over_http_behind_stdio(env):
    peers = peers_or_skip(LEGACY)
    port = free_port()
    server = subprocess.Popen(peers.server("everything", "streamableHttp"), cwd=peers.folder, env={**os.environ, "PORT": str(port)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    try:
        line = server.stderr.readline()
        while "listening" not in line:
            assert line, "the server ended"
            line = server.stderr.readline()
        echo = call("echo", message="hello")
        tools, first, second = peers.run({"stdio": in_front(port), "steps": [{"list": True}, echo, echo]}, env)
        assert "echo" in tools["tools"] and "hello" in text(first) and text(first) == text(second)
    finally:
        server.kill()
        server.wait()


# ---- HTTP in front, a command behind ----

COMMAND_POLICY = """
mcp:
  counter: {{command: {counter}, env: {{COUNT: "{count}"}}}}
  files: {{command: {files}}}
  memory: {{command: {memory}, env: {{MEMORY_FILE_PATH: "{root}/memory.jsonl"}}}}
  everything: {{command: {everything}}}
"""


@pytest.fixture
def bridged(peers, house, env, tmp_path):
    """A daemon that starts the servers itself."""
    root = tmp_path / "root"
    root.mkdir()
    servers = {"counter": peers.counter(), "files": peers.server("filesystem", str(root)), "memory": peers.server("memory"), "everything": peers.server("everything", "stdio")}
    daemon = house.start("sqlite", policy=COMMAND_POLICY.format(count=env["COUNT"], root=root, **{name: json.dumps(words) for name, words in servers.items()}))
    return peers, lambda name: f"http://127.0.0.1:{daemon.port}/mcp/{name}", root


def test_a_command_behind_http_has_each_effect_once(bridged, env):
    peers, url, _ = bridged
    outcomes = peers.run({"url": url("counter"), "steps": STEPS}, env)
    check_steps(outcomes, env)
    if peers is MODERN:
        assert outcomes[0]["protocol"] == "2026-07-28"


def test_a_retried_move_behind_http_returns_the_first_success(bridged, env):
    peers, url, root = bridged
    (root / "a").write_text("x")
    move = call("move_file", source=str(root / "a"), destination=str(root / "b"))
    plan = {"url": url("files"), "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, move, move]}
    first, second = peers.run(plan, env)[-2:]
    assert not first["result"].get("isError") and not replayed(first)
    assert replayed(second) and text(second) == text(first) and (root / "b").exists()
    assert all(replayed(outcome) and text(outcome) == text(first) for outcome in peers.run(plan, env)[-2:])  # another client of the run


def test_a_dropped_client_of_a_command_gets_its_result_when_it_asks_again(bridged, env):
    peers, url, _ = bridged
    plan = {"url": url("counter"), "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, call("bump", tag="a", ms=2000)]}
    drop_and_ask_again(peers, plan, env)


def test_two_clients_of_a_command_at_once(bridged, env):
    peers, url, _ = bridged
    plan = {"url": url("counter"), "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, call("bump", tag="a", ms=300), call("bump", tag="b", ms=300)]}
    clients = [subprocess.Popen([peers.node, "client.mjs", json.dumps(plan)], cwd=peers.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outcomes = [json.loads(client.communicate(timeout=WAIT)[0])[-2:] for client in clients]
    assert [text(outcome) for outcome in outcomes[0]] == [text(outcome) for outcome in outcomes[1]] and sorted(effects(env)) == ["a", "b"]
    assert all(sorted(map(replayed, pair)) == [False, True] for pair in zip(*outcomes))


def test_a_command_that_is_killed_leaves_it_unknown(bridged, env, tmp_path):
    peers, url, _ = bridged
    again = call("bump", tag="a", ms=30000)
    plan = {"url": url("counter"), "headers": {"Semel-Run": "ticket-7"}, "steps": [{"list": True}, again, again, call("bump", tag="b")]}
    waiting = subprocess.Popen([peers.node, "client.mjs", json.dumps(plan)], cwd=peers.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    until(lambda: effects(env) == ["a"], "the first call")
    for pid in servers_of(env):
        os.kill(pid, 9)
    first, second, other = json.loads(waiting.communicate(timeout=WAIT)[0])[-3:]
    assert [(outcome["ok"], outcome["code"]) for outcome in (first, second)] == [(False, -32080)] * 2
    assert text(other) == "2" and effects(env) == ["a", "b"]  # by another process, with the same handshake


def servers_of(env):
    """The processes of the counting server of this test: they alone have its COUNT."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words, variables = (open(f"/proc/{entry}/{name}").read().split("\0") for name in ("cmdline", "environ"))
        except OSError:
            continue
        if any(word.endswith("counter.mjs") for word in words) and f"COUNT={env['COUNT']}" in variables:
            found.append(int(entry))
    return found


def test_the_memory_and_everything_servers_work_as_commands(bridged, env):
    peers, url, _ = bridged
    if peers is MODERN:
        pytest.skip("its packages have no such servers")
    create = call("create_entities", entities=[{"name": "ada", "entityType": "person", "observations": ["first"]}])
    one, two, graph = peers.run({"url": url("memory"), "steps": [{"list": True}, create, create, call("read_graph")]}, env)[-3:]
    assert text(one) == text(two) and replayed(two) and len(graph["result"]["structuredContent"]["entities"]) == 1
    tools, echo = peers.run({"url": url("everything"), "steps": [{"list": True}, call("echo", message="hello")]}, env)[-2:]
    assert "echo" in tools["tools"] and "hello" in text(echo)
