"""The wall clock jumps, by an hour or by ten years, while claims are held and results are kept, also while the daemon is down. It is only for people
to read: no lease ends by it and no key is forgotten. Debian's faketime moves the wall clock of a real daemon and leaves its boot clock alone."""

import os
import pathlib
import subprocess
import time

import pytest

from semel_process import binary, until
from test_crash import check_audit, check_database

HOUR = 3600
YEAR = 365 * 24 * HOUR
JUMPS = [HOUR, -HOUR, 24 * HOUR, -24 * HOUR, YEAR, -YEAR, 10 * YEAR, -10 * YEAR, 0]  # from the true time
# The thread sanitizer does not see through it that a thread gives its mutex back while it waits on a condition.
LIBRARY = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None) if b"__tsan_init" not in pathlib.Path(binary()).read_bytes() else None
WITHOUT = "faketime is not installed, or the thread sanitizer is there"
POLICY = """
workflows:
  dedup: {capability: idempotent, window: 24h}
"""

pytestmark = pytest.mark.skipif(LIBRARY is None, reason=WITHOUT)


class Clock:
    def __init__(self, path):
        self.path, self.jumps = path, 0
        self.offset = None
        self.set(0)

    def set(self, offset):
        self.jumps += offset != self.offset and self.offset is not None
        self.offset = offset
        part = self.path.with_suffix(".new")
        part.write_text(f"{offset:+d}\n")
        os.replace(part, self.path)

    def wrapper(self):
        sanitizer = f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
        return ["env", sanitizer, f"LD_PRELOAD={LIBRARY}", f"FAKETIME_TIMESTAMP_FILE={self.path}", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]


@pytest.fixture
def clock(tmp_path):
    made = Clock(tmp_path / "clock")
    shown = subprocess.run([*made.wrapper(), "date", "+%s"], capture_output=True, text=True, check=True)
    assert abs(int(shown.stdout) - time.time()) < 60
    return made


def year_of(answer):
    return int(answer.json["lease_until"][:4])


class Keeper:
    """Holds claims and results through everything, and counts ids."""

    def __init__(self, client):
        self.client, self.round = client, 0
        self.ids = []
        self.held = [self.claim(f"held {number}", lease_ms=HOUR * 1000, two_phase=number % 2 == 0) for number in range(4)]
        self.kept = {}
        for number in range(4):
            self.keep(f"kept {number}", {"number": number})

    def claim(self, key, **fields):
        answer = self.client.claim("w", key, **fields)
        assert answer.status == 201, answer
        self.ids.append(answer.json["intent"])
        return answer

    def keep(self, key, result, **fields):
        held = self.claim(key, **fields)
        assert self.client.say("confirm", held, result=result).status == 200
        self.kept[key] = result
        return held

    def check(self):
        """One more round: what is held is held, what is kept is kept, and new work goes on."""
        for number in range(4):
            assert self.client.claim("w", f"held {number}").code == "in_progress"
            assert self.client.intent(self.held[number].json["intent"]).json["state"] == ("claimed" if number % 2 == 0 else "sent")
        assert self.client.say("extend", self.held[0]).status == 200
        for key, result in self.kept.items():
            assert self.client.claim("w", key).json["result"] == result
        self.round += 1
        self.keep(f"round {self.round}", self.round, keep="1h")
        assert self.ids == sorted(set(self.ids)), "ids went back"

    def finish(self):
        for number, held in enumerate(self.held):
            assert self.client.say("confirm", held, result=number).status == 200
        rows = self.client.get("/v1/intents?limit=200").json["data"]
        assert [row["intent"] for row in rows] == sorted(self.ids, reverse=True)


def finish(daemon, client):
    client.close()
    assert daemon.stop() == 0
    check_database(daemon.data)
    check_audit(daemon)


def test_wall_clock_that_jumps_ends_no_lease_and_forgets_no_key(house, clock, evidence):
    daemon = house.start("sqlite", wrapper=clock.wrapper())
    client = house.client(daemon)
    keeper = Keeper(client)
    for offset in JUMPS:
        clock.set(offset)
        keeper.check()
        shown = year_of(client.claim("w", f"year {offset}"))
        assert abs(shown - time.gmtime(time.time() + offset).tm_year) <= 1, "the clock did not jump"
        keeper.ids.append(client.get(f"/v1/intents?workflow=w&key=year%20{offset}").json["data"][0]["intent"])
    time.sleep(1.2)  # sweeps and forgetting have had their turns
    keeper.check()
    keeper.finish()
    finish(daemon, client)
    evidence(jumps=clock.jumps, claims_held=len(keeper.held), results_kept=len(keeper.kept))


