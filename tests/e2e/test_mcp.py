"""`semel mcp`: each tool call is made once, whoever repeats it and whatever is killed, with a daemon or without one."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading

import pytest

from semel_process import binary, free_port, until

WAIT = 120  # generous; nothing is measured
SERVER = str(pathlib.Path(__file__).with_name("mcp_server.py"))
UNKNOWN, IN_PROGRESS, KEY_REUSED, NOT_KEPT, UNAVAILABLE, BUDGET = -32080, -32081, -32082, -32084, -32085, -32087


class Agent:
    """A client of `semel mcp`, with a line of its own for everything."""

    def __init__(self, directory, url, options=(), data=None, env=None, server=("--", sys.executable, SERVER)):
        self.count = pathlib.Path(directory) / "count"
        words = [binary(), "mcp", *(["--data", data] if data else []), *options, *server]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")}
        environment.update(SEMEL_URL=url, COUNT=str(self.count), XDG_STATE_HOME=str(pathlib.Path(directory) / "state"), **(env or {}))
        self.process = subprocess.Popen(words, cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.number, self.answers, self.others, self.said = 0, {}, queue.Queue(), []
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._overhear, daemon=True).start()
        self.ask("initialize", {"protocolVersion": "2025-06-18"})
        self.send({"method": "notifications/initialized"})
        self.ask("tools/list")

    def _listen(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                message = {"noise": line}
            with self.changed:
                if "id" in message and message["id"] is not None and "method" not in message:
                    assert message["id"] not in self.answers, f"answered twice: {message}"
                    self.answers[message["id"]] = message
                else:
                    self.others.put(message)
                self.changed.notify_all()

    def _overhear(self):
        for line in self.process.stderr:
            self.said.append(line.decode())

    def raw(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def begin(self, method, params=None, **more):
        self.number += 1
        self.send({"id": self.number, "method": method, **({"params": params} if params is not None else {}), **more})
        return self.number

    def wait(self, number):
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.answers, WAIT), f"no answer to {number}; {self.said}"
            return self.answers[number]

    def ask(self, method, params=None):
        return self.wait(self.begin(method, params))

    def begin_call(self, tool, arguments=None, **params):
        return self.begin("tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def call(self, tool, arguments=None, **params):
        return self.wait(self.begin_call(tool, arguments, **params))

    def effects(self):
        return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    def leave(self):
        self.process.stdin.close()
        return self.process.wait(WAIT)


def text(answer):
    return answer["result"]["content"][0]["text"]


def replayed(answer):
    return answer["result"].get("_meta", {}).get("dev.semel/replayed", False)


class Place:
    """Where agents work: with a daemon, or on the data itself."""

    def __init__(self, directory, url, data=None, daemon=None):
        self.directory, self.url, self.data, self.daemon, self.agents = directory, url, data, daemon, []

    def agent(self, *options, **env):
        self.agents.append(Agent(self.directory, self.url, options, self.data, env))
        return self.agents[-1]

    def end(self):
        for agent in self.agents:
            for pid in [agent.process.pid, *children(agent.process.pid)]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            agent.process.wait()


def children(pid):
    """The processes under this one, of whatever session."""
    table = {}
    for line in subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines():
        child, parent = map(int, line.split())
        table.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        more = table.get(todo.pop(), [])
        found += more
        todo += more
    return found


def runs(pid):
    """Also when it ended and nobody has asked how, it does not run any more."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(params=["daemon", "alone"])
def place(request, house, tmp_path):
    if request.param == "alone":
        made = Place(tmp_path, f"http://127.0.0.1:{free_port()}", data="data")
    else:
        daemon = house.start("sqlite")
        made = Place(tmp_path, f"http://127.0.0.1:{daemon.port}", daemon=daemon)
    yield made
    made.end()


# ---- once ----


def test_a_repeated_call_gets_the_first_result_under_its_own_id(place):
    agent = place.agent()
    first, second = agent.call("act", {"tag": "a", "n": 1}), agent.call("act", {"n": 1.0, "tag": "a"})
    other = agent.call("act", {"tag": "b", "n": 1})
    assert text(first) == text(second) == "act 1" and text(other) == "act 2"
    assert not replayed(first) and replayed(second) and not replayed(other)
    assert agent.effects() == 2
    assert agent.leave() == 0


def test_a_double_dispatch_runs_once(place):
    agent = place.agent()
    numbers = [agent.begin_call("act", {"sleep": 0.3}) for _ in range(8)]
    answers = [agent.wait(number) for number in numbers]
    assert {text(answer) for answer in answers} == {"act 1"} and agent.effects() == 1
    assert sum(replayed(answer) for answer in answers) == 7


