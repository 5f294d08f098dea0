"""Effects from a test's point of view: policies as dictionaries, handing in, waiting for the end, and the cards that people get."""

import json

import yaml

from semel_process import REPO, until

SECONDS = 120  # generous; nothing is measured
# What is answered is answered, however slow the machine is; a test in which something is not, or in which it must not arrive any more, is in more of a hurry.
HASTY = "3s"
QUICK = {"allow_private": True, "timeout": "30s", "attempts": 6, "backoff": "50ms", "backoff_max": "200ms"}


def policy(destinations, **more):
    """The text of a policy. JSON is YAML."""
    return json.dumps({"owner": "dana", **more, "destinations": destinations})


def sink(fake, provider="http", **settings):
    """A destination at a fake, with short times."""
    where = {"host": "127.0.0.1", "port": fake.port, "from": "a@x.io", "tls": "none"} if provider == "smtp" else {"url": fake.url}
    return {"provider": provider, **where, **QUICK, **settings}


def keyed(fake, **settings):
    """A destination that deduplicates on our key."""
    return sink(fake, **{"capability": "idempotent", "key_header": "Idempotency-Key", "window": "24h", **settings})


def _without_heads(facts):
    """What a provider's file says about a fact is the file's own: the policy has only the fact."""
    if isinstance(facts, list):
        return [_without_heads(fact) for fact in facts]
    if not isinstance(facts, dict):
        return facts
    kept = {name: _without_heads(fact) for name, fact in facts.items() if name not in ("evidence", "verified", "note")}
    return kept["is"] if list(kept) == ["is"] else kept


def provider_calls(provider, **probe):
    """The calls of a provider's file, to be put into a policy, with other settings for their probes: a settle time that a test can wait for."""
    calls = _without_heads(yaml.safe_load((REPO / "providers" / f"{provider}.yaml").read_text()).get("calls", []))
    for call in calls:
        for recipe in call.get("probes", []):
            recipe.update(probe)
    return calls


class Outbox:
    def __init__(self, client):
        self.client = client

    def submit(self, destination, key, expect=202, **fields):
        if not {"request", "payload", "mail"} & set(fields):
            fields["payload"] = {"ref": key}
        answer = self.client.post("/v1/effects", {"destination": destination, "key": key, **fields})
        assert answer.status == expect, answer
        return answer.json.get("effect")

    def get(self, effect):
        answer = self.client.get(f"/v1/effects/{effect}")
        assert answer.status == 200, answer
        return answer.json

    def list(self, **filters):
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        return self.client.get(f"/v1/effects?limit=200&{query}").json["data"]

    def is_over(self, effect):
        """What it says when nothing more will happen by itself, else None."""
        found = self.get(effect)
        settled = found["state"] in ("confirmed", "refused") and found["step"] in ("finished", "person")
        waits = found["state"] in ("pending", "unknown") and found["step"] in ("person", "finished")
        return found if settled or waits else None

    def over(self, effect, seconds=SECONDS):
        try:
            return until(lambda: self.is_over(effect), "the end of an effect", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}: {self.get(effect)}") from None

    def say(self, effect, verb, **fields):
        return self.client.post(f"/v1/effects/{effect}/{verb}", fields)

    def cards(self, state="open"):
        return self.client.get(f"/v1/exceptions?limit=200&state={state}").json["data"]

    def card(self, effect, state="open"):
        """The one card about an effect or intent; None when there is none."""
        about = "int_" + effect.split("_", 1)[1]
        found = [card for card in self.cards(state) if card["intent"] == about]
        assert len(found) <= 1, found
        return found[0] if found else None

    def resolve(self, card, choice, **fields):
        return self.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": choice, **fields})

    def decisions(self, effect):
        """Oldest first."""
        return self.client.decisions("int_" + effect.split("_", 1)[1])
