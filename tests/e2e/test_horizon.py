"""Providers forget keys. A retry after that would be a second charge; semel does not make it, and says why. The same semel without this rule charges twice."""

import pathlib

import pytest

from outbox import HASTY, Outbox, keyed, policy, provider_calls, sink
from semel_process import Semel, binary, until
from test_clock import LIBRARY, WITHOUT, Clock

pytestmark = pytest.mark.skipif(LIBRARY is None, reason=WITHOUT)

TTL = 60  # how long this Stripe remembers a key, instead of a day
WINDOW = "1m"
CHARGE = {"path": "/v1/charges", "form": {"amount": 500, "currency": "eur", "source": "tok_visa", "metadata[ref]": "order-1"}}


def mutant():
    path = pathlib.Path(binary()).with_name("semel_mutant")
    if not path.exists():
        pytest.skip("there is no build with breakable rules: ninja semel_mutant")
    return str(path)


class Broken(Semel):
    """semel without the rule that a key is relied upon only as long as the provider surely remembers it."""

    def arguments(self):
        words = super().arguments()
        return ["env", "SEMEL_MUTANT=NO_WINDOW", *[mutant() if word == binary() else word for word in words]]


@pytest.fixture
def lost(house, fakes, tmp_path):
    """A charge whose answer was lost; then nothing happens until the provider has forgotten the key. Returns the outbox, the effect and the provider."""

    def make(ask, made=Semel):
        stripe = fakes("stripe", key_ttl=TTL)
        clock = Clock(tmp_path / "clock")
        calls = provider_calls("stripe", settle="0s")
        for call in calls:
            call["window"] = WINDOW
            if not ask:
                call.pop("probes", None)
        rules = policy({"stripe": sink(stripe, "stripe", timeout=HASTY, rate="1000/s", backoff="1h", backoff_max="1h", deadline="30d", calls=calls)})
        path = tmp_path / "semel.yaml"
        path.write_text(rules)
        daemon = made(tmp_path / "data", policy=path, wrapper=clock.wrapper())
        house.daemons.append(daemon)
        box = Outbox(house.client(daemon.start()))
        stripe.script(["act_then_drop"])
        effect = box.submit("stripe", "order-1", request=CHARGE)
        until(lambda: box.get(effect)["note"], "the lost answer")
        assert box.get(effect)["state"] == "pending" and stripe.effects_by_ref() == {"order-1": 1}
        clock.set(2 * 3600)
        stripe.advance(2 * 3600)
        return box, effect, stripe

    return make


def test_a_retry_past_the_horizon_is_not_made(lost):
    box, effect, stripe = lost(ask=False)
    found = box.over(effect)
    assert (found["state"], found["tries"]) == ("unknown", 1) and stripe.effects_by_ref() == {"order-1": 1} and len(stripe.requests()) == 1
    last = [row for row in box.decisions(effect) if row["state"] == "unknown"][-1]
    assert last["reason"] == "destination_may_have_forgotten_the_key"
    card = box.card(effect)
    assert (card["owner"], card["reason"]) == ("dana", "destination_may_have_forgotten_the_key") and card["due_at"]


def test_past_the_horizon_the_provider_is_asked(lost):
    box, effect, stripe = lost(ask=True)
    found = box.over(effect)
    assert (found["state"], found["tries"], found["probes"]) == ("confirmed", 1, 0) and stripe.effects_by_ref() == {"order-1": 1}
    reasons = [row["reason"] for row in box.decisions(effect)]
    assert "destination_may_have_forgotten_the_key" in reasons and box.card(effect) is None
    assert [request.method for request in stripe.requests()] == ["POST", "GET"]


def test_without_the_rule_it_charges_twice(lost):
    box, effect, stripe = lost(ask=False, made=Broken)
    assert box.over(effect)["state"] == "confirmed" and stripe.effects_by_ref() == {"order-1": 2}
    assert len({request.header("Idempotency-Key") for request in stripe.requests()}) == 1


def test_a_lost_call_whose_caller_does_not_come_back_is_somebodys(house, fakes, tmp_path):
    fake, other, clock = fakes("generic-keys", key_ttl=TTL), fakes("generic"), Clock(tmp_path / "clock")
    path = tmp_path / "semel.yaml"
    path.write_text(policy({"keyed": keyed(fake, window=WINDOW), "again": sink(other, on_unknown="retry", deadline="1h")}))
    daemon = Semel(tmp_path / "data", policy=path, wrapper=clock.wrapper())
    house.daemons.append(daemon)
    box = Outbox(house.client(daemon.start()))

    def call(place, key):
        return box.client.request("POST", f"/to/{place}/x", f'{{"ref":"{key}"}}'.encode(), {"Idempotency-Key": key})

    fake.script(["act_then_drop", "act_then_drop"])
    other.script(["act_then_drop"])
    lost = [call("keyed", "back"), call("keyed", "gone"), call("again", "gone")]
    assert [(answer.status, answer.code) for answer in lost] == [(502, "no_answer")] * 3
    assert call("keyed", "back").status == 200  # one who comes back in time is served
    back, *gone = [answer.json["intent"].replace("int_", "eff_") for answer in lost]
    assert [box.get(effect)["state"] for effect in (back, *gone)] == ["confirmed", "pending", "pending"] and box.cards() == []
    clock.set(2 * 3600)
    fake.advance(2 * 3600)
    for effect in gone:
        assert box.over(effect)["state"] == "unknown" and box.card(effect)["owner"] == "dana"
    assert box.card(gone[0])["reason"] == "destination_may_have_forgotten_the_key"
    assert [call("keyed", "gone").code, call("again", "gone").code] == ["outcome_unknown"] * 2
    assert fake.effects_by_ref() == {"back": 1, "gone": 1} and other.effects_by_ref() == {"gone": 1}


def test_within_the_horizon_it_is_tried_again(house, fakes):
    stripe = fakes("stripe", key_ttl=TTL)
    box = Outbox(house.client(house.start(policy=policy({"stripe": sink(stripe, "stripe", rate="1000/s")}))))
    stripe.script(["act_then_drop"])
    assert box.over(box.submit("stripe", "order-1", request=CHARGE))["state"] == "confirmed"
    assert stripe.effects_by_ref() == {"order-1": 1} and len(stripe.requests()) == 2