def test_wall_clock_that_jumps_while_the_daemon_is_down(house, clock, evidence):
    daemon = house.start("sqlite", wrapper=clock.wrapper())
    client = house.client(daemon)
    keeper = Keeper(client)
    for number, offset in enumerate(JUMPS):
        client.close()
        if number % 2:
            daemon.kill()
        else:
            assert daemon.stop() == 0
        clock.set(offset)
        daemon.start()
        keeper.check()
    keeper.finish()
    finish(daemon, client)
    evidence(jumps=clock.jumps, restarts=len(JUMPS), claims_held=len(keeper.held), results_kept=len(keeper.kept))


@pytest.mark.parametrize("offset", [-10 * YEAR, 10 * YEAR])
def test_data_that_was_born_in_another_decade(house, clock, offset, evidence):
    clock.set(offset)
    daemon = house.start("sqlite", wrapper=clock.wrapper())
    client = house.client(daemon)
    keeper = Keeper(client)
    client.close()
    assert daemon.stop() == 0
    clock.set(0)
    daemon.start()
    keeper.check()
    keeper.finish()
    finish(daemon, client)
    evidence(jumps=clock.jumps)


@pytest.mark.parametrize("offset", [-10 * YEAR, 10 * YEAR])
def test_lease_and_keep_last_as_long_as_they_should_whatever_the_wall_says(house, clock, offset, seconds, evidence):
    daemon = house.start("sqlite", wrapper=clock.wrapper())
    client = house.client(daemon)
    short, two_phase = client.claim("w", "short", lease_ms=400), client.claim("w", "two", lease_ms=400, two_phase=True)
    for key, keep in (("result", "1h"), ("brief", "1s")):
        assert client.say("confirm", client.claim("w", key, keep=keep), result=1).status == 200
    clock.set(offset)
    assert client.claim("w", "result").json["result"] == 1
    for held, state in ((short, "unknown"), (two_phase, "pending")):
        until(lambda held=held, state=state: client.intent(held.json["intent"]).json["state"] == state, "the end of a lease by the boot clock")
    assert client.claim("w", "two").json["fence"] == 2
    if seconds >= 30:  # forgetting takes its time
        until(lambda: client.claim("w", "brief").code == "expired", "the end of a result by the run clock")
    finish(daemon, client)
    evidence(jumps=clock.jumps)


def test_age_for_a_deduplicating_destination_is_the_longer_of_two_clocks(house, clock, evidence):
    """Relying on the destination's memory is the one thing for which a jump forward has to count."""
    daemon = house.start("sqlite", wrapper=clock.wrapper(), policy=POLICY)
    client = house.client(daemon)
    for key in ("back", "on"):
        assert client.claim("dedup", key, lease_ms=30).status == 201
        until(lambda key=key: client.get(f"/v1/intents?workflow=dedup&key={key}").json["data"][0]["state"] == "pending", "the end of a lease")
    clock.set(-YEAR)
    assert client.claim("dedup", "back").json["fence"] == 2
    clock.set(17 * HOUR)  # more than two thirds of the window
    assert client.claim("dedup", "on").code == "outcome_unknown"
    finish(daemon, client)
    evidence(jumps=clock.jumps)


def test_tokens_expire_by_the_wall_clock(house, clock, evidence):
    daemon = house.start("sqlite", command="serve", wrapper=clock.wrapper())
    admin = house.client(daemon, token=(daemon.data / "admin.token").read_text().strip())
    made = admin.post("/v1/tokens", {"name": "worker", "scopes": ["claim", "read"], "expires": "1h"}).json
    worker = house.client(daemon, token=made["token"])
    held = worker.claim("w", "k", lease_ms=HOUR * 1000)
    for offset, status in ((HOUR // 2, 200), (2 * HOUR, 401), (0, 200), (-10 * YEAR, 200), (YEAR // 2, 401), (0, 200)):
        clock.set(offset)
        until(lambda status=status: worker.get("/v1/intents").status == status, f"{status} at {offset}")
    assert worker.say("confirm", held, result=1).status == 200, "its claim did not end with the token"
    worker.close()
    finish(daemon, admin)
    evidence(jumps=clock.jumps)
