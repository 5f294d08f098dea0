"""That the fault matrix catches what it should: senders with known mistakes are caught, a careful one is not. No semel here."""

import http.client
import json
import socket
import threading

import pytest

from fault_matrix import CAPABILITY, FAULTS, KILLS, Adapter, Case, Matrix, cases, complaints, judge, summary, table

TIMEOUT = 1.5  # for what is not answered
ATTEMPTS = 200


class Toy(Adapter):
    """A small careful outbox. Its records outlive a kill; a kill closes its sockets and ends its threads' say. `mistakes` are what it does not take care of."""

    def __init__(self, provider, mistakes=()):
        self.provider, self.mistakes, self.capability = provider, set(mistakes), CAPABILITY[provider]
        self.records, self.generation, self.open_socket, self.lock = {}, 0, None, threading.Lock()

    def start(self, fake):
        self.fake = fake

    def submit(self, call):
        record = {"call": call, "sent": False, "final": None}
        self.records[call.ref] = record
        self._work(record)
        return call.ref

    def final(self, handle):
        return self.records[handle]["final"]

    def kill(self):
        with self.lock:
            self.generation += 1
            if self.open_socket:
                try:
                    self.open_socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it was closed already
                self.open_socket = None

    def restart(self):
        for record in self.records.values():
            if not record["final"]:
                self._work(record)

    def stop(self):
        self.kill()

    # The work

    def _work(self, record):
        threading.Thread(target=self._deliver, args=(record, self.generation), daemon=True).start()

    def _write(self, record, generation, **fields):
        """A dead process writes nothing."""
        with self.lock:
            if generation != self.generation:
                raise SystemExit
            record.update(fields)

    def _deliver(self, record, generation):
        for attempt in range(ATTEMPTS):
            if record["sent"] and not self._may_repeat(record, generation):
                return
            self._write(record, generation, sent="forget_sent" not in self.mistakes)
            verdict = self._send(record["call"], attempt, generation)
            if generation != self.generation:
                return
            if verdict == "retry":
                self._write(record, generation, sent=record.get("open", False))
            elif verdict == "open":
                self._write(record, generation, open=True)
            else:
                verdict = "unknown" if verdict == "refused" and record.get("open") and "believe_refusal" not in self.mistakes else verdict
                self._write(record, generation, final=(verdict, "dana" if verdict == "unknown" else None))
                return
        self._write(record, generation, final=("unknown", "dana"))

    def _may_repeat(self, record, generation):
        """After an attempt whose outcome is open."""
        self._write(record, generation, open=True)
        if self.capability in ("key", "upsert") or "retry_blindly" in self.mistakes:
            return True
        seen = self._ask(record["call"]) if self.capability == "ask" else None
        self._write(record, generation, final=("confirmed", None) if seen else ("unknown", "dana"))
        return False

    def _ask(self, call):
        """Postmark only. Absence proves nothing here, since something may still be on its way."""
        for _ in range(ATTEMPTS):
            connection = http.client.HTTPConnection("127.0.0.1", self.fake.port, timeout=60)
            try:
                connection.request("GET", f"/messages/outbound?count=1&offset=0&metadata_ref={call.ref}")
                return json.loads(connection.getresponse().read())["TotalCount"]
            except OSError:
                threading.Event().wait(0.05)
            finally:
                connection.close()
        return 0

    def _send(self, call, attempt, generation):
        try:
            status = self._exchange(call, attempt, generation)
        except ConnectionRefusedError:
            threading.Event().wait(0.05)
            return "retry"
        except (OSError, http.client.HTTPException):
            return "open"
        if status < 300:
            return "confirmed"
        if status in (409, 429):
            threading.Event().wait(0.05)
            return "retry" if status == 429 else "open"
        return "refused" if status < 500 else "open"

    def _exchange(self, call, attempt, generation):
        key = call.ref + (f"-{attempt}" if "new_key" in self.mistakes else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.fake.port, timeout=60 if call.answered else TIMEOUT)
        with self.lock:
            if generation != self.generation:
                raise SystemExit
            connection.connect()
            self.open_socket = connection.sock
        try:
            body = call.body + b" " * attempt if "other_body" in self.mistakes else call.body
            connection.request(call.method, call.path, body, {**call.headers, "Idempotency-Key": key})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