def test_two_processes_of_one_run_share_it_and_two_sessions_do_not(place):
    one, two, other = place.agent("--run", "r"), place.agent("--run", "r"), place.agent()
    numbers = [(agent, agent.begin_call("act", {"sleep": 0.3})) for agent in (one, two)]
    assert {text(agent.wait(number)) for agent, number in numbers} == {"act 1"}
    assert text(other.call("act", {"sleep": 0.3})) == "act 2"


def test_tools_that_only_read_pass(place):
    agent = place.agent("--read-only", "act")
    assert [text(agent.call("look")) for _ in range(2)] == ["look 1", "look 2"]
    assert [text(agent.call("act")) for _ in range(2)] == ["act 3", "act 4"]
    assert replayed(agent.call("put")) is False and replayed(agent.call("put")) is True


def test_identity_arguments_make_the_call_and_the_others_do_not(place):
    agent = place.agent("--key-fields", "act=tag")
    assert text(agent.call("act", {"tag": "a", "body": "hello"})) == "act 1"
    assert text(agent.call("act", {"tag": "a", "body": "hello there"})) == "act 1"
    assert text(agent.call("act", {"tag": "b", "body": "hello"})) == "act 2"


def test_a_given_key_holds_across_runs_and_stands_for_its_arguments(place):
    one, two = place.agent("--server", "s"), place.agent("--server", "s")
    assert text(one.call("act", {"tag": "a"}, idempotencyKey="k")) == "act 1"
    assert text(two.call("act", {"tag": "a"}, _meta={"dev.semel/key": "k"})) == "act 1"
    assert text(two.call("act", {"tag": "a", "idempotency_key": "k"})) == "act 1"
    assert two.call("act", {"tag": "b"}, idempotencyKey="k")["error"]["code"] == KEY_REUSED
    assert one.effects() == 1


def test_repeats_are_new_calls_only_where_the_rules_say_so(place, tmp_path):
    agent = place.agent("--repeat", "act")
    assert [text(agent.call("act", {"tag": "a"})) for _ in range(3)] == ["act 1", "act 2", "act 3"]
    gate = tmp_path / "gate"
    numbers = [agent.begin_call("act", {"tag": "b", "gate": str(gate)}) for _ in range(2)]  # the first is not answered yet
    agent.ask("echo")  # both have been read
    gate.touch()
    assert {text(agent.wait(number)) for number in numbers} == {"act 4"}


# ---- what is not remembered ----


def test_an_error_of_the_tool_is_not_remembered(place):
    agent = place.agent()
    assert agent.call("act", {"bad": True})["result"]["isError"] is True
    assert agent.call("act", {"bad": True})["result"]["isError"] is True
    assert agent.effects() == 2


def test_a_protocol_error_passes_and_what_may_have_happened_is_held(place):
    agent = place.agent()
    assert [agent.call("act", {"code": -32602})["error"]["code"] for _ in range(2)] == [-32602, -32602]
    assert agent.call("act", {"code": -32603})["error"]["code"] == -32603
    held = agent.call("act", {"code": -32603})["error"]
    assert held["code"] == UNKNOWN and held["data"]["intent"].startswith("int_") and "semel why" in held["message"]
    assert [agent.call("put", {"code": -32603})["error"]["code"] for _ in range(2)] == [-32603, -32603]  # it says that it may be repeated
    assert agent.effects() == 5


def test_a_question_is_not_an_answer(place):
    agent = place.agent()
    assert agent.call("act", {"ask": True})["result"]["resultType"] == "input_required"
    assert text(agent.call("act", {"ask": True}, inputResponses={"a": 1}, requestState="s")) == "act 2"
    assert replayed(agent.call("act", {"ask": True}))


def test_a_result_that_is_too_large_is_given_once(place):
    agent = place.agent()
    assert len(text(agent.call("act", {"large": 2_000_000}))) == 2_000_000
    assert agent.call("act", {"large": 2_000_000})["error"]["code"] == NOT_KEPT
    assert agent.effects() == 1


# ---- what passes ----


def test_everything_else_passes_byte_for_byte(place):
    agent = place.agent()
    line = b' {"id" : "\\u00e9 x", "method":"echo","params":{"a":1.50,"b":"\\ud800"},"extra":[]}'
    agent.raw(line + b"\n")
    with agent.changed:
        assert agent.changed.wait_for(lambda: "é x" in agent.answers, WAIT)
    assert agent.answers["é x"]["result"]["line"].encode() == line + b"\n"
    assert agent.others.get(timeout=WAIT) == {"noise": b"this line is no message\n"}
    assert agent.ask("no/such/method")["error"]["code"] == -32601
    while agent.others.get(timeout=WAIT).get("method") != "notifications/seen":
        pass
    agent.call("act", {"tag": "p"}, _meta={"progressToken": "t"})
    assert agent.others.get(timeout=WAIT)["params"] == {"progressToken": "t", "progress": 1}


