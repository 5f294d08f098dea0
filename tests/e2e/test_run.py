"""`semel run`: a command is run once for its key, whoever starts it again, whatever is killed, with a daemon or without one."""

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from fault_proxy import Fault, FaultProxy
from semel_process import binary, free_port, until

WAIT = 120  # generous; nothing is measured


class Runner:
    """Runs `semel run` in a directory of its own, with a state directory of its own."""

    def __init__(self, directory, url, options=()):
        self.directory, self.url, self.options = pathlib.Path(directory), url, list(options)
        self.state = self.directory / "state"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")}
        self.env.update(XDG_STATE_HOME=str(self.state), SEMEL_URL=url)

    def words(self, *words):
        """The options of the run, `--`, the command; a text is a shell script."""
        cut = words.index("--")
        command = ["sh", "-c", words[-1]] if len(words) - cut == 2 and " " in words[-1] else list(words[cut + 1:])
        return [binary(), "run", *self.options, *words[:cut], "--", *command]

    def start(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(self.words(*words), cwd=self.directory, env=self.env, start_new_session=True, **options)

    def __call__(self, *words, **options):
        return finished(self.start(*words, **options))

    def semel(self, *words):
        return subprocess.run([binary(), *words], cwd=self.directory, env=self.env, capture_output=True, timeout=WAIT, stdin=subprocess.DEVNULL)

    def spooled(self, end=".json"):
        return sorted(path for path in (self.state / "semel" / "spool").glob("*") if path.name.endswith(end))

    def count(self, name="count"):
        path = self.directory / name
        return len(path.read_text().splitlines()) if path.exists() else 0


def finished(process):
    process.out, process.err = process.communicate(timeout=WAIT)
    process.err = process.err.decode("utf-8", "replace") if process.err is not None else None
    return process


def kill(process):
    """kill -9, of semel run alone; what it runs goes on, as a machine's other processes do."""
    process.kill()
    process.wait()


def end_group(process):
    """What a test leaves behind: the command has a group of its own, so it is found by its parent's session."""
    for line in subprocess.run(["ps", "-e", "-o", "pid=,sess="], capture_output=True, text=True, check=True).stdout.splitlines():
        pid, session = line.split()
        if int(session) == process.pid:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass


@pytest.fixture
def daemon(house, storage):
    return house.start(storage)


@pytest.fixture
def run(daemon, tmp_path):
    """With a daemon."""
    return Runner(tmp_path, f"http://127.0.0.1:{daemon.port}")


@pytest.fixture
def alone(tmp_path):
    """Without a daemon, on the data itself."""
    return Runner(tmp_path, f"http://127.0.0.1:{free_port()}", ["--data", "data"])


@pytest.fixture(params=["sqlite", "postgres", "alone"])
def either(request, house, tmp_path):
    if request.param == "alone":
        return request.getfixturevalue("alone")
    return Runner(tmp_path, f"http://127.0.0.1:{house.start(request.param).port}")


# ---- once ----


def test_a_duplicate_gets_the_same_bytes_and_exit_code_and_runs_nothing(either):
    script = "echo x >>count; echo out; sleep 0.2; echo err >&2; sleep 0.2; printf 'a\\377\\000\\033[2J\\n'"
    first = either("--key", "k", "--", script)
    again = either("--key", "k", "--", script)
    assert first.returncode == again.returncode == 0
    assert first.out == again.out == b"out\na\xff\0\x1b[2J\n"
    assert first.err == "err\n"
    line, rest = again.err.split("\n", 1)
    assert line.startswith("semel: already done at ") and line.endswith(" ago), replaying its output, exit 0"), line
    assert rest == "err\n"
    assert either.count() == 1


def test_a_claim_whose_answer_was_lost_is_sent_again(daemon, run):
    """Its lease is still held, by ourselves: the nonce says so."""
    faults = [Fault(response=10)]
    proxy = FaultProxy(daemon.port, lambda: faults.pop() if faults else Fault())
    run.env["SEMEL_URL"] = f"http://127.0.0.1:{proxy.port}"
    ran = run("--key", "k", "--lease", "60s", "--on-running", "fail", "--", "echo once >> count")
    assert ran.returncode == 0, ran.err
    assert run.count() == 1 and proxy.faults == 1
    assert run("--key", "k", "--", "echo twice >> count").returncode == 0 and run.count() == 1
    proxy.close()


def test_the_order_of_both_streams_is_kept(either):
    """The script says nothing more before what it said has come through."""
    script = "for i in 1 2 3; do echo out$i; read go; echo err$i >&2; read go; done"
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    first, seen = either.start("--key", "k", "--", script, stdin=subprocess.PIPE, **both), []
    for _ in range(6):
        seen.append(first.stdout.readline())
        first.stdin.write(b"\n")
        first.stdin.flush()
    assert finished(first).returncode == 0 and seen == [b"out1\n", b"err1\n", b"out2\n", b"err2\n", b"out3\n", b"err3\n"]
    again = either("--key", "k", "--", script, **both)
    assert again.out.splitlines(keepends=True)[1:] == seen


def test_another_key_or_workflow_is_another_run(either):
    for options in (["--key", "a"], ["--key", "b"], ["--key", "a", "--workflow", "other"]):
        assert either(*options, "--", "echo x >>count; true").returncode == 0
    assert either.count() == 3


def test_every_byte_and_naughty_text_comes_back(either, tmp_path):
    every = bytes(range(256)) * 40
    naughty = "ﷺ\u202e\u2066 ‮ 田中 👩‍🚀 \\n \" ' \x00 \ufeff \U0010ffff\r\n".encode() * 50
    for number, text in enumerate([b"", b"\n", b"\0", every, naughty, naughty[:-1] + b"\xf0\x9f", b"\xed\xa0\x80", b"x" * 100000]):
        (tmp_path / "file").write_bytes(text)
        first = either("--key", f"k{number}", "--", "cat", "file")
        (tmp_path / "file").write_bytes(b"changed")
        again = either("--key", f"k{number}", "--", "cat", "file")
        assert first.out == again.out == text
        assert first.returncode == again.returncode == 0


def test_output_over_the_limit_goes_through_and_is_kept_in_part(either):
    script = "head -c 3000000 /dev/zero | tr '\\0' 'y'; echo end >&2"
    first = either("--key", "k", "--", script)
    again = either("--key", "k", "--", script)
    assert first.out == b"y" * 3000000 and first.err == "end\n"
    assert again.out == b"y" * (512 << 10)
    assert "the output was longer than was kept: it had 3000004 bytes" in again.err
    assert again.returncode == 0
    assert either("--key", "small", "--output-max", "10", "--", "echo 123456789abc").out == b"123456789abc\n"
    assert either("--key", "small", "--", "echo 123456789abc").out == b"123456789a"


def test_the_most_that_can_be_kept_is_taken_in_its_worst_form(either):
    script = "head -c 716800 /dev/zero | tr '\\0' '\\377'"
    first = either("--key", "k", "--output-max", "700K", "--", script)
    again = either("--key", "k", "--", script)
    assert first.out == again.out == b"\xff" * 716800
    assert "longer" not in again.err


def test_many_small_pieces_in_turns_come_back(either):
    script = "i=0; while [ $i -lt 3000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
    first = either("--key", "k", "--", script)
    again = either("--key", "k", "--", script)
    assert again.out == first.out
    assert again.err.split("\n", 1)[1] == first.err


def test_output_need_not_be_replayed_or_captured(either):
    assert either("--key", "k", "--", "echo out; true").out == b"out\n"
    again = either("--key", "k", "--no-replay-output", "--", "echo out; true")
    assert (again.returncode, again.out) == (0, b"")
    assert again.err.rstrip().endswith("ago), exit 0") and "replaying" not in again.err
    assert either("--key", "n", "--no-capture", "--", "echo out; true").out == b"out\n"
    again = either("--key", "n", "--no-capture", "--", "echo out; true")
    assert (again.returncode, again.out) == (0, b"") and "exit 0" in again.err


def test_the_command_finds_its_claim_in_the_environment_and_its_stdin(either):
    script = 'cat; echo "$SEMEL_KEY|$SEMEL_ATTEMPT|$SEMEL_INTENT|$SEMEL_DOWNSTREAM_KEY"; exit 3'
    (either.directory / "in").write_bytes(b"input\n")
    for attempt in ("1", "2"):
        with open(either.directory / "in", "rb") as stdin:
            ran = either("--key", "k:1", "--", script, stdin=stdin)
        given, said = ran.out.decode().splitlines()
        key, number, intent, downstream = said.split("|")
        assert (given, key, number) == ("input", "k:1", attempt)
        assert intent.startswith("int_") and downstream.startswith("sml-")


def test_time_parts_of_the_key_are_filled_in(either):
    day = either("--key", "digest:{day}", "--zone", "Europe/Paris", "--", 'echo "$SEMEL_KEY"').out.decode().strip()
    assert day[:7] == "digest:" and len(day) == 17 and day[11] == day[14] == "-"
    assert either("--key", day, "--", "echo other").out.decode().strip() == day  # the same key, given as text
    plain = either("--key", "d:$(date)", "--", 'echo "$SEMEL_KEY"')
    assert plain.out == b"d:$(date)\n"
    assert either("--key", "{lead_id}", "--", "true").returncode == 64


def test_another_command_under_the_same_key_is_pointed_out(either):
    assert either("--key", "k", "--", "echo", "one").out == b"one\n"
    again = either("--key", "k", "--", "printf", "two")
    assert again.out == b"one\n" and "WARNING: that was another command under the same key: echo" in again.err


# ---- how it ended ----


def test_a_failure_is_tried_again_by_default(either):
    failing = [either("--key", "f", "--", "echo x >>fails; exit 9").returncode for _ in range(3)]
    assert failing == [9, 9, 9] and either.count("fails") == 3
    assert either("--key", "f", "--", "echo x >>fails; true").returncode == 0
    assert either("--key", "f", "--", "echo x >>fails; exit 9").returncode == 0
    assert either.count("fails") == 4


def test_a_failure_can_be_remembered(either):
    for _ in range(2):
        ran = either("--key", "k", "--on-error", "remember", "--", "echo x >>count; echo out; exit 9")
        assert (ran.returncode, ran.out) == (9, b"out\n")
    assert either.count() == 1 and "exit 9" in ran.err


def test_a_failure_can_be_left_to_a_person(either):
    first = either("--key", "k", "--on-error", "unknown", "--", "echo x >>count; exit 9")
    assert first.returncode == 9 and "semel fail int_" in first.err
    for options in ([], ["--on-error", "unknown"]):
        again = either("--key", "k", *options, "--", "echo x >>count; true")
        assert again.returncode == 76 and "semel confirm int_" in again.err
    assert either.count() == 1
    assert either("--key", "k", "--on-error", "unknown", "--on-crash", "retry", "--", "true").returncode == 64


def test_a_person_settles_what_is_unknown(run):
    run("--key", "k", "--on-error", "unknown", "--", "exit 9 ")
    told = run("--key", "k", "--", "echo ran").err
    words = told[told.index("semel fail int_"):].split(" when")[0].split()
    assert run.semel(*words[1:]).returncode == 0
    assert run("--key", "k", "--", "echo ran").out == b"ran\n"
    run("--key", "c", "--on-error", "unknown", "--", "exit 9 ")
    told = run("--key", "c", "--", "echo ran").err
    words = told[told.index("semel confirm int_"):].split(" when")[0].split()
    assert run.semel(*words[1:], "--result", '{"by":"hand"}').returncode == 0
    again = run("--key", "c", "--", "echo ran")
    assert again.returncode == 0 and json.loads(again.out) == {"by": "hand"}


def test_a_command_that_cannot_be_started_leaves_nothing_behind(either):
    missing = either("--key", "k", "--", "no-such-command-here", "x")
    assert missing.returncode == 127 and "could not be started" in missing.err
    (either.directory / "plain").write_text("no program")
    assert either("--key", "k", "--", "./plain").returncode == 126
    assert either("--key", "k", "--", "echo ran").out == b"ran\n"


def test_a_command_that_a_signal_ended_has_its_number(either):
    assert either("--key", "k", "--on-error", "remember", "--", "kill -KILL $$ ; true").returncode == 137
    again = either("--key", "k", "--", "true")
    assert again.returncode == 137


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_are_passed_on(either, name):
    script = f"trap 'echo got {name}; exit 5' {name}; echo ready; while :; do sleep 0.05; done"
    process = either.start("--key", "k", "--on-error", "remember", "--", script)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, f"SIG{name}"))
    ended = finished(process)
    assert (ended.returncode, ended.out) == (5, f"got {name}\n".encode())
    again = either("--key", "k", "--", script)
    assert (again.returncode, again.out) == (5, f"ready\ngot {name}\n".encode())


