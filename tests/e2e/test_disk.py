"""A full disk and a failing one."""

import os
import pathlib
import shutil
import subprocess
import threading

import pytest

from http_client import Client
from semel_process import until

FSYNC_FAILS_AT = 60  # of one thread; the start needs fewer
SYNC_HANGS_AT = 60
HANG_ANSWERS = 60  # so many without any claim in between: a claim hangs


@pytest.fixture
def small_disk(tmp_path, house):
    """24 MiB that can be filled without harm."""
    place = tmp_path / "small"
    place.mkdir()
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    house.end()
    subprocess.run(["umount", "-l", place], check=True)


def fill(place):
    """Takes all the room that is left."""
    ballast = place / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return ballast


def until_refused(client, known):
    """Claims until the daemon says that the disk is full. Before that it may still have room in its own files."""
    for number in range(20_000):
        key = f"filler {number}"
        answer = client.claim("w", key, thread="t" * 250, input={str(n): n for n in range(60)})
        if answer.status == 503:
            return answer
        assert answer.status == 201, answer
        known[key] = answer.json["intent"]
    raise AssertionError("the disk was full, but no claim was refused")


def test_full_disk(house, small_disk):
    daemon = house.start("sqlite", data=small_disk / "data")
    client = house.client(daemon)
    held = {f"k{number}": client.claim("w", f"k{number}") for number in range(200)}
    for number in range(100):
        assert client.say("confirm", held[f"k{number}"], result=number).status == 200
    known = {key: answer.json["intent"] for key, answer in held.items()}
    ballast = fill(small_disk)

    refused = until_refused(client, known)
    assert refused.code == "disk_full" and refused.headers["x-should-retry"] == "true" and refused.headers["Retry-After"]
    ready = client.get("/readyz")
    assert ready.status == 503 and ready.json["status"] == "not_ready" and "full" in ready.json["reason"]
    assert client.get("/healthz").status == 200
    for number in range(100, 200):
        said = client.say("confirm", held[f"k{number}"], result=number)
        assert said.status == 200, f"work that was accepted could not be finished: {said}"
    assert client.claim("w", "still full").code == "disk_full"

    ballast.unlink()
    until(lambda: client.get("/readyz").status == 200, "an intake that opens by itself")
    assert client.claim("w", "room again").status == 201
    for restarted in (False, True):
        if restarted:
            client.close()
            assert daemon.stop() == 0
            daemon.start()
        for number in range(200):
            assert client.claim("w", f"k{number}").json["result"] == number
        for intent in known.values():
            assert client.intent(intent).status == 200


def test_start_on_a_full_disk_says_so(house, small_disk):
    daemon = house.start("sqlite", data=small_disk / "data")
    client = house.client(daemon)
    held = client.claim("w", "k")
    assert client.say("confirm", held, result=1).status == 200
    client.close()
    assert daemon.stop() == 0
    (daemon.data / "reserve").unlink()
    fill(small_disk)
    daemon.launch()

    def settled():
        try:
            return not daemon.alive() or (Client(daemon.port).get("/healthz").status == 200)
        except OSError:
            return False

    until(settled, "a daemon that starts or says why not")
    if not daemon.alive():
        assert daemon.process.returncode != 0 and "full" in daemon.said()
        return
    replay = client.claim("w", "k")
    assert replay.status == 200 or replay.code == "disk_full", replay


def can_trace():
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "-e", "inject=fsync:error=EIO:when=1", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="strace is not there or not allowed")
def test_failed_fsync_stops_the_daemon_before_it_acknowledges(house):
    inject = f"inject=fdatasync,fsync:error=EIO:when={FSYNC_FAILS_AT}"
    wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", inject]
    daemon = house.start("sqlite", wrapper=wrapper)
    client = house.client(daemon)
    acknowledged, failed = {}, None
    for number in range(10 * FSYNC_FAILS_AT):
        try:
            answer = client.claim("w", f"k{number}")
            assert answer.status == 201, f"{number}: an answer after a failed fsync: {answer}"
            acknowledged[number] = answer.json["intent"]
            if number % 2:
                assert client.say("confirm", answer, result=number).status == 200
                acknowledged[number] = None
        except (OSError, EOFError):
            failed = number
            break
    assert failed is not None, "the failed fsync went unnoticed"
    assert daemon.process.wait(timeout=120) not in (0, None)
    assert "fsync failed" in daemon.said()

    client.close()
    daemon.wrapper = []
    daemon.start()
    assert acknowledged
    for number, intent in acknowledged.items():
        if intent is None:
            assert client.claim("w", f"k{number}").json["result"] == number
        else:
            assert client.intent(intent).json["key"] == f"k{number}"
    assert client.claim("w", "new").status == 201


@pytest.mark.skipif(not can_trace(), reason="strace is not there or not allowed")
def test_a_disk_that_hangs_holds_up_neither_health_nor_reads(house):
    """One claim after the other, so that the HTTP loop commits by itself; then one of its syncs takes seconds. (Without -f only that thread is traced.)"""
    inject = f"inject=fdatasync:delay_enter=12s:when={SYNC_HANGS_AT}"
    wrapper = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", inject]
    daemon = house.start("sqlite", wrapper=wrapper)
    claimed, stop = [], threading.Event()

    def claim():
        client = Client(daemon.port)
        while not stop.is_set():
            assert client.claim("w", f"k{len(claimed)}").status == 201
            claimed.append(True)

    claimer = threading.Thread(target=claim)
    known = house.client(daemon)
    claimer.start()
    try:
        seen = answers = 0
        while answers < 3 * HANG_ANSWERS:
            assert Client(daemon.port).get("/healthz").status == 200
            assert known.get("/readyz").status == 200
            assert known.get("/v1/intents?limit=1").status == 200
            answers = answers + 3 if len(claimed) == seen else 0
            seen = len(claimed)
            assert seen < 20 * SYNC_HANGS_AT, "no claim ever hung, or nothing was answered while one did"
    finally:
        stop.set()
        claimer.join()
    assert len(claimed) > seen


def test_read_only_directory_is_refused_with_a_sentence(house, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    daemon = house.make("sqlite", data=pathlib.Path(blocked) / "data")
    daemon.log = tmp_path / "blocked.log"
    daemon.launch()
    assert daemon.process.wait(timeout=120) != 0
    assert str(blocked) in daemon.said()