@pytest.mark.parametrize("line", [
    b'{"id":1,"method":"ping","method":"tools/call","params":{"name":"act"}}',
    b'{"id":1,"method":"tools\\/call","params":{"name":"act"}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}]',
    b'{"method":"tools/call","params":{"name":"act"}}',
    b'{"id":null,"method":"tools/call","params":{"name":"act"}}',
    b'{"id":77,"method":"tools/call","params":{"name":"act","name":"look"}}',
])
def test_a_tool_call_cannot_hide(place, line):
    agent = place.agent()
    agent.raw(line + b"\n")
    agent.ask("echo")
    assert agent.effects() == 0


# ---- what breaks ----


def test_a_cancelled_call_is_finished_and_given_to_the_next(place, tmp_path):
    agent = place.agent()
    gate = tmp_path / "gate"
    number = agent.begin_call("act", {"gate": str(gate)})
    until(lambda: agent.effects() == 1, "the first call")
    agent.send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "time-out"}})
    again = agent.begin_call("act", {"gate": str(gate)})
    agent.ask("echo")  # all of it has been read
    gate.touch()
    answer = agent.wait(again)
    assert text(answer) == "act 1" and replayed(answer) and agent.effects() == 1
    agent.ask("echo")
    assert number not in agent.answers
    seen = [agent.others.get_nowait() for _ in range(agent.others.qsize())]
    assert not any("cancelled" in message.get("params", {}).get("line", "") for message in seen)  # it would have stopped half-way
    agent.send({"method": "notifications/cancelled", "params": {"requestId": "other"}})
    agent.ask("echo")
    assert "cancelled" in agent.others.get(timeout=WAIT)["params"]["line"]


@pytest.mark.parametrize("how", ["closes", "terminated", "killed"])
def test_a_client_that_leaves_does_not_end_the_call(place, tmp_path, how):
    agent, gate = place.agent("--run", "r"), tmp_path / "gate"
    agent.begin_call("act", {"gate": str(gate)})
    until(lambda: agent.effects() == 1, "the first call")
    worker = children(agent.process.pid)
    if how == "terminated":
        agent.process.terminate()
    elif how == "killed":
        agent.process.kill()
        agent.process.wait()
    agent.process.stdin.close()
    next_agent = place.agent("--run", "r")
    number = next_agent.begin_call("act", {"gate": str(gate)})
    gate.touch()
    answer = next_agent.wait(number)
    assert text(answer) == "act 1" and replayed(answer) and next_agent.effects() == 1
    until(lambda: not any(map(runs, worker)), "the end of what the client left behind")


def test_a_proxy_that_is_killed_whole_leaves_it_unknown(place, tmp_path):
    agent = place.agent("--run", "r", "--lease", "1s")
    agent.begin_call("act", {"gate": str(tmp_path / "never")})
    until(lambda: agent.effects() == 1, "the first call")
    for pid in [agent.process.pid, *children(agent.process.pid)]:
        os.kill(pid, signal.SIGKILL)
    agent.process.wait()
    answer = place.agent("--run", "r", "--lease", "1s").call("act", {"gate": str(tmp_path / "never")})
    assert answer["error"]["code"] == UNKNOWN and agent.effects() == 1


def test_a_server_that_dies_leaves_it_unknown_and_is_started_again(place):
    agent = place.agent()
    dead = agent.call("act", {"die": True})["error"]
    assert dead["code"] == UNKNOWN and dead["data"]["intent"].startswith("int_")
    assert agent.call("act", {"die": True})["error"]["code"] == UNKNOWN
    assert text(agent.call("act", {"tag": "other"})) == "act 2"  # the next server took the handshake
    assert agent.call("put", {"die": True})["result"]
    assert agent.effects() == 3


def test_a_long_call_keeps_its_claim(place):
    agent = place.agent("--lease", "4s", "--run", "r")  # a heartbeat may be late by more than two seconds
    number = agent.begin_call("act", {"sleep": 6})
    other = place.agent("--lease", "4s", "--run", "r")
    assert replayed(other.call("act", {"sleep": 6})) and text(agent.wait(number)) == "act 1"
    assert agent.effects() == 1


# ---- without a ledger ----