def test_signals_reach_the_whole_group_of_the_command(either):
    process = either.start("--key", "k", "--", "sh -c 'trap \"echo inner >>got; exit\" TERM; echo ready; while :; do sleep 0.05; done' ; true")
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    finished(process)
    until(lambda: either.count("got") == 1, "the trap of the inner shell, which nobody waits for")


def test_a_reader_that_leaves_ends_the_command_as_ever(either):
    process = either.start("--key", "k", "--", "yes ; true")
    assert process.stdout.read(100000)
    process.stdout.close()
    process.stderr.close()
    process.wait(timeout=WAIT)


def test_a_background_process_does_not_hold_the_run(either):
    process = either("--key", "k", "--", "sleep 300 & echo $! ; true")
    assert process.returncode == 0
    os.kill(int(process.out), signal.SIGKILL)


# ---- at the same time ----


def test_twenty_at_once_run_it_once(either):
    processes = [either.start("--key", "k", "--", "echo x >>count; sleep 0.5; echo out") for _ in range(20)]
    for process in processes:
        finished(process)
    assert [(process.returncode, process.out) for process in processes] == [(0, b"out\n")] * 20
    assert either.count() == 1


def running(either, *options, key="k", script="echo ready; while [ ! -e go ]; do sleep 0.05; done; echo out"):
    process = either.start("--key", key, *options, "--", script)
    assert process.stdout.readline() == b"ready\n"
    return process


