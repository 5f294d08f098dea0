"""Processes that are put to sleep and wake up later than they think: the daemon, and holders whose lease is over by then.

Holders are processes of their own (holder.py); the provider counts what reaches it. With a provider that cannot deduplicate, no key has
more than one effect, whoever sleeps when."""

import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict

import pytest

from conftest import STORAGES_IN_TIME
from semel_process import REPO, until
from test_crash import check_audit

LEASE_MS = 300
LONG_MS = 3_600_000  # so long that only the test ends it
HOLDERS = 5
POLICY = """
workflows:
  once: {capability: none, on_unknown: hold}
  repeat: {capability: none, on_unknown: retry}
  dedup: {capability: idempotent, window: 1h}
"""


class Provider:
    """Counts effects per key. With `remembers` it deduplicates on the downstream key, as a good destination does."""

    def __init__(self, remembers=False):
        self.remembers, self.lock = remembers, threading.Lock()
        self.effects, self.calls = defaultdict(list), 0
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                size = int(self.headers["Content-Length"])
                text = self.rfile.read(size)
                if len(text) < size:
                    return  # cut off: the provider never saw it
                body = json.dumps(provider.take(json.loads(text))).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:
                    pass  # the caller did not wait for its answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False  # whoever closes it waits for what is under way
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, asked):
        """The call takes a while on its way here and back, so that callers fall asleep during it."""
        time.sleep(random.uniform(0, 0.03))
        answer = self._count(asked)
        time.sleep(random.uniform(0, 0.03))
        return answer

    def _count(self, asked):
        with self.lock:
            self.calls += 1
            done = self.effects[asked["name"]]
            if not (self.remembers and done):
                done.append((asked["key"], asked["fence"]))
            return {"number": len(done), "key": asked["key"]}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