CAREFUL = ("generic", "generic-keys", "stripe", "postmark")


def run(chosen, *mistakes):
    with Matrix(lambda provider: Toy(provider, mistakes), spawn=False) as matrix:
        return [matrix.run(case) for case in chosen]


def test_a_careful_sender_has_no_complaints():
    outcomes = run(list(cases(CAREFUL, quick=True, sample=30)))
    assert complaints(outcomes) == [], table(outcomes)
    assert {outcome.state for outcome in outcomes} == {"confirmed", "refused", "unknown"}
    assert any(outcome.effects == 0 for outcome in outcomes) and any(outcome.effects == 1 for outcome in outcomes)


@pytest.mark.parametrize("mistake, case, said", [
    ("retry_blindly", Case("generic", "act_then_drop", "never"), "happened 2 times"),
    ("forget_sent", Case("generic", "ok", "acted"), "happened 2 times"),
    ("new_key", Case("stripe", "act_then_drop", "never"), "happened 2 times"),
    ("new_key", Case("stripe", "drop_before", "never"), "another key"),
    ("other_body", Case("generic-keys", "drop_before", "never"), "another body"),
    ("believe_refusal", Case("stripe", "bad_request", "acted"), "refused, but it happened"),
])
def test_a_mistake_is_caught(mistake, case, said):
    outcomes = run([case], mistake)
    assert any(said in line for line in complaints(outcomes)), table(outcomes)


def test_the_judge_knows_each_lie():
    case = Case("generic", "act_then_drop", "never")
    assert judge(case, 1, [], "unknown", "dana") == []
    assert judge(case, 1, [], "unknown", None) == ["unknown, and nobody has it"]
    assert judge(case, 0, [], "confirmed", None) == ["confirmed, but it did not happen"]
    assert judge(case, 1, [], "dead", None) == ["dead, but it happened"]
    assert judge(case, 1, [], "open", None) == ["it never came to an end (open)"]
    assert judge(Case("stripe", "ok", "never"), 1, [], "unknown", "dana") == ["unknown, although nothing was open: confirmed was to be expected"]
    assert judge(Case("generic", "429", "never"), 0, [], "dead", None) == ["dead, although nothing was open: confirmed was to be expected"]


def test_a_broken_promise_of_the_provider_is_shown_but_no_complaint():
    outcomes = run([Case("stripe", "forget_keys", "acted")])
    assert (outcomes[0].effects, complaints(outcomes)) == (2, []) and "2 confirmed*" in table(outcomes)


def test_the_cases_are_complete_and_the_table_shows_them():
    everything = list(cases())
    assert {case.provider for case in everything} == set(CAPABILITY) and {case.kill for case in everything} == set(KILLS)
    assert all(set(FAULTS) - {"forget_keys", "truncate"} <= {case.fault for case in everything if case.provider == provider} for provider in CAPABILITY)
    assert len({case.name for case in everything}) == len(everything)
    assert list(cases(quick=True)) == list(cases(quick=True)) and len(list(cases(quick=True))) < len(everything) / 2
    outcomes = run([Case("generic", "ok", "never"), Case("generic", "act_then_drop", "never", warm=True)])
    assert "| ok | 1 confirmed |" in table(outcomes) and "| act_then_drop, warm | 1 unknown (dana) |" in table(outcomes)
    assert summary(outcomes).startswith("2 cases: 1 confirmed, 1 unknown; 0 happened twice; 0 complaints")


def test_each_provider_takes_its_call():
    """The calls of the matrix are what the fakes understand, and their effects are found again."""
    for provider in CAPABILITY:
        if provider == "smtp":
            continue
        outcome = run([Case(provider, "ok", "never")])[0]
        assert (outcome.effects, outcome.state, outcome.wrong) == (1, "confirmed", []), provider