def test_an_overlapping_run_waits_skips_or_fails(either):
    first = running(either)
    skipped = either("--key", "k", "--on-running", "skip", "--", "echo x >>count")
    assert (skipped.returncode, skipped.out) == (0, b"") and "skipped" in skipped.err
    failed = either("--key", "k", "--on-running", "fail", "--", "echo x >>count")
    assert failed.returncode == 75 and "running elsewhere" in failed.err
    late = either("--key", "k", "--wait", "300ms", "--", "echo x >>count")
    assert late.returncode == 75 and "still running elsewhere" in late.err
    waiting = either.start("--key", "k", "--", "echo x >>count")
    assert b"waiting for it" in waiting.stderr.readline()
    (either.directory / "go").touch()
    assert (finished(first).out, finished(waiting).out) == (b"out\n", b"ready\nout\n")
    assert waiting.returncode == 0 and either.count() == 0


def test_a_waiting_run_goes_ahead_when_the_first_fails(either):
    first = running(either, script="echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 3")
    waiting = either.start("--key", "k", "--", "echo mine $SEMEL_ATTEMPT")
    assert b"waiting for it" in waiting.stderr.readline()
    (either.directory / "go").touch()
    assert finished(first).returncode == 3
    assert (finished(waiting).returncode, waiting.out) == (0, b"mine 2\n")


