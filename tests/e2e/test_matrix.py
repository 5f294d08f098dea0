"""The fault matrix with the real semel: every provider × every fault × kill -9 at every step. What is promised to happen at most once does; what nobody
can tell has an owner. SEMEL_E2E_MATRIX=all runs every case, else every fault without a kill, every kill without a fault, and a sample of the rest."""

import concurrent.futures
import os

import pytest

import fault_matrix
import outbox
from fault_matrix import CAPABILITY, Adapter, Matrix, Outcome, cases, complaints, counts, table
from http_client import Client

EVERYTHING = os.environ.get("SEMEL_E2E_MATRIX") == "all"
PROVIDER = {"generic": "http", "generic-keys": "http"}
SETTLED_SOON = {"settle": "0s", "tries": 1}


class RealSemel(Adapter):
    """semel with one provider as two destinations: `patient`, and `hasty` for what is not answered."""

    def __init__(self, house, provider):
        self.house, self.provider = house, provider

    def start(self, fake):
        name = PROVIDER.get(self.provider, self.provider)
        make = outbox.keyed if self.provider == "generic-keys" else outbox.sink
        rules = {"rate": "1000/s"} if name != "smtp" else {}
        calls = outbox.provider_calls(name, **SETTLED_SOON)
        rules.update({"calls": calls} if any(call.get("probes") for call in calls) else {})
        made = {kind: make(fake, provider=name, timeout=timeout, attempts=11, **rules) for kind, timeout in (("patient", "30s"), ("hasty", "1s"))}
        self.daemon = self.house.start(name=f"matrix-{self.provider}", policy=outbox.policy(made))
        self._connect()

    def _connect(self):
        self.client = Client(self.daemon.port)
        self.outbox = outbox.Outbox(self.client)

    def submit(self, call):
        if call.provider == "smtp":
            contents = {"mail": {"to": call.path, "subject": "Hi", "text": "Hi", "headers": {"X-Ref": call.ref}}}
        else:
            contents = {"request": {"method": call.method, "path": call.path, "headers": call.headers, "body": call.body.decode()}}
        return self.outbox.submit("patient" if call.answered else "hasty", call.ref, **contents)

    def final(self, handle):
        found = self.outbox.is_over(handle)
        if found is None:
            return None
        card = self.outbox.card(handle)
        if found["state"] == "pending":  # a person has it: a dead letter
            assert card["kind"] == "dead_letter" and card["owner"] == "dana" and card["due_at"], card
            return ("refused" if card["reason"] == "the destination refuses it" else "dead"), None
        if found["state"] == "unknown":
            return "unknown", card["owner"] if card and card["kind"] == "unknown_outcome" and card["due_at"] else None
        return found["state"], None

    def kill(self):
        self.client.close()
        self.daemon.kill()

    def restart(self):
        self.daemon.start()
        self._connect()

    def stop(self):
        self.client.close()
        self.daemon.end()


def run_all(house, chosen):
    """One thread for each provider: they mostly wait."""

    def run_one(matrix, case):
        try:
            return matrix.run(case)
        except Exception as error:  # what happened to one case is told with the others
            return Outcome(case, 0, 0, "open", None, [repr(error)])

    def run(provider):
        with Matrix(lambda name: RealSemel(house, name)) as matrix:
            return [run_one(matrix, case) for case in chosen if case.provider == provider]

    with concurrent.futures.ThreadPoolExecutor(len(CAPABILITY)) as pool:
        return [outcome for outcomes in pool.map(run, CAPABILITY) for outcome in outcomes]


def test_every_provider_every_fault_every_kill(house, evidence, capsys):
    only = [name for name in os.environ.get("SEMEL_E2E_PROVIDERS", "").split(",") if name] or None
    outcomes = run_all(house, list(cases(only=only, quick=not EVERYTHING)))
    with capsys.disabled():
        print("\n" + table(outcomes))
    assert complaints(outcomes) == []
    evidence(**counts(outcomes))


@pytest.mark.parametrize("provider", ["generic"])
def test_where_a_repetition_is_accepted_every_duplicate_was_announced(house, provider):
    """on_unknown: retry. It happens at least once; before a second time, the log says that the first may have happened."""
    fake = fault_matrix.providers.start(provider, askable=False)
    try:
        daemon = house.start(policy=outbox.policy({"it": outbox.sink(fake, on_unknown="retry")}))
        box = outbox.Outbox(house.client(daemon))
        fake.script(["act_then_drop"])
        effect = box.submit("it", "k")
        assert box.over(effect)["state"] == "confirmed" and fake.effects_by_ref() == {"k": 2}
        reasons = [row["reason"] for row in box.decisions(effect)]
        assert "unknown_may_repeat" in reasons and "again_may_have_happened" in reasons, reasons
    finally:
        fake.stop()
