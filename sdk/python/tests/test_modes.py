"""SEMEL_MODE, and what follows when semel is away."""

import json
import os
import signal
import threading

import pytest

from semel import InProgress, OutcomeUnknown, Unreachable, once
from semel.spool import Spool


@pytest.fixture
def acts():
    return []


@pytest.fixture
def spool(tmp_path):
    return tmp_path / "state" / "spool.jsonl"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ---- modes ----


def test_off_asks_nobody(both, acts, monkeypatch):
    monkeypatch.setenv("SEMEL_MODE", "off")
    monkeypatch.setenv("SEMEL_URL", "http://127.0.0.1:1")

    @both.once("job:{n}")
    def job(n):
        acts.append(n)
        return (1, 2)

    assert job(1) == job(1) == (1, 2) and acts == [1, 1]


def test_observe_lets_everything_through_and_says_what_would_have_been(semel, both, acts, caplog):
    caplog.set_level("INFO", logger="semel")
    client = both.client(semel.url, mode="observe")
    woulds = []
    for _ in range(3):
        assert both.held(client, lambda c: acts.append(c.first) or woulds.append(c.would) or len(acts), "job:1") == len(acts)
    assert acts == [True, True, True] and woulds == [None, "replay", "replay"]
    assert semel.intents()[0]["state"] == "confirmed"
    assert "would have been replay" in caplog.text


def test_observe_does_not_mind_when_semel_is_away(both, acts):
    client = both.client("http://127.0.0.1:1", mode="observe")
    woulds = []
    assert both.held(client, lambda c: woulds.append(c.would) or {1, 2}, "job:1") == {1, 2}
    assert woulds == ["unreachable"]


def test_observe_records_failures_too(semel, both):
    def fail(c):
        raise KeyError

    client = both.client(semel.url, mode="observe")
    for _ in range(2):
        with pytest.raises(KeyError):
            both.held(client, fail, "job:1")
    assert semel.intents()[0]["state"] == "unknown"


def test_bad_settings_are_named(monkeypatch):
    from semel import Client

    for name, value in [("SEMEL_MODE", "maybe"), ("SEMEL_URL", "ftp://x"), ("SEMEL_LEASE", "1m"), ("SEMEL_FAIL_OPEN", "perhaps"), ("SEMEL_TOKEN", "a b")]:
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(ValueError, match=name):
                Client()


def test_a_changed_environment_is_noticed(semel, acts, monkeypatch):
    @once("job:{n}")
    def job(n):
        acts.append(n)

    job(1)
    monkeypatch.setenv("SEMEL_MODE", "off")
    job(1)
    monkeypatch.setenv("SEMEL_MODE", "enforce")
    job(1)
    assert acts == [1, 1]


# ---- semel is away ----


def test_fail_closed_is_the_default(semel, both, acts):
    semel.kill()
    with pytest.raises(Unreachable):
        both.held(both.client(semel.url, patience=0.1), lambda c: acts.append(1), "job:1")
    assert acts == []


def test_fail_open_acts_and_the_result_is_delivered_later(semel, both, acts, spool):
    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    semel.kill()
    result = both.held(client, lambda c: acts.append(c.would) or {"mail": "m-1"}, "job:1", input={"to": "a"})
    assert result == {"mail": "m-1"} and acts == ["unreachable"]
    assert [line["what"] for line in lines(spool)] == ["begin", "done"]
    assert both.held(client, lambda c: acts.append("twice"), "job:1", input={"to": "a"}) == {"mail": "m-1"}
    semel.start()
    assert both.held(both.client(semel.url, spool=str(spool)), lambda c: acts.append("twice"), "job:1", input={"to": "a"}) == {"mail": "m-1"}
    assert acts == ["unreachable"] and spool.read_text() == ""
    assert semel.intents()[0]["state"] == "confirmed"


def test_deliver_reports(semel, both, spool):
    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    semel.client().confirm(semel.client().ask("job", "job:2"), "another's")
    held = semel.client().ask("job", "job:3")
    semel.client().fail(semel.client().ask("job", "job:4"))
    semel.kill()
    for n in (1, 2, 3, 4):
        both.held(client, lambda c: f"ours {n}", f"job:{n}")
    with pytest.raises(Unreachable):
        both.call(client, "deliver")
    semel.start()
    report = both.call(client, "deliver")
    assert (report.delivered, report.duplicates, report.rejected, report.left) == (2, 1, 1, 1)
    assert len(Spool(str(spool)).entries()) == 1
    rejected = lines(spool.with_name("spool.jsonl.rejected"))
    assert rejected[0]["first"]["key"] == "job:4" and rejected[0]["last"]["result"] == '"ours 4"'
    semel.client().release(held)
    assert both.call(client, "deliver").delivered == 1
    assert spool.read_text() == ""