def test_heartbeats_keep_the_claim_far_beyond_its_lease(either):
    first = running(either, "--lease", "4s")  # a heartbeat may be late by more than two seconds
    time.sleep(5.5)
    assert either("--key", "k", "--on-running", "fail", "--", "echo x >>count").returncode == 75
    (either.directory / "go").touch()
    assert finished(first).returncode == 0 and "WARNING" not in first.err
    assert either("--key", "k", "--", "echo x >>count").out == b"ready\nout\n"


# ---- what is killed ----


def test_a_killed_run_is_unknown(either):
    first = running(either, "--lease", "500ms")
    kill(first)
    again = either("--key", "k", "--", "echo x >>count")
    assert again.returncode == 76 and "nobody can tell" in again.err
    assert either("--key", "k", "--on-crash", "retry", "--", "echo x >>count").returncode == 76  # it was not told so before
    assert either.count() == 0
    end_group(first)


def test_without_a_daemon_a_killed_run_is_noticed_whatever_its_lease(alone):
    first = running(alone, "--lease", "24h", "--on-crash", "retry")
    assert alone("--key", "k", "--on-running", "fail", "--", "echo x >>count").returncode == 75
    waiting = alone.start("--key", "k", "--on-crash", "retry", "--", "echo mine $SEMEL_ATTEMPT")
    assert b"waiting for it" in waiting.stderr.readline()
    kill(first)
    assert (finished(waiting).returncode, waiting.out) == (0, b"mine 2\n")
    assert alone.count() == 0
    end_group(first)


