"""Agent A hands a lead to agent B. B works on it, but A never hears so, and hands it over again. Then B is started twice."""

import json
import os
import pathlib
import sys
import threading
import urllib.request

from semel import current, once

WORLD = os.environ["WORLD_URL"]
INBOX = pathlib.Path("inbox")


@once("hand-off:{lead_id}:{stage}")
def call_lead(lead_id, stage, note):
    request = urllib.request.Request(f"{WORLD}/call", json.dumps({"lead": lead_id, "note": note}).encode(), {"Idempotency-Key": current().downstream_key}, method="POST")
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def agent_a():
    """No acknowledgement came, so it hands over again: a new message, with a new name, that means the same."""
    INBOX.mkdir(exist_ok=True)
    for attempt in (1, 2):
        message = {"lead_id": "lead_8821", "stage": "qualified", "note": "asked for a demo"}
        (INBOX / f"{attempt}.json").write_text(json.dumps(message))


def agent_b(results):
    for path in sorted(INBOX.glob("*.json")):
        results.append(call_lead(**json.loads(path.read_text())))


def main():
    agent_a()
    results = []
    workers = [threading.Thread(target=agent_b, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{len(results)} messages were worked on, by two workers: {results[0]}")
    return 0 if len(results) == 4 and all(result == results[0] for result in results) else 1


sys.exit(main())