class Crew:
    """Holder processes, and what they have written."""

    def __init__(self, directory):
        self.directory, self.holders = directory, []

    def hire(self, semel, provider, **orders):
        orders = {"workflow": "once", "lease_ms": LEASE_MS, **orders}
        log = self.directory / f"holder{len(self.holders)}"
        with open(log, "wb") as out:
            process = subprocess.Popen([sys.executable, str(REPO / "tests" / "e2e" / "holder.py"), str(semel.port), str(provider.port), json.dumps(orders)],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        process.log = log
        self.holders.append(process)
        return process

    def notes(self):
        lines = [line for holder in self.holders for line in holder.log.read_text().splitlines(keepends=True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]  # one may be half written

    def said(self, what, **like):
        return [note for note in self.notes() if note["what"] == what and like.items() <= note.items()]

    def end(self):
        for holder in self.holders:
            if holder.poll() is None:
                holder.kill()
            holder.wait()


@pytest.fixture
def crew(tmp_path):
    made = Crew(tmp_path)
    yield made
    made.end()


def sleeps(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def wake(process):
    os.kill(process.pid, signal.SIGCONT)


def asleep_after_its_lease(crew, client, semel, provider, step, **orders):
    """A holder that went to sleep at `step`, and whose lease has run out since. The test ends it, so that it lasts until the holder sleeps, however slow
    the machine is."""
    zombie = crew.hire(semel, provider, keys=["k"], stop_at=step, lease_ms=LONG_MS, **orders)
    until(lambda: sleeps(zombie), f"a holder that sleeps when it has {step}")
    claim = crew.said("claim")[0]
    intent = claim["intent"]
    assert client.say("extend", (intent, claim["fence"]), lease_ms=10).status == 200
    until(lambda: client.intent(intent).json["state"] not in ("claimed", "sent"), "the end of its lease")
    return zombie, intent


def reasons(client, intent):
    return [row["reason"] for row in client.decisions(intent) if row["state"] is not None]


# ---- one zombie at each step ----


@pytest.fixture(params=STORAGES_IN_TIME)
def storage(request):
    return request.param


@pytest.fixture
def semel(house, storage):
    return house.start(storage, policy=POLICY)


def test_zombie_before_sent_is_fenced_and_does_not_act(semel, client, crew, provider, evidence):
    zombie, intent = asleep_after_its_lease(crew, client, semel, provider, "claimed", two_phase=True)
    other = client.claim("once", "k", two_phase=True)
    assert other.status == 201 and other.json["fence"] == 2
    wake(zombie)
    assert zombie.wait(timeout=120) == 0
    assert [note["code"] for note in crew.said("sent")] == ["fenced"]
    assert provider.calls == 0 and client.intent(intent).json["fence"] == 2
    assert client.say("sent", other).status == 200 and client.say("confirm", other, result=1).status == 200
    evidence(zombies=1)


def test_zombie_after_sent_sees_its_own_deadline(semel, client, crew, provider, evidence):
    zombie, intent = asleep_after_its_lease(crew, client, semel, provider, "sent", two_phase=True, trust_ms=10)
    assert client.claim("once", "k").code == "outcome_unknown"
    wake(zombie)
    assert zombie.wait(timeout=120) == 0
    assert len(crew.said("too_late")) == 1 and provider.calls == 0
    assert client.intent(intent).json["state"] == "pending", "it knows that it did not act, and said so"
    assert client.claim("once", "k").json["fence"] == 2
    evidence(zombies=1)


@pytest.mark.parametrize("step, two_phase", [("checked", True), ("acted", False)])
def test_zombie_past_its_check_acts_alone_and_its_late_confirm_settles_unknown(semel, client, crew, provider, step, two_phase, evidence):
    zombie, intent = asleep_after_its_lease(crew, client, semel, provider, step, two_phase=two_phase)
    for _ in range(3):
        assert client.claim("once", "k").code == "outcome_unknown"
    assert client.say("confirm", (intent, 2), result="not mine").code == "fenced"
    wake(zombie)
    assert zombie.wait(timeout=120) == 0
    assert [note["status"] for note in crew.said("confirm")] == [200]
    assert len(provider.effects["k"]) == 1
    assert client.claim("once", "k").json["result"]["number"] == 1
    assert reasons(client, intent)[-2:] == ["lapsed_after_sent", "late_confirm_settles_unknown"]
    evidence(zombies=1)


def test_late_confirm_is_fenced_when_another_was_told_to_repeat(semel, client, crew, provider, evidence):
    zombie, intent = asleep_after_its_lease(crew, client, semel, provider, "acted", workflow="repeat")
    other = client.claim("repeat", "k")
    assert other.status == 201 and other.json["fence"] == 2
    wake(zombie)
    assert zombie.wait(timeout=120) == 0
    assert [note["code"] for note in crew.said("confirm")] == ["fenced"]
    assert client.say("confirm", other, result="second").status == 200
    assert client.claim("repeat", "k").json["result"] == "second"
    assert "lapsed_after_sent_may_repeat" in reasons(client, intent), "a possible repetition is announced"
    evidence(zombies=1)


# ---- the daemon sleeps ----


@pytest.mark.parametrize("leases", [0.1, 3])
def test_daemon_that_sleeps_answers_when_it_wakes(house, semel, client, leases, evidence):
    held = client.claim("once", "k", lease_ms=LEASE_MS)
    before_sent = client.claim("once", "two", lease_ms=LEASE_MS, two_phase=True)
    os.kill(semel.pid, signal.SIGSTOP)
    until(lambda: sleeps(semel.process), "the daemon's sleep")
    answers = {}

    def ask(name, call):
        answers[name] = call(house.client(semel))

    calls = {
        "confirm": lambda own: own.say("confirm", held, result="done"),
        "duplicate": lambda own: own.claim("once", "k", wait_ms=20_000),
        "sent": lambda own: own.say("sent", before_sent),
        "new": lambda own: own.claim("once", "new"),
    }
    threads = [threading.Thread(target=ask, args=call, daemon=True) for call in calls.items()]
    for thread in threads:
        thread.start()
    time.sleep(leases * LEASE_MS / 1000)
    os.kill(semel.pid, signal.SIGCONT)
    for thread in threads:
        thread.join(120)
    assert answers["confirm"].status == 200, "a late confirm with the present fence counts"
    assert answers["new"].status == 201
    duplicate = answers["duplicate"]
    assert duplicate.status == 200 or duplicate.code == "outcome_unknown", duplicate
    assert client.claim("once", "k").json["result"] == "done"
    sent = answers["sent"]
    assert sent.status == 200 or sent.code == "fenced", sent
    if leases > 1:
        assert sent.code == "fenced", "the lease was over before sent was written down"
    evidence(pauses=1)


def test_one_of_two_daemons_sleeps_and_the_other_goes_on(house, evidence):
    first = house.start("postgres", policy=POLICY)
    second = house.start("postgres", policy=POLICY, db=first.db)
    client, other = house.client(first), house.client(second)
    held = client.claim("once", "k", lease_ms=LEASE_MS)
    os.kill(first.pid, signal.SIGSTOP)
    assert other.claim("once", "new").status == 201
    until(lambda: other.claim("once", "k").code == "outcome_unknown", "the end of a lease that the sleeper gave")
    assert other.say("confirm", held, result="through the other").status == 200
    os.kill(first.pid, signal.SIGCONT)
    assert client.claim("once", "k").json["result"] == "through the other"
    assert client.say("confirm", held, result="else").code == "differs"
    evidence(pauses=1)


# ---- everybody sleeps, at any time ----


class Sandman:
    """Stops processes at random moments for 0.1 to 3 leases, several at once."""

    def __init__(self, victims, seed):
        self.victims, self.random = victims, random.Random(seed)
        self.asleep = {}  # process -> when to wake it
        self.pauses = Counter()

    def turn(self):
        now = time.monotonic()
        for process, when in list(self.asleep.items()):
            if now >= when:
                self._wake(process)
        process = self.random.choice(self.victims)
        if process not in self.asleep and process.poll() is None:
            leases = self.random.uniform(0.1, 3)
            os.kill(process.pid, signal.SIGSTOP)
            self.asleep[process] = now + leases * LEASE_MS / 1000
            self.pauses["long" if leases > 1 else "short"] += 1
        time.sleep(self.random.uniform(0, 0.15))

    def _wake(self, process):
        del self.asleep[process]
        if process.poll() is None:
            wake(process)

    def end(self):
        for process in list(self.asleep):
            self._wake(process)


def check_against_provider(client, crew, provider, workflow):
    """What the holders were told, what the provider saw, what the ledger says: they agree."""
    told = defaultdict(set)
    for note in crew.said("claim", status=201):
        assert note["fence"] not in told[note["key"]], f"two were told to go on with one fence: {note}"
        told[note["key"]].add(note["fence"])
    for key, effects in provider.effects.items():
        assert len(effects) == 1, f"{key} happened {len(effects)} times: {effects}"
        assert {fence for _, fence in effects} <= told[key] and len({name for name, _ in effects}) == 1
    results = {}
    for note in crew.said("confirm", status=200):
        results[note["key"]] = note["fence"]
    for key, intent in {note["key"]: note["intent"] for note in crew.said("claim", status=201)}.items():
        shown = client.intent(intent).json
        if key in results:
            assert shown["state"] == "confirmed", shown
        elif key in provider.effects and workflow == "dedup":
            check_given_on(client, key, shown, provider.effects[key][0][0])
        elif key in provider.effects:
            assert shown["state"] == "unknown", f"it happened, and the ledger would give it on: {shown}"
    return results


def check_given_on(client, key, shown, used):
    """It happened and nobody said so. Its destination recognises the key, so it is free: the next one is told that it may have happened, and has the same key."""
    assert shown["state"] == "pending", shown
    again = client.claim("dedup", key)
    assert again.status == 201 and again.json["may_have_happened"] is True and again.json["downstream_key"] == used, again


def stories(client, crew):
    """How often each reason came, one intent at a time."""
    intents = {note["intent"] for note in crew.said("claim", status=201)}
    return Counter(reason for intent in intents for reason in set(reasons(client, intent)))


def has_seen_enough(client, crew, sandman, seconds):
    """Somebody slept past its lease, more than once, and somebody got through."""
    lapses = ("lapsed_after_sent", "lapsed_after_sent_deduplicated", "lapsed_before_sent")
    return sandman.pauses["long"] > seconds and crew.said("confirm", status=200) and any(stories(client, crew)[reason] for reason in lapses)


@pytest.mark.parametrize("storage, workflow", [("sqlite", "once"), ("postgres", "once"), ("sqlite", "dedup")])
def test_everybody_sleeps_at_any_time(house, storage, crew, seconds, workflow, evidence, tmp_path):
    seconds /= 5
    semel, over = house.start(storage, policy=POLICY), tmp_path / "over"
    client, destination = house.client(semel), Provider(remembers=workflow == "dedup")
    for seed in range(HOLDERS):
        crew.hire(semel, destination, workflow=workflow, until=str(over), seed=seed)
    sandman = Sandman([*crew.holders, semel.process], seed=3)
    until(lambda: crew.said("claim"), "the first holder")

    def one_night():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sandman.turn()
        sandman.end()
        return has_seen_enough(client, crew, sandman, seconds)

    until(one_night, "somebody who slept past the lease, and somebody who got through")
    over.touch()
    for holder in crew.holders:
        assert holder.wait(timeout=120) == 0, holder.log.read_text()[-2000:]
    destination.close()
    assert len(crew.said("end")) == HOLDERS
    until(lambda: not client.get("/v1/intents?state=sent&limit=1").json["data"] and not client.get("/v1/intents?state=claimed&limit=1").json["data"],
          "the end of all leases")
    results, story = check_against_provider(client, crew, destination, workflow), stories(client, crew)
    client.close()
    assert semel.stop() == 0
    check_audit(semel)
    fenced = sum(note["code"] == "fenced" for note in crew.notes() if "code" in note)
    evidence(pauses=sum(sandman.pauses.values()), pauses_past_the_lease=sandman.pauses["long"], keys=len(destination.effects), calls=destination.calls,
             most_effects_per_key=max(map(len, destination.effects.values())), confirmed=len(results), fenced=fenced,
             too_late=len(crew.said("too_late")), late_confirms=story["late_confirm_settles_unknown"] + story["late_confirm_before_anyone_else"])