def test_a_killed_run_is_run_again_when_told_so(either):
    first = running(either, "--lease", "500ms", "--on-crash", "retry")
    kill(first)
    again = either("--key", "k", "--on-crash", "retry", "--", "echo mine $SEMEL_ATTEMPT")
    assert (again.returncode, again.out) == (0, b"mine 2\n")
    assert "an earlier run of int_" in again.err and "may have happened" in again.err
    end_group(first)


def test_the_policy_says_what_a_crash_means_unless_the_run_does(house, tmp_path):
    daemon = house.start("sqlite", policy="workflows:\n  again: {on_unknown: retry}\n")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}")
    for options, code in ((["--workflow", "again"], 0), (["--workflow", "again", "--on-crash", "unknown"], 76), ([], 76)):
        first = running(run, *options, "--lease", "500ms", key=f"k{code}")
        kill(first)
        assert run("--key", f"k{code}", *options, "--", "echo mine").returncode == code
        end_group(first)


def test_the_daemon_may_be_killed_and_started_again_while_the_command_runs(daemon, run):
    first = running(run, "--lease", "30s")
    daemon.kill()
    (run.directory / "go").touch()
    assert b"cannot be delivered yet" in first.stderr.readline()
    daemon.start()
    assert (finished(first).returncode, first.out) == (0, b"out\n")
    assert run.spooled() == []
    assert run("--key", "k", "--", "echo x >>count").out == b"ready\nout\n"


def lease_until(client):
    return client.get("/v1/intents?workflow=run").json["data"][0]["lease_until"]


def wait_for_a_heartbeat(client):
    before = lease_until(client)
    until(lambda: lease_until(client) > before, "a heartbeat")


def test_a_restart_long_before_the_end_goes_unnoticed(house, daemon, run):
    first = running(run, "--lease", "15s")
    assert daemon.stop() == 0
    daemon.start()
    wait_for_a_heartbeat(house.client(daemon))
    (run.directory / "go").touch()
    assert finished(first).returncode == 0 and "WARNING" not in first.err
    assert run("--key", "k", "--", "echo x >>count").out == b"ready\nout\n"


def spool_one(daemon, run, key="k", script=None):
    """A run whose daemon is gone when it ends, and whose user loses patience."""
    first = running(run, "--lease", "1s", key=key, **({"script": script} if script else {}))
    daemon.stop()
    (run.directory / "go").touch()
    until(lambda: b"cannot be delivered yet" in first.stderr.readline(), "the first attempt to deliver")
    first.terminate()
    first = finished(first)
    (run.directory / "go").unlink()
    return first


def test_a_result_that_cannot_be_delivered_is_spooled_and_delivered_by_the_next_run(daemon, run):
    first = spool_one(daemon, run)
    assert first.returncode == 0 and "is kept in" in first.err
    (path,) = run.spooled()
    assert path.stat().st_mode & 0o777 == 0o600
    daemon.start()
    again = run("--key", "k", "--", "echo x >>count")
    assert (again.returncode, again.out) == (0, b"ready\nout\n")
    assert "delivered the result of an earlier run" in again.err
    assert run.spooled() == [] and run.count() == 0


