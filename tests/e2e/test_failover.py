"""PostgreSQL fails over: its primary dies under load and a standby takes its place. With a synchronous standby nothing is lost. With one that lags,
what was acknowledged may be gone; then semel says so and gives nothing out that may have been done before."""

import os
import signal
import subprocess
import threading
import time

import pytest

import swarm
from journal import Journal
from semel_process import Postgres, run_cli, until
from test_crash import check_audit

WORKERS = 16
POLICY = """
workflows:
  dedup: {capability: idempotent, window: 1h}
"""


class Node(Postgres):
    """One server of a pair. The settings are in its files, so that it can be started the same way again."""

    def configure(self, **settings):
        with open(self.dir / "data" / "postgresql.auto.conf", "a", encoding="ascii") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def value(self, query, database="postgres"):
        words = [self.bin / "psql", "-qXAt", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-d", database, "-c", query]
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False).stdout.strip()

    def copy(self, other):
        """Takes over the data of `other`, which does not run."""
        stat = os.stat(other.dir)
        os.chown(self.dir, stat.st_uid, stat.st_gid)
        self._run("cp", "-a", other.dir / "data", self.dir / "data")

    def follow(self, other):
        """Becomes a standby of `other`."""
        self._run("touch", self.dir / "data" / "standby.signal")
        self.configure(primary_conninfo=f"host=127.0.0.1 port={other.port} user=postgres")

    def promote(self):
        self._run(self.bin / "pg_ctl", "-D", self.dir / "data", "-w", "-t", "240", "promote")

    def kill(self):
        """kill -9 of the postmaster; its children notice by themselves."""
        pid = int((self.dir / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)


class Pair:
    def __init__(self, template, synchronous):
        self.primary, self.standby = Node(), Node()
        for node in (self.primary, self.standby):
            node.copy(template)
        self.primary.start()
        self.standby.follow(self.primary)
        self.standby.start()
        until(lambda: self.primary.value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1", "a standby that follows")
        if synchronous:
            self.synchronous(True)
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in (self.primary, self.standby))
        self.url = f"postgres://postgres@{hosts}/semel?target_session_attrs=read-write"

    def synchronous(self, on):
        self.primary.configure(synchronous_standby_names="*" if on else "")
        self.primary.sql("SELECT pg_reload_conf()")
        wanted = "sync" if on else "async"
        until(lambda: self.primary.value("SELECT sync_state FROM pg_stat_replication") == wanted, f"a standby that is {wanted}")

    def catch_up(self):
        """Waits until the standby has everything that was written until now."""
        written = self.primary.value("SELECT pg_current_wal_lsn()")
        until(lambda: self.primary.value(f"SELECT replay_lsn >= '{written}' FROM pg_stat_replication") == "t", "a standby that has everything")

    def fail_over(self):
        self.primary.kill()
        self.standby.promote()

    def remove(self):
        for node in (self.standby, self.primary):
            node.remove()


@pytest.fixture(scope="module")
def template():
    """A cluster with an empty database, not running: every pair is a copy of it."""
    made = Node()
    if made.bin is None:
        made.remove()
        pytest.skip("PostgreSQL is not installed")
    try:
        made.create()
        made.sql("CREATE DATABASE semel")
        made.stop()
        yield made
    finally:
        made.remove()


@pytest.fixture
def make_pair(template):
    pairs = []

    def make(synchronous):
        pairs.append(Pair(template, synchronous))
        return pairs[-1]

    yield make
    for pair in pairs:
        pair.remove()


@pytest.fixture(scope="session")
def cycles(seconds):
    """How often the load tests fail over, each time with a new pair."""
    return max(1, int(seconds // 20))


def start_two(house, pair):
    first = house.start("postgres", db=pair.url, policy=POLICY)
    return first, house.start("postgres", db=pair.url, policy=POLICY)


def is_ready(client):
    answer = client.get("/readyz")
    return answer.json if answer.status == 200 else None


def wait_ready(client):
    """A fail-over is noticed by the first work after it, and by the first reading."""

    def ready():
        client.claim("dedup", "a knock at the door", lease_ms=10)
        return is_ready(client) if client.get("/v1/intents?limit=1").status == 200 else None

    return until(ready, "semel on the new primary", every=0.05)


def work(journal, daemons, until_over):
    clients = swarm.Swarm()
    for number in range(WORKERS):
        clients.add(journal.worker(f"c{number}"), daemons[number % len(daemons)].port)

    def turn():
        journal.stop = journal.stop or until_over()

    clients.run(each_turn=turn)


def all_decisions(client, kind):
    rows, after = [], ""
    while True:
        answer = client.get(f"/v1/decisions?limit=200{after}").json
        rows += [row for row in answer["data"] if row["kind"] == kind]
        if answer["page"]["next"] is None:
            return rows
        after = f"&after={answer['page']['next']}"


# ---- synchronous ----


def fail_over_under_load(house, pair, journal):
    """How much had been given out before."""
    daemons = start_two(house, pair)
    clients = [house.client(daemon, source="127.0.0.3") for daemon in daemons]
    assert [(is_ready(client)["epoch"], is_ready(client)["quarantine"]) for client in clients] == [(1, None)] * 2
    over, before = [], []

    def fail_over():
        until(lambda: len(journal.proceeded) > 100, "work on the old primary")
        before.append(len(journal.proceeded))
        pair.fail_over()
        over.append(time.monotonic() + 0.5)

    thread = threading.Thread(target=fail_over, daemon=True)
    thread.start()
    # A while longer, and new work on the new primary.
    work(journal, daemons, lambda: bool(over) and time.monotonic() > over[0] and len(journal.proceeded) > before[0] + 200)
    thread.join()
    assert all(daemon.alive() for daemon in daemons)
    for client in clients:
        ready = wait_ready(client)
        assert (ready["epoch"], ready["quarantine"]) == (1, None), ready
    journal.verify(daemons[0].port)
    assert all_decisions(clients[0], "epoch") == []
    assert [daemon.stop() for daemon in daemons] == [0, 0]
    check_audit(daemons[0])
    return before[0]


def test_synchronous_standby_takes_over_under_load_and_nothing_is_lost(house, make_pair, cycles, evidence):
    for cycle in range(cycles):
        journal = Journal(23 + cycle)
        before = fail_over_under_load(house, make_pair(synchronous=True), journal)
        evidence(fail_overs=1, proceeded_before=before, lost_keys=0, **journal.counts())


# ---- a standby that lags ----


class Lagging:
    """Two nodes, some work that the standby has, and some that was acknowledged after it was cut off."""

    def __init__(self, house, pair):
        self.house, self.pair = house, pair
        self.daemons = start_two(house, pair)
        self.clients = [house.client(daemon, source="127.0.0.3") for daemon in self.daemons]
        self.ours = self.clients[0]

    def cut_off(self):
        self.pair.catch_up()
        self.pair.standby.stop()

    def fail_over(self):
        self.pair.primary.kill()
        self.pair.standby.start()
        self.pair.standby.promote()

    def wait(self):
        return [wait_ready(client) for client in self.clients]


@pytest.fixture
def lagging(house, make_pair):
    return Lagging(house, make_pair(synchronous=False))


def reasons_of(client, intent):
    return [row["reason"] for row in client.decisions(intent) if row["state"] is not None]


def assert_held_as_lost(client, key, **fields):
    answer = client.claim("w", key, **fields)
    assert answer.status == 409 and answer.code == "outcome_unknown", (key, answer)
    assert "may_be_lost_by_failover" in reasons_of(client, answer.json["intent"]), key
    return answer


def test_lost_decisions_begin_a_quarantine_until_a_person_lifts_it(lagging, evidence):
    ours, other = lagging.clients
    done, failed, held = (ours.claim("w", key) for key in ("done", "failed", "held"))
    two = ours.claim("w", "two", two_phase=True, lease_ms=20_000)  # longer than it takes to cut the standby off
    assert ours.say("confirm", done, result="kept").status == 200
    assert ours.say("fail", failed, effect="none").status == 200
    dedup = ours.claim("dedup", "d", lease_ms=10)
    lagging.cut_off()
    # All of this is acknowledged, and lost.
    again = ours.claim("w", "failed")
    assert again.json["fence"] == 2 and ours.say("confirm", again, result="lost").status == 200
    assert ours.say("sent", two).status == 200 and ours.say("confirm", two, result="lost").status == 200
    lost = {f"lost {number}": (ours, other)[number % 2].claim("w", f"lost {number}") for number in range(20)}
    for key, answer in list(lost.items())[:10]:
        assert ours.say("confirm", answer, result=key).status == 200

    lagging.fail_over()
    for ready in lagging.wait():
        assert ready["epoch"] == 2 and ready["quarantine"]["since"] and ready["quarantine"]["reason"], ready
    assert len(all_decisions(ours, "epoch")) == 1, "both nodes miss decisions by one loss"
    for client in (ours, other):
        assert client.claim("w", "done").json["result"] == "kept"
    for number, key in enumerate(lost):
        assert_held_as_lost((other, ours)[number % 2], key)
        assert ours.claim("w", key).code == "outcome_unknown"
    assert_held_as_lost(other, "never seen before")
    assert_held_as_lost(ours, "failed")
    until(lambda: ours.intent(two.json["intent"]).json["state"] != "claimed", "the end of a lease")
    assert_held_as_lost(ours, "two")  # that its lease ended now is no proof that nothing was sent
    assert ours.say("confirm", held, result="the holder is still there").status == 200
    assert other.claim("w", "held").json["result"] == "the holder is still there"
    assert other.claim("dedup", "never seen before").status == 201
    assert ours.claim("dedup", "d").json["downstream_key"] == dedup.json["downstream_key"], "its destination deduplicates"

    lifted = run_cli("quarantine", "lift", "--reason", "looked at all of them", "--url", f"http://127.0.0.1:{lagging.daemons[0].port}")
    assert lifted.returncode == 0, lifted
    for client in lagging.clients:
        until(lambda client=client: client.get("/readyz").json["quarantine"] is None, "the end of the quarantine")
        assert client.get("/readyz").json["epoch"] == 2
    assert ours.claim("w", "new again").status == 201
    for key in lost:
        assert other.claim("w", key).code == "outcome_unknown", "what was held stays held until a person settles it"
    assert ours.post("/v1/quarantine/lift", {"reason": "twice"}).status in (404, 409)
    assert [daemon.stop() for daemon in lagging.daemons] == [0, 0]
    check_audit(lagging.daemons[0])
    evidence(fail_overs=1, lost_keys=len(lost) + 2, detected=len(lost) + 2, silent_duplicates=0)


def test_earlier_holder_cannot_speak_for_a_later_one_that_was_lost(lagging, evidence):
    """It gave the claim back, but the answer was lost on the way, so it says so again. In between another was told to act, did, and was forgotten."""
    ours, other = lagging.clients
    words = {"release": {}, "fail": {"effect": "none"}}
    first = {what: ours.claim("w", what, two_phase=True, lease_ms=3_600_000) for what in words}
    lagging.cut_off()
    for what, fields in words.items():
        assert ours.say(what, first[what], **fields).status == 200
        second = other.claim("w", what)
        assert second.json["fence"] == 2 and other.say("confirm", second, result="it happened").status == 200
    lagging.fail_over()
    lagging.wait()
    for what, fields in words.items():
        ours.say(what, first[what], **fields)
        again = ours.claim("w", what)
        assert again.status == 409 and again.code == "outcome_unknown", f"it happened, and is given out again: {again}"
    evidence(fail_overs=1, lost_keys=2, detected=2)


def test_loss_is_noticed_by_nodes_that_started_after_it(lagging, evidence):
    """Nobody is left who remembers what was acknowledged: the new timeline alone says it."""
    ours = lagging.ours
    lagging.cut_off()
    assert ours.claim("w", "lost").status == 201
    for daemon, client in zip(lagging.daemons, lagging.clients):
        client.close()
        daemon.kill()
    lagging.fail_over()
    for daemon in lagging.daemons:
        daemon.start()
    for ready in lagging.wait():
        assert ready["epoch"] == 2 and ready["quarantine"] is not None
    assert_held_as_lost(ours, "lost")
    evidence(fail_overs=1, lost_keys=1, detected=1)


def test_standby_that_was_synchronous_only_in_the_beginning(house, make_pair, evidence):
    """It was made asynchronous while semel ran; then all nodes died together with the primary."""
    pair = make_pair(synchronous=True)
    lagging = Lagging(house, pair)
    assert lagging.ours.claim("w", "early").status == 201
    pair.synchronous(False)
    until(lambda: pair.primary.value("SELECT convert_from(value, 'UTF8') FROM semel.meta WHERE name = 'synchronous'", "semel") == "0", "a semel that knows it")
    assert lagging.ours.claim("w", "later").status == 201
    lagging.cut_off()
    assert lagging.ours.claim("w", "lost").status == 201
    for daemon, client in zip(lagging.daemons, lagging.clients):
        client.close()
        daemon.kill()
    lagging.fail_over()
    for daemon in lagging.daemons:
        daemon.start()
    lagging.wait()
    assert_held_as_lost(lagging.ours, "lost")
    evidence(fail_overs=1, lost_keys=1, detected=1)


def lose_under_load(lagging, journal):
    """What was given out before is never given out again by itself; how many keys were held for that."""
    over = []

    def lose():
        until(lambda: len(journal.confirmed) > 50, "results that the standby has")
        lagging.cut_off()
        before = len(journal.proceeded)
        until(lambda: len(journal.proceeded) > before + 50, "work that it has not")
        lagging.pair.primary.kill()
        over.append(True)

    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    work(journal, lagging.daemons, lambda: bool(over))
    thread.join()
    lagging.pair.standby.start()
    lagging.pair.standby.promote()
    for ready in lagging.wait():
        assert ready["epoch"] == 2 and ready["quarantine"] is not None
    keys, kept = sorted({key for key, _, _ in journal.proceeded}), 0
    for number, key in enumerate(keys):
        answer = lagging.clients[number % 2].claim("w", key)
        assert answer.status != 201, f"{key} was given out before, and silently again: {answer}"
        kept += answer.status == 200
    lost = sum(row["reason"] == "may_be_lost_by_failover" for kind in ("claim", "lapse") for row in all_decisions(lagging.ours, kind))
    assert 0 < kept < len(keys) and lost
    assert [daemon.stop() for daemon in lagging.daemons] == [0, 0]
    check_audit(lagging.daemons[0])
    return lost


def test_asynchronous_standby_takes_over_under_load_without_silent_duplicates(house, make_pair, cycles, evidence):
    for cycle in range(cycles):
        journal = Journal(29 + cycle)
        lost = lose_under_load(Lagging(house, make_pair(synchronous=False)), journal)
        evidence(fail_overs=1, held_as_lost=lost, silent_duplicates=0, **journal.counts())
