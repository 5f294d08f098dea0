"""What semel.h promises, in each of the three ways to a ledger."""

import json
import subprocess
import time

import pytest
from conftest import BINARY, TOOL, Script
from lossy import Lossy, address


def eventually(ask, want):
    end = time.monotonic() + 120
    while True:
        answer = ask()
        if answer.status == want or time.monotonic() > end:
            assert answer.status == want
            return answer
        time.sleep(0.05)


def test_the_second_claim_gets_the_result_byte_for_byte(place):
    semel = place.open()
    first = semel("claim", "w", "k")
    assert (first.status, first.fence, first.held) == ("proceed", "1", "held") and first.key.startswith("sml-")
    assert semel("confirm", '{ "b": 1.0,"a":[9007199254740993] }').status == "ok"
    second = semel("claim", "w", "k")
    assert (second.status, second.result, second.held) == ("replay", '{ "b": 1.0,"a":[9007199254740993] }', "lost")
    semel.close()
    assert place.open()("claim", "w", "k").result == '{ "b": 1.0,"a":[9007199254740993] }'


def test_what_a_failure_says_decides_what_follows(place):
    semel = place.open()
    for effect, follows in [("none", "proceed"), ("never", "refused"), ("unknown", "outcome_unknown")]:
        assert semel("claim", "w", effect).status == "proceed"
        assert semel("fail", effect).status == "ok"
        assert semel("claim", "w", effect).status == follows
        semel("confirm", "1")


def test_a_claim_that_is_dropped_is_unknown_after_sent_and_free_before(place):
    semel = place.open()
    assert semel("claim", "w", "acting").status == "proceed"
    semel("drop")
    assert semel("claim", "w", "acting").status == "outcome_unknown"
    assert semel("claim2", "w", "preparing").status == "proceed"
    semel("drop")
    again = semel("claim2", "w", "preparing")
    assert (again.status, again.fence) == ("proceed", "2")
    assert semel("release").status == "ok"
    assert semel("confirm", "1").status == "fenced"  # it is not held any more, and nobody is asked


def test_release_is_for_what_was_not_sent(place):
    semel = place.open()
    semel("claim2", "w", "k")
    assert semel("sent").status == "ok"
    assert semel("release").status == "already_sent"
    assert semel("confirm", "2").status == "ok"


def test_the_same_key_with_other_contents(place):
    semel = place.open()
    assert semel("claim", "w", "k", 0, 0, '{"amount":1,"to":"a"}').status == "proceed"
    semel("confirm", "1")
    reused = semel("claim", "w", "k", 0, 0, '{"amount":2,"to":"a"}')
    assert reused.status == "key_reused" and reused.why
    assert semel("claim", "w", "k", 0, 0, '{"to":"a","amount":1.0}').status == "replay"


def test_a_lease_that_ended_is_lost(place):
    semel = place.open()
    assert semel("claim2", "w", "k", 2000).held == "held"
    semel("sleep", 2500)
    late = semel("sent")
    assert (late.status, late.held) == ("fenced", "lost")
    assert eventually(lambda: semel("claim2", "w", "k"), "proceed").fence == "2"


def test_a_heartbeat_keeps_it(place):
    semel = place.open()
    assert semel("claim", "w", "k", 3000).status == "proceed"
    assert semel("keep_alive").status == "ok"
    semel("sleep", 4500)
    assert semel("extend", 0).held == "held"
    assert semel("confirm", "1").status == "ok"


@pytest.mark.parametrize("words", [("claim", "", "k"), ("claim", "w", "\udcff"), ("claim", "w", "k", 5), ("claim", "w", "k", 0, -1), ("claim", "w", "x" * 2049),
                                   ("claim", "w", "k", 0, 0, "{not json"), ("claim", "w", "-")], ids=lambda words: repr(words)[:40])
def test_what_is_wrong_is_refused_and_explained(place, words):
    semel = place.open()
    if words[2] == "\udcff":
        semel.process.stdin.reconfigure(errors="surrogateescape")
    refused = semel(*words)
    assert refused.status == "invalid" and refused.why and refused.held == "lost"
    assert semel("confirm", "1").status == "fenced"


def test_a_result_has_to_be_json(place):
    semel = place.open()
    semel("claim", "w", "k")
    refused = semel("confirm", "{broken")
    assert refused.status == "invalid" and "JSON" in refused.why and refused.held == "held"
    assert semel("confirm", '"fine"').status == "ok"