def test_a_spooled_result_settles_what_became_unknown(house, daemon, run):
    spool_one(daemon, run)
    daemon.start()
    client = house.client(daemon)
    until(lambda: client.get("/v1/intents?workflow=run").json["data"][0]["state"] == "unknown", "the lapse")
    status = run.semel("status")
    assert status.returncode == 0 and b"delivered the result of an earlier run" in status.stderr
    assert client.get("/v1/intents?workflow=run").json["data"][0]["state"] == "confirmed"
    assert run("--key", "k", "--", "echo x >>count").out == b"ready\nout\n"


def test_a_spooled_failure_is_delivered_too(daemon, run):
    first = spool_one(daemon, run, script="echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 4")
    assert first.returncode == 4
    daemon.start()
    again = run("--key", "k", "--", "echo mine $SEMEL_ATTEMPT")
    assert (again.returncode, again.out) == (0, b"mine 2\n")


def test_a_spooled_result_that_comes_too_late_is_kept_aside(house, daemon, run):
    spool_one(daemon, run)
    (path,) = run.spooled()
    daemon.start()
    client = house.client(daemon)
    (intent,) = client.get("/v1/intents?workflow=run").json["data"]
    until(lambda: client.get(f"/v1/intents/{intent['intent']}").json["state"] == "unknown", "the lapse")
    body = {"fence": intent["fence"], "effect": "none", "all_attempts": True}
    assert client.post(f"/v1/claims/{intent['intent']}/fail", body).status == 200
    path.rename(path.with_suffix(".away"))
    assert run("--key", "k", "--", "echo second; true").out == b"second\n"
    path.with_suffix(".away").rename(path)
    late = run("--key", "other", "--", "true")
    assert late.returncode == 0 and "was not taken" in late.err
    assert run.spooled() == [] and len(run.spooled(".refused")) == 1
    assert run("--key", "k", "--", "true").out == b"second\n"


def test_a_lost_claim_is_told_loudly_and_its_result_refused(house, daemon, run):
    first = running(run, "--lease", "500ms", "--on-crash", "retry")
    os.kill(first.pid, signal.SIGSTOP)
    second = run("--key", "k", "--on-crash", "retry", "--", "echo second; true")
    assert (second.returncode, second.out) == (0, b"second\n")
    os.kill(first.pid, signal.SIGCONT)
    assert b"WARNING: the claim on int_" in first.stderr.readline()
    (run.directory / "go").touch()
    first = finished(first)
    assert (first.returncode, first.out) == (0, b"out\n") and "its result was not taken" in first.err
    assert run("--key", "k", "--", "true").out == b"second\n"