def test_a_run_that_died_while_semel_was_away_is_unknown(semel, both, acts, spool):
    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    semel.kill()
    child = os.fork()
    if child == 0:
        try:
            both.held(client, lambda c: os.kill(os.getpid(), signal.SIGKILL), "job:1")
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    with pytest.raises(OutcomeUnknown):
        both.held(client, lambda c: acts.append(1), "job:1")
    assert both.held(client, lambda c: "again", "job:2") == "again"
    semel.start()
    assert both.call(client, "deliver").delivered == 2
    with pytest.raises(OutcomeUnknown):
        both.held(client, lambda c: acts.append(1), "job:1")
    assert acts == []


def test_a_run_that_died_may_be_repeated_when_it_says_so(semel, both, spool):
    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    semel.kill()
    child = os.fork()
    if child == 0:
        try:
            both.held(client, lambda c: os.kill(os.getpid(), signal.SIGKILL), "job:1", on_crash="retry")
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    assert both.held(client, lambda c: "again", "job:1", on_crash="retry") == "again"


def test_a_run_that_is_under_way_on_this_machine(semel, spool):
    from semel import Client

    semel.kill()
    client = Client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    met = []

    def another():
        try:
            with client.claim("job:1"):
                met.append("acted")
        except InProgress as error:
            met.append(str(error))

    with client.claim("job:1"):
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    assert met == [f"semel is away, and process {os.getpid()} is doing it"]


def test_failures_while_semel_was_away(semel, both, spool):
    from semel import NoEffect

    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    semel.kill()

    def refuse(c):
        raise NoEffect("declined")

    def time_out(c):
        raise TimeoutError("no answer")

    with pytest.raises(NoEffect):
        both.held(client, refuse, "job:1")
    with pytest.raises(TimeoutError):
        both.held(client, time_out, "job:2")
    assert both.held(client, lambda c: 1, "job:1") == 1
    with pytest.raises(OutcomeUnknown):
        both.held(client, lambda c: 1, "job:2")
    semel.start()
    both.call(client, "deliver")
    assert {intent["key"]: intent["state"] for intent in semel.intents()} == {"job:1": "confirmed", "job:2": "unknown"}


def test_semel_goes_away_between_the_claim_and_the_last_word(semel, both, spool):
    client = both.client(semel.url, spool=str(spool), patience=0.1)
    assert both.held(client, lambda c: semel.kill() or "done", "job:1") == "done"
    assert [line["what"] for line in lines(spool)] == ["say"]
    semel.start()
    assert both.held(client, lambda c: "twice", "job:1") == "done"
    assert spool.read_text() == "" and semel.intents()[0]["fence"] == 1


def test_semel_goes_away_between_claim_and_sent(semel, both, spool, monkeypatch):
    """The claim is held, `sent` is not heard. Open: we act, and confirm that very claim later. Closed: nothing is done, and said so later."""
    from semel import steps

    monkeypatch.setattr(steps, "watch", lambda name: name == "after claim" and semel.kill())
    client = both.client(semel.url, fail_open=True, spool=str(spool), patience=0.1)
    assert both.held(client, lambda c: "done", "job:1") == "done"
    monkeypatch.setattr(steps, "watch", None)
    semel.start()
    assert both.call(client, "deliver").delivered == 1
    assert (semel.intents()[0]["state"], semel.intents()[0]["fence"]) == ("confirmed", 1)
    monkeypatch.setattr(steps, "watch", lambda name: name == "after claim" and semel.kill())
    with pytest.raises(Unreachable):
        both.held(both.client(semel.url, spool=str(spool), patience=0.1), lambda c: "done", "job:2")
    monkeypatch.setattr(steps, "watch", None)
    semel.start()
    assert both.held(both.client(semel.url, spool=str(spool)), lambda c: c.fence, "job:2") == 2


def test_half_a_line_in_the_spool_is_harmless(spool):
    from semel.protocol import Terms

    book = Spool(str(spool))
    first = book.begin(Terms("w", "k1"), None, None)
    with open(spool, "ab") as file:
        file.write(b'{"id":"abc","what":"beg')
    book.done(first, '"r"')
    second = book.begin(Terms("w", "k2", {"a": 1}), "int_1", 3)
    entries = book.entries()
    assert [(entry.id, entry.last.get("result")) for entry in entries] == [(first, '"r"'), (second, None)]
    assert entries[1].terms().input == {"a": 1} and book.find(Terms("w", "k2")).id == second
    book.over(first)
    book.over(second)
    assert spool.read_bytes() == b""


def test_where_the_spool_is(monkeypatch, tmp_path):
    from semel import Client

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("SEMEL_SPOOL", "SEMEL_FAIL_OPEN"):
        monkeypatch.delenv(name, raising=False)
    assert Client().spool is None
    assert Client(fail_open=True).spool.path == tmp_path / "semel" / "spool.jsonl"
    monkeypatch.setenv("SEMEL_SPOOL", str(tmp_path / "x"))
    assert Client().spool.path == tmp_path / "x"


def test_the_spool_is_for_its_owner_alone(spool):
    from semel.protocol import Terms

    book = Spool(str(spool))
    book.begin(Terms("w", "k"), None, None)
    assert (spool.stat().st_mode & 0o777, spool.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    book.reject(book.entries()[0], "because")
    assert spool.with_name("spool.jsonl.rejected").stat().st_mode & 0o777 == 0o600
