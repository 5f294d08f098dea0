"""What clients were told, written down on their side, and the check that the daemon's data agrees with every word of it.

A worker lives like a real one: it claims, sometimes says `sent`, confirms, fails, lets go or just stops; it asks for old keys again.
Only answers that arrived whole are written down: they are what the daemon has promised."""

import json
import random

import swarm

PENDING_REASONS = {"lapsed_before_sent", "no_effect", "released"}
REFUSALS = {"in_progress", "outcome_unknown", "refused", "fenced", "expired", "already_sent"}


class Journal:
    def __init__(self, seed=1):
        self.random = random.Random(seed)
        self.proceeded = []  # (key, intent, fence)
        self.sent = set()  # (intent, fence)
        self.confirmed = {}  # key -> (intent, result text)
        self.keys = []
        self.lost = self.refused = self.unavailable = 0
        self.stop = False

    def acknowledged(self):
        return len(self.proceeded) + len(self.sent) + len(self.confirmed)

    def until_now(self):
        """A copy of what has been written down so far."""
        same = Journal()
        same.proceeded, same.sent, same.confirmed, same.keys = list(self.proceeded), set(self.sent), dict(self.confirmed), list(self.keys)
        return same

    def counts(self):
        return {"keys": len(self.keys), "acknowledged": self.acknowledged(), "proceeded": len(self.proceeded), "sent": len(self.sent),
                "confirmed": len(self.confirmed), "refused": self.refused, "unanswered": self.lost, "unavailable": self.unavailable}

    # ---- working ----

    def worker(self, name, workflow="w"):
        number = 0
        while not self.stop:
            number += 1
            old = self.keys and self.random.random() < 0.4
            key = self.random.choice(self.keys[-200:]) if old else f"{name}-{number}"
            if not old:
                self.keys.append(key)
            yield from self.one(workflow, key, f"{name}/{number}")

    def ask(self, request):
        """Sends once. None when the answer was lost or the daemon could not."""
        try:
            status, body = yield request
        except swarm.Lost:
            self.lost += 1
            return None, None
        if status == 503:
            self.unavailable += 1
            return None, None
        return status, json.loads(body)

    def one(self, workflow, key, name):
        two_phase = self.random.random() < 0.5
        short = self.random.random() < 0.3
        status, answer = yield from self.ask(
            swarm.claim(workflow, key, two_phase=two_phase, lease_ms=30 if short else 60_000, wait_ms=self.random.choice([0, 0, 20])))
        if status == 200:
            self.check_replay(key, answer)
        elif status == 409:
            assert answer["code"] in REFUSALS, answer
            self.refused += 1
        elif status is not None:
            assert status == 201, (status, answer)
            self.proceeded.append((key, answer["intent"], answer["fence"]))
            yield from self.hold(key, answer["intent"], answer["fence"], two_phase, name)

    def check_replay(self, key, answer):
        known = self.confirmed.get(key)
        text = json.dumps(answer["result"], separators=(",", ":"))
        assert known is None or known == (answer["intent"], text), (key, known, answer)

    def hold(self, key, intent, fence, two_phase, name):
        if two_phase:
            status, _ = yield from self.ask(swarm.say("sent", intent, fence))
            if status == 200:
                self.sent.add((intent, fence))
            elif status is not None:
                return  # fenced: not ours any more
        end = self.random.random()
        if end < 0.70:
            yield from self.confirm(key, intent, fence, name)
        elif end < 0.80:
            yield from self.ask(swarm.say("fail", intent, fence, effect="none", error=name))
        elif end < 0.85:
            yield from self.ask(swarm.say("fail", intent, fence, effect="unknown"))
        elif end < 0.92:
            yield from self.ask(swarm.say("release", intent, fence))

    def confirm(self, key, intent, fence, name):
        result = {"by": name, "fence": fence}
        status, answer = yield from self.ask(swarm.say("confirm", intent, fence, result=result))
        if status == 200:
            text = json.dumps(result, separators=(",", ":"))
            assert self.confirmed.setdefault(key, (intent, text)) == (intent, text), "two results were acknowledged for one key"

    # ---- checking ----

    def verify(self, port, workers=16, workflow="w"):
        """Asks the daemon about everything that was acknowledged."""
        by_intent = {}
        for key, intent, fence in self.proceeded:
            fences = by_intent.setdefault(intent, (key, []))[1]
            assert fence not in fences, f"{key} proceeded twice with fence {fence}"
            fences.append(fence)
        seen_keys = {}
        for intent, (key, _) in by_intent.items():
            assert seen_keys.setdefault(key, intent) == intent, f"{key} became two intents"
        jobs = [self._check_confirmed(workflow, key, *known) for key, known in self.confirmed.items()]
        jobs += [self._check_story(intent, key, fences) for intent, (key, fences) in by_intent.items()]

        def some(first):
            for job in jobs[first::workers]:
                yield from job

        clients = swarm.Swarm()
        for first in range(workers):
            clients.add(some(first), port)
        clients.run()

    def _check_confirmed(self, workflow, key, intent, text):
        status, body = yield swarm.claim(workflow, key)
        assert status == 200, f"the acknowledged result of {key} is lost: {body!r}"
        # The workers sent this result with spaces; it has to come back with them.
        verbatim = json.dumps(json.loads(text)).encode()
        assert b'"intent":"%s","result":%s,' % (intent.encode(), verbatim) in body, (key, text, body)

    def _check_story(self, intent, key, fences):
        status, body = yield swarm.request("GET", f"/v1/intents/{intent}")
        assert status == 200, f"the acknowledged claim of {key} is lost: {status} {body!r}"
        shown = json.loads(body)
        assert shown["key"] == key and shown["fence"] >= max(fences)
        status, body = yield swarm.request("GET", f"/v1/decisions?intent={intent}&limit=200")
        assert status == 200
        check_story(intent, [row for row in json.loads(body)["data"] if row["state"] is not None], fences, self.sent)


def check_story(intent, rows, fences, sent):
    """One holder at a time; a next one only after the last surely had no effect."""
    claimed, state, reason = [], None, None
    for row in rows:
        if row["kind"] == "claim" and row["state"] in ("claimed", "sent"):
            if claimed:
                assert state == "pending" and reason in PENDING_REASONS, (intent, rows)
                gone_out = (intent, claimed[-1]) in sent
                assert not gone_out or reason == "no_effect", f"{intent}: fence {claimed[-1]} was sent, and yet it was given on: {rows}"
            assert row["fence"] == len(claimed) + 1, (intent, rows)
            claimed.append(row["fence"])
        elif row["kind"] == "lapse":
            assert row["state"] == ("pending" if state == "claimed" else "unknown"), (intent, rows)
        assert row["fence"] == (claimed[-1] if claimed else 0), (intent, rows)
        state, reason = row["state"], row["reason"]
    assert set(fences) <= set(claimed), f"{intent}: acknowledged {fences}, recorded {claimed}"