class Narrow(http.server.BaseHTTPRequestHandler):
    """A daemon, or something in front of it, that takes no long bodies."""

    said = []

    def do_POST(self):  # pylint: disable=invalid-name
        text = self.rfile.read(int(self.headers["Content-Length"]))
        answer, status = {"intent": "int_0000000000000", "state": "sent", "fence": 1}, 200
        if self.path == "/v1/claims":
            answer, status = {"answer": "proceed", "intent": "int_0000000000000", "fence": 1, "downstream_key": "sml-0"}, 201
        elif len(text) > 1000:
            answer, status = {"code": "too_large", "title": "Too large", "status": 413}, 413
        else:
            self.said.append((self.path.rsplit("/", 1)[1], json.loads(text)))
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_result_that_is_too_long_for_the_way_is_delivered_without_its_output(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Narrow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = Runner(tmp_path, f"http://127.0.0.1:{server.server_address[1]}")
        assert len(run("--key", "k", "--", "head -c 5000 /dev/zero").out) == 5000
        server.shutdown()
    assert [verb for verb, _ in Narrow.said] == ["sent", "confirm"]
    result = Narrow.said[1][1]["result"]
    assert (result["exit"], result["output"], result["truncated"], result["bytes"]) == (0, [], True, 5000)


# ---- without a daemon ----


def test_without_a_daemon_and_data_nothing_is_run(tmp_path):
    run = Runner(tmp_path, f"http://127.0.0.1:{free_port()}")
    ran = run("--key", "k", "--", "echo x >>count")
    assert ran.returncode == 69 and "the command was not run" in ran.err
    assert run.count() == 0
    ran = run("--key", "k", "--if-unreachable", "run", "--", "echo x >>count; exit 4")
    assert ran.returncode == 4 and run.count() == 1 and "without semel" in ran.err
    assert run("--key", "k", "--if-unreachable", "run", "--", "no-such-command").returncode == 127


def test_the_default_directory_is_used_only_at_the_default_address_and_when_it_is_there(alone, tmp_path):
    alone.options = ["--data", "semel-data"]
    assert alone("--key", "k", "--", "echo out").returncode == 0
    alone.options = []
    assert alone("--key", "k", "--", "echo out").returncode == 69  # another address was given: that daemon has other data
    del alone.env["SEMEL_URL"]
    if subprocess.run([binary(), "status"], capture_output=True, check=False).returncode != 69:
        pytest.skip("a daemon runs at the default address")
    assert alone("--key", "k", "--", "echo other").out == b"out\n"
    (tmp_path / "semel-data").rename(tmp_path / "moved")
    assert alone("--key", "k", "--", "echo out").returncode == 69
    assert not (tmp_path / "semel-data").exists()


def test_a_daemon_may_start_and_stop_between_any_two_calls(house, alone, tmp_path):
    daemon = house.make("sqlite", data=tmp_path / "data", port=int(alone.url.rsplit(":", 1)[1]))
    first = running(alone, "--lease", "15s", key="a")  # claimed without a daemon …
    daemon.start()
    wait_for_a_heartbeat(house.client(daemon))  # … kept by heartbeats to one …
    assert alone("--key", "a", "--on-running", "fail", "--", "echo x >>count").returncode == 75
    (tmp_path / "go").touch()
    assert finished(first).returncode == 0  # … and confirmed there
    assert house.client(daemon).get("/v1/intents?workflow=run").json["data"][0]["state"] == "confirmed"
    (tmp_path / "go").unlink()
    second = running(alone, key="b")
    daemon.stop()
    (tmp_path / "go").touch()
    assert finished(second).returncode == 0 and alone.spooled() == []
    for key in "ab":
        assert alone("--key", key, "--", "echo x >>count").out == b"ready\nout\n"
    assert alone.count() == 0 and not list((tmp_path / "data" / "holds").iterdir())
    assert subprocess.run([binary(), "audit", "verify", "--data", tmp_path / "data"], check=True, capture_output=True)


def test_a_run_killed_together_with_its_daemon_is_noticed_without_one(house, tmp_path):
    daemon = house.start("sqlite", data=tmp_path / "data")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}", ["--data", "data"])
    first = running(run, "--lease", "1s")
    kill(first)
    daemon.kill()
    assert run("--key", "k", "--", "echo x >>count").returncode == 76
    assert run.count() == 0
    end_group(first)


def test_data_that_someone_else_uses_is_not_touched(house, tmp_path):
    house.start("sqlite", data=tmp_path / "data")
    run = Runner(tmp_path, f"http://127.0.0.1:{free_port()}", ["--data", "data"])
    ran = run("--key", "k", "--", "echo x >>count")
    assert ran.returncode == 69 and "another semel" in ran.err and run.count() == 0


def test_the_data_of_a_daemon_on_postgresql_is_no_ledger_of_its_own(house, tmp_path):
    daemon = house.start("postgres", command="serve", data=tmp_path / "data")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}", ["--data", "data"])
    assert run("--key", "k", "--", "echo out").out == b"out\n"
    daemon.stop()
    assert run("--key", "k", "--", "echo x >>count").returncode == 69
    assert run.count() == 0 and not (tmp_path / "data" / "semel.db").exists()


def test_rules_and_spaces_hold_without_a_daemon_too(house, tmp_path):
    daemon = house.start("sqlite", command="serve", data=tmp_path / "data", policy="workflows:\n  twice: {attempts: 2}\n")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}", ["--data", "data"])
    token = (tmp_path / "data" / "admin.token").read_text().strip()
    admin = house.client(daemon, token=token)
    other = admin.post("/v1/tokens", {"name": "o", "scopes": ["claim"], "space": "other"}).json["token"]
    reader = admin.post("/v1/tokens", {"name": "r", "scopes": ["read"]}).json["token"]
    assert run("--key", "k", "--", "echo main").out == b"main\n"
    run.env["SEMEL_TOKEN"] = other
    assert run("--key", "k", "--", "echo other").out == b"other\n"
    assert daemon.stop() == 0
    assert run("--key", "k", "--", "echo x").out == b"other\n"
    run.env["SEMEL_TOKEN"] = reader
    assert run("--key", "k", "--", "echo x").returncode == 77
    del run.env["SEMEL_TOKEN"]
    assert run("--key", "k", "--", "echo x").out == b"main\n"
    assert [run("--key", "t", "--workflow", "twice", "--", "exit 1 ").returncode for _ in range(3)] == [1, 1, 65]