def test_threads_that_want_the_same_do_it_once(place):
    for workflow in ("first", "second"):
        result = subprocess.run([TOOL, "storm", place.where, workflow, "12", "40"], capture_output=True, text=True, timeout=300)
        assert result.stdout == "40 rounds, 0 wrong\n", result.stderr


def test_waiting_ends_with_the_result_of_the_holder(daemon):
    holder, waiter = Script(daemon.url), Script(daemon.url)
    holder("claim", "w", "k")
    waiter.process.stdin.write("claim\tw\tk\t0\t20000\n")
    waiter.process.stdin.flush()
    time.sleep(0.2)
    holder("confirm", '"by the first"')
    assert waiter.read().result == '"by the first"'
    holder.close()
    waiter.close()


# ---- messages that are lost ----


@pytest.mark.parametrize("how", ["request", "answer", "half"])
@pytest.mark.parametrize("at", range(3), ids=["claim", "sent", "confirm"])
def test_a_lost_message_costs_nothing(daemon, at, how):
    proxy = Lossy(address(daemon.url), {at: how})
    semel = Script(proxy.url)
    first = semel("claim", "w", "k")
    assert (first.status, first.fence) == ("proceed", "1")
    assert semel("confirm", "7").status == "ok"
    assert semel("claim", "w", "k").result == "7"
    semel.close()
    proxy.close()
    assert [intent["state"] for intent in daemon.intents()] == ["confirmed"]


def test_nothing_listens(tmp_path):
    semel = Script("http://127.0.0.1:1")
    semel("patience", 100)
    away = semel("claim", "w", "k")
    assert away.status == "unreachable" and "127.0.0.1:1" in away.why and away.held == "lost"
    semel.close()


def test_the_daemon_is_restarted_while_the_holder_works(daemon):
    semel = Script(daemon.url)
    assert semel("claim", "w", "k").status == "proceed"
    daemon.kill()
    daemon.start()
    assert semel("confirm", "1").status == "ok"
    semel.close()


def test_a_token_is_needed_where_tokens_are(tmp_path):
    from test_lost_messages import serve

    with serve(str(BINARY), tmp_path) as (url, _):
        semel = Script(url)
        refused = semel("claim", "w", "k")
        assert refused.status == "invalid" and "token" in refused.why.lower()
        semel.close()


# ---- inside the process ----


def test_one_process_at_a_time(tmp_path):
    first = Script(f"file:{tmp_path / 'd'}")
    first("claim", "w", "k")
    second = Script(f"file:{tmp_path / 'd'}")
    assert second.read().status == "busy" and second.process.wait(120) == 0
    assert (tmp_path / "d").stat().st_mode & 0o077 == 0
    first.close()


@pytest.mark.parametrize("verb,follows", [("claim", "outcome_unknown"), ("claim2", "proceed")])
def test_a_process_that_is_killed(tmp_path, verb, follows):
    """After sent nobody can tell; before it, nothing can have happened."""
    first = Script(f"file:{tmp_path / 'd'}")
    assert first(verb, "w", "k", 2000).status == "proceed"
    first.kill()
    second = Script(f"file:{tmp_path / 'd'}")
    assert eventually(lambda: second("claim", "w", "k"), follows)
    second.close()


def test_a_daemon_goes_on_where_the_library_stopped(tmp_path):
    from semel.testing import Daemon

    inside = Script(f"file:{tmp_path / 'data'}")
    inside("claim", "w", "k")
    inside("confirm", '{"n":1}')
    inside.close()
    with Daemon(str(tmp_path)) as daemon:
        outside = Script(daemon.url)
        assert outside("claim", "w", "k").result == '{"n":1}'
        outside.close()
        daemon.policy('workflows: {w: {key: "lead:{lead}"}}')
        daemon.stop()
    verified = subprocess.run([str(BINARY), "audit", "verify", "--data", str(tmp_path / "data")], capture_output=True, text=True)
    assert verified.returncode == 0, verified.stderr
    again = Script(f"file:{tmp_path / 'data'}")
    assert again("claim", "w", "-", 0, 0, json.dumps({"lead": 7})).status == "proceed"  # the policy that the daemon stored makes the key
    again("confirm", "1")
    assert again("claim", "w", "lead:7", 0, 0, json.dumps({"lead": 7})).status == "replay"
    again.close()
