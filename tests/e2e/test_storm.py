"""Many clients want the same things at once: each thing is done by one of them, and all the others get its result."""

import json

import pytest

import swarm

CLIENTS, KEYS = 64, 1000
WAIT_MS = 300_000  # the longest there is


def one(number, done, got):
    """Goes through all keys; groups of clients start at the same one."""
    start = number % 8 * (KEYS // 8)
    for at in range(KEYS):
        key = (start + at) % KEYS
        status, body = yield swarm.claim("storm", f"key-{key}", wait_ms=WAIT_MS)
        answer = json.loads(body)
        if status == 201:
            assert answer["fence"] == 1
            done[key].append(number)
            status, body = yield swarm.say("confirm", answer["intent"], 1, result={"by": number, "key": key})
            assert status == 200, body
        else:
            assert status == 200 and answer["answer"] == "replay", body
            got[key].append(answer["result"]["by"])
            assert answer["result"]["key"] == key


@pytest.mark.parametrize("processes", [1, 2])
def test_each_key_proceeds_once_and_all_others_get_its_result(house, processes):
    if processes == 1:
        daemons = [house.start("sqlite")]
    else:
        first = house.start("postgres")
        daemons = [first, house.start("postgres", db=first.db)]
    done, got = [[] for _ in range(KEYS)], [[] for _ in range(KEYS)]
    clients = swarm.Swarm()
    for number in range(CLIENTS):
        clients.add(one(number, done, got), daemons[number % processes].port, source="127.0.0.2")
    clients.run()
    for key in range(KEYS):
        assert len(done[key]) == 1, f"key {key} was done by {done[key]}"
        assert got[key] == done[key] * (CLIENTS - 1)
    if processes == 2:
        holders = {done[key][0] % 2 for key in range(KEYS)}
        assert holders == {0, 1}, "one of the two processes did nothing"
