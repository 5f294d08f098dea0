"""Processes that end at the worst moment. What was acknowledged stays; nothing happens twice."""

import random
import shutil
import sqlite3
import threading
import time

import swarm
from journal import Journal
from semel_process import accepts, run_cli, until

WORKERS = 16


def load(journal, port, stop_when, each_turn=None):
    """Workers until `stop_when()`; then each ends after what it is doing."""
    clients = swarm.Swarm()
    for number in range(WORKERS):
        clients.add(journal.worker(f"c{number}"), port)

    def turn():
        journal.stop = journal.stop or stop_when()
        if each_turn is not None:
            each_turn()

    clients.run(each_turn=turn)


def after(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def check_database(data):
    with sqlite3.connect(data / "semel.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


def check_audit(daemon):
    where = ["--db", daemon.db] if daemon.db else ["--data", str(daemon.data)]
    verified = run_cli("audit", "verify", *where)
    assert verified.returncode == 0, verified
    assert "ok" in verified.stdout.lower(), verified


class Killer(threading.Thread):
    """Kills the daemon a moment after it opened its port, or while it still recovers, and starts it again at once, over and over: for some seconds, and
    until the workers were told enough to be worth checking."""

    def __init__(self, daemon, journal, seconds, seed=7):
        super().__init__(daemon=True)
        self.target, self.journal, self.seconds, self.random = daemon, journal, seconds, random.Random(seed)
        self.kills, self.failure = 0, None

    def has_seen_enough(self):
        return self.kills > self.seconds and self.journal.acknowledged() > 10 * self.seconds

    def run(self):
        try:
            over, heard = after(self.seconds), 0
            while not over() or not self.has_seen_enough():
                time.sleep(self.random.uniform(0.005, 0.040))
                if self.kills % 10 == 9:  # however slow the machine is, somebody is answered now and then
                    until(lambda: self.journal.acknowledged() > heard or not self.target.alive(), "an answer between two kills")
                heard = self.journal.acknowledged()
                self.target.kill()
                self.kills += 1
                self.target.launch()
                if self.random.random() < 0.2:
                    continue
                until(lambda: accepts(self.target.port) or not self.target.alive(), "a daemon that starts after a kill", every=0.001)
                assert self.target.alive(), "the daemon did not start after a kill"
            until(lambda: accepts(self.target.port), "the last start")
        except BaseException as failure:  # pylint: disable=broad-except
            self.failure = failure


def test_kill_9_under_load_loses_nothing_and_repeats_nothing(house, seconds, evidence):
    daemon = house.start("sqlite")
    journal = Journal()
    killer = Killer(daemon, journal, seconds)
    killer.start()
    load(journal, daemon.port, lambda: not killer.is_alive())
    killer.join()
    assert killer.failure is None, killer.failure
    assert killer.has_seen_enough()
    journal.verify(daemon.port)
    assert daemon.stop() == 0
    check_database(daemon.data)
    check_audit(daemon)
    evidence(kills=killer.kills, seconds=seconds, **journal.counts())


def test_copy_of_a_killed_directory_is_whole(house):
    """Between a kill and a restart the files alone hold everything that was acknowledged until then."""
    daemon, journal = house.start("sqlite"), Journal(3)
    over, then = after(1.0), []

    def kill_once():
        if over() and journal.acknowledged() > 10 and not then:
            daemon.kill()
            then.append(journal.until_now())
            journal.stop = True
            shutil.copytree(daemon.data, daemon.data.parent / "copy")
            daemon.launch()

    load(journal, daemon.port, lambda: False, each_turn=kill_once)
    copy = house.start("sqlite", name="copy")
    then[0].verify(copy.port)


def test_sigterm_under_load_finishes_what_it_has_and_exits_0(house, storage):
    daemon, journal = house.start(storage), Journal(5)
    ended = []

    def stop_soon():
        until(lambda: journal.acknowledged() > 100, "work")
        ended.append(daemon.stop())
        journal.stop = True
        daemon.start()

    stopper = threading.Thread(target=stop_soon, daemon=True)
    stopper.start()
    load(journal, daemon.port, lambda: False)
    stopper.join()
    assert ended == [0]
    journal.verify(daemon.port)
    assert daemon.stop() == 0
    check_audit(daemon)
    if storage == "sqlite":
        check_database(daemon.data)


def test_sigterm_answers_those_who_wait(house, semel, client):
    held = client.claim("w", "k")
    other = house.client(semel)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(other.claim("w", "k", wait_ms=250_000)), daemon=True)
    waiter.start()
    until(lambda: client.get("/readyz").json["intents_waiting"] == 1, "a claim that waits")
    client.close()
    assert semel.stop() == 0
    waiter.join(120)
    assert [answer.code for answer in answers] == ["in_progress"]
    semel.start()
    assert client.say("confirm", held).status == 200


def test_second_process_on_the_same_directory_is_refused(house):
    first = house.start("sqlite")
    second = house.make("sqlite", name="data0")
    second.log = first.data.parent / "second.log"
    second.launch()
    assert second.process.wait(timeout=120) != 0
    assert f"process {first.pid})" in second.said() and str(first.data) in second.said()
    assert house.client(first).claim("w", "k").status == 201


def test_directory_is_free_again_after_kill_9(house):
    daemon = house.start("sqlite")
    daemon.kill()
    daemon.start()
    assert house.client(daemon).get("/readyz").status == 200


def test_postgres_that_crashes_under_load(house, postgres, seconds, evidence):
    daemon, journal = house.start("postgres"), Journal(11)
    client = house.client(daemon, source="127.0.0.3")
    failure, crashes = [], max(2, int(seconds / 10))

    def crash():
        try:
            for _ in range(crashes):
                time.sleep(max(1.0, seconds / (4 * crashes)))
                postgres.stop("immediate")
                postgres.start()
        except BaseException as problem:  # pylint: disable=broad-except
            failure.append(problem)

    crasher = threading.Thread(target=crash, daemon=True)
    crasher.start()
    quiet = []

    def over():
        """When the last crash is over, the workers go on for a while on the recovered storage."""
        if not crasher.is_alive() and not quiet:
            quiet.append((time.monotonic() + 1.0, len(journal.proceeded)))
        return bool(quiet) and time.monotonic() > quiet[0][0] and len(journal.proceeded) > quiet[0][1] + 20

    load(journal, daemon.port, over)
    assert failure == []
    assert daemon.alive(), "semel did not survive the crash of its database"
    until(lambda: client.get("/readyz").status == 200, "semel's recovery")
    journal.verify(daemon.port)
    assert daemon.stop() == 0
    check_audit(daemon)
    evidence(crashes=crashes, **journal.counts())


def test_kill_9_of_one_of_two_processes_on_postgres(house, seconds, evidence):
    """The other goes on; together they give each key to one holder at a time."""
    victim = house.start("postgres")
    other = house.start("postgres", db=victim.db)
    journal = Journal(13)
    killer = Killer(victim, journal, seconds / 2)
    clients = swarm.Swarm()
    for number in range(WORKERS):
        clients.add(journal.worker(f"c{number}"), (victim if number % 2 else other).port)
    killer.start()

    def turn():
        journal.stop = not killer.is_alive()

    clients.run(each_turn=turn)
    assert killer.failure is None, killer.failure
    journal.verify(other.port)
    assert victim.stop() == 0 and other.stop() == 0
    check_audit(other)
    evidence(kills=killer.kills, **journal.counts())
