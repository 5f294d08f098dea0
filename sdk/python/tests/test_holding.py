"""While the function runs: heartbeats, lost leases, cancellation, crashes."""

import asyncio
import os
import signal
import threading
import time

import pytest
from lossy import Lossy, address

from semel import Fenced, OutcomeUnknown, claim, current, once
from semel.protocol import Grant


LEASE = 3.0  # a heartbeat every second: a loaded machine may be late by two


def until(check, seconds=120):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def heartbeats(semel):
    intent = semel.intents()[0]["intent"]
    return [row for row in semel.get(f"/v1/decisions?intent={intent}&limit=200")["data"] if "heartbeat" in str(row)]


def test_a_long_function_keeps_its_claim(semel):
    @once("job:{n}", lease=LEASE)
    def job(n):
        until(lambda: len(heartbeats(semel)) >= 4)
        return "done"

    assert job(1) == "done" and semel.intents()[0]["fence"] == 1
    assert semel.intents()[0]["state"] == "confirmed"


def test_a_long_coroutine_keeps_its_claim(semel):
    @once("job:{n}", lease=LEASE)
    async def job(n):
        while len(heartbeats(semel)) < 4:
            await asyncio.sleep(0.02)
        return "done"

    assert asyncio.run(job(1)) == "done" and semel.intents()[0]["fence"] == 1


def test_the_policy_says_how_long_a_lease_is(semel):
    semel.policy("defaults:\n  lease: 3s\n")

    @once("job:{n}")
    def job(n):
        until(lambda: len(heartbeats(semel)) >= 4)
        return "done"

    assert job(1) == "done"


def test_heartbeats_end_with_the_block(semel):
    with claim("job:1", lease=LEASE):
        until(lambda: heartbeats(semel))
    assert not [thread for thread in threading.enumerate() if thread.name == "semel-heartbeat" and not thread._over.is_set()]
    count = len(heartbeats(semel))
    time.sleep(LEASE / 2)  # one would have come by now
    assert len(heartbeats(semel)) == count


def test_whoever_lost_the_claim_cannot_overwrite_the_result(semel, both):
    """The lease is made to end by another holder who is told that there was no effect, claims and confirms."""
    other = semel.client()

    def act(c):
        other.fail((c.intent, c.fence), "none")
        other.confirm(other.ask("job", "job:1"), "the other's")
        return "ours"

    with pytest.raises(Fenced) as lost:
        both.held(both.client(semel.url), act, "job:1")
    assert lost.value.result == "ours"
    assert both.held(both.client(semel.url), act, "job:1") == "the other's"


def test_on_crash_retry_can_still_draw_a_line(semel, both):
    """Up to sent() a crash is tried again; behind it the outcome is unknown."""
    client = both.client(semel.url)
    states = []

    class Away(Exception):
        pass

    if both.name == "sync":
        def first(c):
            states.append(semel.intents()[0]["state"])
            c.sent()
            states.append(semel.intents()[0]["state"])
            raise Away

        with pytest.raises(Away):
            both.held(client, first, "job:1", on_crash="retry")
    else:
        async def main():
            async with client.claim("job:1", on_crash="retry") as c:
                states.append(semel.intents()[0]["state"])
                await c.sent()
                states.append(semel.intents()[0]["state"])
                raise Away

        with pytest.raises(Away):
            asyncio.run(main())
    assert states == ["claimed", "sent"]
    with pytest.raises(OutcomeUnknown):
        both.held(client, lambda c: 1, "job:1", on_crash="retry")


def test_a_cancelled_coroutine_says_so(semel):
    acting = []

    @once("job:{n}")
    async def job(n):
        acting.append(n)
        await asyncio.sleep(60)

    async def main():
        task = asyncio.ensure_future(job(1))
        while not acting:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert semel.intents()[0]["state"] == "unknown"


def test_cancelled_before_the_act_the_claim_is_given_back(semel, monkeypatch):
    """The cancellation comes when `sent` is recorded and its answer is on its way."""
    from semel import steps

    tasks = []

    async def main():
        tasks.append(asyncio.ensure_future(job(1)))
        await tasks[0]

    @once("job:{n}")
    async def job(n):
        raise AssertionError("must not begin")

    monkeypatch.setattr(steps, "watch", lambda name: name == "before sent" and tasks[0].cancel())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert semel.intents()[0]["state"] in ("pending", "claimed")


def test_a_lease_that_is_over_before_the_act_is_not_used(semel, both, monkeypatch):
    """Our own clock says that the time between claim and act was too long: given back, and asked for again."""
    over = iter([True, False, False, False])
    monkeypatch.setattr(Grant, "lease_is_over", lambda self: next(over))
    assert both.held(both.client(semel.url), lambda c: c.fence, "job:1") == 2
    reasons = [row for row in semel.get("/v1/decisions?limit=50&intent=" + semel.intents()[0]["intent"])["data"]]
    assert "the lease was over before the act" in str(reasons) or semel.intents()[0]["attempts"] == 2


def killed_in_the_middle(act):
    """Runs it in a child that dies inside of the function."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.parametrize("on_crash", ["unknown", "retry"])
def test_a_process_that_dies(semel, both, on_crash):
    @both.once("job:{n}", lease=LEASE, on_crash=on_crash)
    def job(n, die=False):
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return current().fence

    parent = os.getpid()
    killed_in_the_middle(lambda: job(1))
    if on_crash == "retry":
        assert job(1) == 2
    else:
        with pytest.raises(OutcomeUnknown):
            job(1)


def test_a_child_after_fork_has_connections_of_its_own(semel, monkeypatch):
    proxy = Lossy(address(semel.url))
    monkeypatch.setenv("SEMEL_URL", proxy.url)

    @once("job:{n}")
    def job(n):
        return n

    assert job(1) == 1  # leaves a connection in the pool
    children = []
    for n in range(4):
        child = os.fork()
        if child == 0:
            try:
                good = all(job(100 * n + i) == 100 * n + i for i in range(20))
                os._exit(0 if good else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    assert [job(1000 + i) for i in range(20)] == list(range(1000, 1020))
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0, 0]
    assert proxy.connections == 5
    assert all(job(100 * n + i) == 100 * n + i for n in range(4) for i in range(20))
    proxy.close()


def test_heartbeats_move_the_end_of_the_lease(semel):
    with claim("job:1", lease=LEASE, on_crash="retry") as c:
        until(lambda: len(heartbeats(semel)) >= 4)
        c.sent()
        assert semel.intents()[0]["state"] == "sent"