def test_without_a_ledger_no_tool_is_called_unless_told_so(tmp_path):
    nowhere = Place(tmp_path, f"http://127.0.0.1:{free_port()}")
    try:
        agent = nowhere.agent()
        assert agent.call("act")["error"]["code"] == UNAVAILABLE and agent.effects() == 0
        assert text(agent.call("look")) == "look 1"
        assert text(nowhere.agent("--if-unreachable", "call").call("act")) == "act 2"
    finally:
        nowhere.end()


# ---- the policy ----

POLICY = """
workflows:
  watched: {mode: shadow}
mcp:
  files: {annotations: ignore, calls_per_run: 4, tools: {act: {key: [tag], on_error: hold}, look: {read_only: false}}}
  seen: {workflow: watched}
"""


def test_the_policy_says_what_the_tools_are(house, tmp_path):
    daemon = house.start("sqlite", policy=POLICY)
    place = Place(tmp_path, f"http://127.0.0.1:{daemon.port}")
    try:
        agent = place.agent("--server", "files")
        assert [text(agent.call("look")) for _ in range(2)] == ["look 1", "look 1"]
        assert agent.call("act", {"tag": "a", "bad": True})["result"]["isError"]
        assert agent.call("act", {"tag": "a"})["error"]["code"] == UNKNOWN
        over = agent.call("act", {"tag": "b"})["error"]
        assert over["code"] == BUDGET and "calls_per_run" in over["message"] and agent.effects() == 2
        seen = place.agent("--server", "seen")
        assert [text(seen.call("act", {"tag": "s"})) for _ in range(2)] == ["act 3", "act 4"]  # shadow mode lets everything through
    finally:
        place.end()


# ---- what is counted ----

COUNTED = """
mcp:
  few: {calls_per_run: 6, tools: {look: {read_only: true}, act: {repeat: 0s}}}
"""


@pytest.fixture(params=["daemon", "alone"])
def counted(request, house, tmp_path):
    """The ledger has the policy, whoever uses it."""
    daemon = house.start("sqlite", policy=COUNTED)
    made = Place(tmp_path, f"http://127.0.0.1:{daemon.port}", daemon=daemon)
    if request.param == "alone":
        daemon.stop()
        made = Place(tmp_path, f"http://127.0.0.1:{free_port()}", data=str(daemon.data))
    yield made
    made.end()


def code(answer):
    return answer.get("error", {}).get("code")


def test_a_budget_of_a_run_holds_for_the_next_process_and_a_daemon_that_restarts(counted, house):
    options = ("--server", "few", "--run", "r")
    first = counted.agent(*options)
    assert [code(first.call("look")) for _ in range(2)] == [None, None] and code(first.call("act", {"tag": "a"})) is None
    assert first.leave() == 0
    if counted.daemon:
        counted.daemon.kill()
        counted.daemon.start()
    second = counted.agent(*options)
    assert [code(second.call("act", {"tag": str(n)})) for n in range(3)] == [None] * 3
    assert code(second.call("act", {"tag": "z"})) == BUDGET == code(second.call("look")) and second.effects() == 6
    assert code(counted.agent("--server", "few", "--run", "other").call("look")) is None


def test_two_processes_at_once_share_the_budget_of_their_run(counted):
    agents = [counted.agent("--server", "few", "--run", "r") for _ in range(2)]
    numbers = [[agent.begin_call("act", {"tag": f"{n}{k}"}) for k in range(5)] for n, agent in enumerate(agents)]
    codes = [code(agent.wait(number)) for agent, mine in zip(agents, numbers) for number in mine]
    assert sorted(map(str, codes)) == [str(BUDGET)] * 4 + ["None"] * 6 and agents[0].effects() == 6


def test_a_repeat_is_counted_on_by_the_next_process_and_shared_by_another(counted, tmp_path):
    options = ("--server", "few", "--run", "r")
    one, two = counted.agent(*options), counted.agent(*options)
    assert text(one.call("act", {"tag": "a"})) == "act 1"
    assert text(two.call("act", {"tag": "a"})) == "act 2"  # the one before was answered, elsewhere
    waiting = one.begin_call("act", {"tag": "b", "gate": str(tmp_path / "gate")})
    until(lambda: one.effects() == 3, "the call")
    one.send({"method": "notifications/cancelled", "params": {"requestId": waiting}})
    one.ask("ping")  # by now it was taken: nobody will be given that answer
    (tmp_path / "gate").touch()
    again = two.call("act", {"tag": "b", "gate": str(tmp_path / "gate")})
    assert text(again) == "act 3" and replayed(again)  # so this is still the same call
    assert one.leave() == 0 == two.leave()
    third = counted.agent(*options)
    assert text(third.call("act", {"tag": "a"})) == "act 4" and not replayed(third.call("act", {"tag": "b", "gate": str(tmp_path / "gate")}))