# ---- what else is asked ----


def test_a_token_is_needed_where_one_is_asked_for(house, tmp_path):
    daemon = house.start("sqlite", command="serve")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}")
    assert run("--key", "k", "--", "echo x >>count").returncode == 77 and run.count() == 0
    run.env["SEMEL_TOKEN"] = (daemon.data / "admin.token").read_text().strip()
    assert run("--key", "k", "--", "echo x >>count").returncode == 0


def test_a_result_is_forgotten_after_keep_and_the_fact_is_not(run):
    assert run("--key", "k", "--keep", "1s", "--", "echo out").returncode == 0
    gone = until(lambda: (again := run("--key", "k", "--", "echo x >>count")).returncode == 65 and again, "the result's end")
    assert "not kept any more" in gone.err and run.count() == 0


def test_a_key_that_another_program_uses_with_an_input_is_refused(house, daemon, run):
    client = house.client(daemon)
    client.post("/v1/claims", {"workflow": "run", "key": "k", "input": {"a": 1}})
    assert run("--key", "k", "--", "echo x >>count").returncode == 65 and run.count() == 0


def test_shadow_mode_lets_it_through(house, tmp_path):
    daemon = house.start("sqlite", policy="mode: shadow\n")
    run = Runner(tmp_path, f"http://127.0.0.1:{daemon.port}")
    for _ in range(2):
        ran = run("--key", "k", "--", "echo x >>count")
        assert ran.returncode == 0
    assert run.count() == 2 and "would have been replay" in ran.err


@pytest.mark.parametrize("words", [
    ["--key", "k", "--lease", "1ms"], ["--key", "k", "--lease", "25h"], ["--key", "k", "--keep", "500d"], ["--key", "k", "--output-max", "1M"],
    ["--key", "k", "--output-max", "much"], ["--key", ""], ["--key", "k", "--workflow", "a\nb"], ["--key", "k:{day}", "--zone", "Nowhere"],
    ["--key", "k", "--on-error", "ignore"], [],
])
def test_a_wrong_line_is_refused_before_anything_happens(alone, words):
    assert alone(*words, "--", "echo x >>count").returncode == 64
    assert alone.count() == 0 and not (alone.directory / "data").exists()


def test_the_terminal_works_as_ever(either):
    """Ctrl-C at a terminal reaches the command once, and the command can read from the terminal."""
    script = (
        "import os, signal, time; got = []; signal.signal(signal.SIGINT, lambda *_: got.append(print('got', len(got) + 1, flush=True)));"
        "print('line', input(), flush=True);"
        "[time.sleep(0.05) for _ in iter(lambda: os.path.exists('go'), True)]; print('total', len(got)); raise SystemExit(6)"
    )
    master, slave = os.openpty()
    command = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = either.words("--key", "k", "--on-error", "remember", "--", sys.executable, "-c", script)
    process = subprocess.Popen(
        [sys.executable, "-c", command, *words], cwd=either.directory, env=either.env, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = []
    threading.Thread(target=read_all, args=(master, seen), daemon=True).start()
    os.write(master, b"typed\n")
    until(lambda: b"line typed" in b"".join(seen), "what was typed")
    os.write(master, b"\x03")
    until(lambda: b"got 1" in b"".join(seen), "the trap")
    (either.directory / "go").touch()
    assert process.wait(timeout=WAIT) == 6
    until(lambda: b"total" in b"".join(seen), "the end")
    assert b"total 1" in b"".join(seen)
    os.close(master)


def read_all(fd, seen):
    try:
        while text := os.read(fd, 4096):
            seen.append(text)
    except OSError:
        pass
