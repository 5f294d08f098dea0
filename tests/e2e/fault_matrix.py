"""Every provider × every fault × kill -9 of semel at every step: how many effects there were, what semel says of it, and who has it.

This file makes the cases, runs one through the fakes of tests/providers, judges it and prints the table. What it does not know is semel: an adapter
tells it, see class Adapter. Nothing here measures time; waiting is for conditions.

    matrix = Matrix(adapter_for)                     # provider name -> an Adapter, started
    outcomes = [matrix.run(case) for case in cases(quick=True)]
    print(table(outcomes)); assert not complaints(outcomes)
"""

import dataclasses
import json
import random
import time
import urllib.parse

import providers

SETTLE_SECONDS = 240  # generous; nothing is measured
# What a provider lets semel do when an outcome is open. `key`: it deduplicates, so try again with the same key. `upsert`: naturally the same. `ask`: it can be
# asked afterwards. `none`: nothing, a person has to look.
CAPABILITY = {
    "stripe": "key", "resend": "key", "generic-keys": "key", "discord": "key", "hubspot": "upsert", "postmark": "ask", "slack": "ask", "twilio": "ask",
    "sendgrid": "none", "openai": "none", "generic": "none", "smtp": "none",
}
OPTIONS = {"generic": {"askable": False}}
FAULTS = (
    "ok", "slow_stream", "act_then_late", "429", "bad_request", "refuse_connect", "drop_before", "500_before", "503_retry_after", "hang", "act_then_drop", "truncate",
    "truncate_head", "act_then_500", "act_then_hang", "forget_keys",
)
OWN_FAULTS = {"slack": ("act_then_fatal",), "smtp": ("drop_in_data", "reply:RCPT:550", "reply:DOT:451")}
WITHOUT_MEANING = {"smtp": {"forget_keys"}, "sendgrid": {"truncate"}}
# When semel is killed, and what the provider does with the first attempt to make that moment certain.
KILLS = {
    "never": [],
    "accepted": [],  # semel has accepted, the provider is down: nothing was sent, but semel may have written down that it was about to
    "read": ["hang"],  # the provider has the request and does nothing with it
    "acted": ["act_then_hang"],  # it happened, nothing was answered
    "answered": [],  # the provider has played its part to the end; semel may or may not have written it down
    "late": ["late_act"],  # the provider has the request, and acts only after semel is up again
}
WARM = ("act_then_drop", "drop_before", "truncate_head", "refuse_connect")
SHORT = {"slow_stream": "slow_stream:0.2", "act_then_late": "act_then_late:0.2"}  # well within a destination's time-out
DEFINITE = {"bad_request", "reply:RCPT:550"}  # the provider says no, and means it
PLAIN = {"ok", "slow_stream", "act_then_late", "429", "forget_keys"}  # no outcome is open
FINAL = ("confirmed", "refused", "dead", "unknown")


@dataclasses.dataclass(frozen=True)
class Call:
    """What is to be done once. For smtp: `path` is the recipient and `body` the message."""

    provider: str
    ref: str
    method: str
    path: str
    headers: dict
    body: bytes
    answered: bool = True  # sooner or later, so that there is no need to give up


def call_for(provider, ref, answered=True):
    """One business call, about `ref`, as a user would send it: no key and no mark of semel's in it."""

    def as_json(path, body):
        return Call(provider, ref, "POST", path, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def as_form(path, body):
        return Call(provider, ref, "POST", path, {"Content-Type": "application/x-www-form-urlencoded"}, urllib.parse.urlencode(body).encode())

    makers = {
        "stripe": lambda: as_form("/v1/charges", {"amount": "500", "currency": "eur", "source": "tok_visa", "metadata[ref]": ref}),
        "resend": lambda: as_json("/emails", {"from": "a@x.io", "to": ["b@y.io"], "subject": "Hi", "text": "Hi", "tags": [{"name": "ref", "value": ref}]}),
        "postmark": lambda: as_json("/email", {"From": "a@x.io", "To": "b@y.io", "Subject": "Hi", "TextBody": "Hi", "Metadata": {"ref": ref}}),
        "sendgrid": lambda: as_json("/v3/mail/send", {
            "personalizations": [{"to": [{"email": "b@y.io"}]}], "from": {"email": "a@x.io"}, "subject": "Hi",
            "content": [{"type": "text/plain", "value": "Hi"}], "custom_args": {"ref": ref}}),
        "hubspot": lambda: as_json("/crm/v3/objects/contacts/batch/upsert", {
            "inputs": [{"idProperty": "email", "id": f"{ref}@example.com", "properties": {"firstname": "Jon"}}]}),
        "slack": lambda: as_json("/api/chat.postMessage", {
            "channel": "C1", "text": f"About {ref}", "metadata": {"event_type": "lead", "event_payload": {"ref": ref}}}),
        "twilio": lambda: as_form("/2010-04-01/Accounts/AC1/Messages.json", {"To": "+15550001111", "From": "+15550002222", "Body": ref}),
        "discord": lambda: as_json("/api/v10/channels/42/messages", {"content": ref}),
        "openai": lambda: as_json("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "metadata": {"ref": ref}}),
        "smtp": lambda: Call(provider, ref, "SMTP", "b@y.io", {}, f"From: a@x.io\r\nTo: b@y.io\r\nSubject: Hi\r\nX-Ref: {ref}\r\n\r\nHi\r\n".encode()),
    }
    return dataclasses.replace(makers.get(provider, lambda: as_json("/hook", {"ref": ref}))(), answered=answered)


def ref_seen(call):
    """How the fake names this call's effect."""
    return {"twilio": f"+15550001111: {call.ref}", "discord": f"42: {call.ref}", "hubspot": f"{call.ref}@example.com"}.get(call.provider, call.ref)


# The cases


@dataclasses.dataclass(frozen=True)
class Case:
    provider: str
    fault: str
    kill: str
    warm: bool = False  # on a connection that was kept alive: some HTTP libraries repeat a request there by themselves

    @property
    def capability(self):
        return CAPABILITY[self.provider]

    @property
    def script(self):
        return KILLS[self.kill] + [SHORT.get(self.fault, self.fault)]

    @property
    def answered(self):
        """Nobody has to give up on it, to wait for the lease of a dead process, or to wait until nothing more can arrive."""
        return self.kill == "never" and self.fault in PLAIN | DEFINITE

    @property
    def promise_broken(self):
        """The provider forgets a key within its time, after it has acted; or a mail server says that it did not take a mail (451) which it delivers. Nobody can do
        anything about a second effect then; the table shows it."""
        if self.provider == "smtp" and self.fault == "act_then_500":
            return True
        return self.fault == "forget_keys" and self.capability == "key" and self.kill in ("acted", "late")

    @property
    def name(self):
        return f"{self.provider}-{self.fault}-{self.kill}" + ("-warm" if self.warm else "")


def cases(only=None, quick=False, seed=1, sample=24):
    """All cases, or with `quick` every fault without a kill, every kill without a fault, and a sample of the rest."""
    rest = []
    for provider in only or CAPABILITY:
        faults = [fault for fault in FAULTS + OWN_FAULTS.get(provider, ()) if fault not in WITHOUT_MEANING.get(provider, ())]
        for fault in faults:
            for kill in KILLS:
                case = Case(provider, fault, kill)
                if quick and fault != "ok" and kill != "never":
                    rest.append(case)
                else:
                    yield case
        for fault in WARM:
            if provider != "smtp":
                yield Case(provider, fault, "never", warm=True)
    yield from random.Random(seed).sample(rest, min(sample, len(rest)))


# What is told about semel


class Adapter:
    """semel, as far as the matrix must know it. One adapter serves many cases of one provider, one after the other; each has a ref of its own.

    For calls that are not `answered` the destination should have a time-out of about a second, for the others one that no slow machine reaches; about ten attempts
    with short pauses; and for providers that can be asked a short settle time: then each case ends soon. `hang` and `act_then_hang` last until semel's time-out."""

    def start(self, fake):
        """Starts semel with one destination at `fake.url` (a port of the fake's; smtp://… for the mail server)."""
        raise NotImplementedError

    def submit(self, call):
        """Hands `call` to semel's outbox with a key made from call.ref. Returns a handle as soon as semel has accepted it durably, without waiting for the
        delivery: the provider may be down or hang."""
        raise NotImplementedError

    def final(self, handle):
        """None while semel still works on it. Then (state, owner): `confirmed` it happened; `refused` the provider said no; `dead` given up, it surely
        did not happen; `unknown` it may have happened, and `owner` names who has the card (None when nobody has: that is a complaint)."""
        raise NotImplementedError

    def kill(self):
        """kill -9, and returns when the process is gone."""
        raise NotImplementedError

    def restart(self):
        """On the same data; returns when it serves."""
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError


# Running a case


@dataclasses.dataclass
class Outcome:
    case: Case
    effects: int
    requests: int
    state: str
    owner: str
    wrong: list


class Matrix:
    """Keeps one fake (in a process of its own) and one adapter for each provider."""

    def __init__(self, adapter_for, spawn=True, seconds=SETTLE_SECONDS):
        self.adapter_for, self.spawn, self.seconds = adapter_for, spawn, seconds
        self.pairs, self.count = {}, 0

    def _pair(self, provider):
        if provider not in self.pairs:
            fake = (providers.spawn if self.spawn else providers.start)(provider, **OPTIONS.get(provider, {}))
            adapter = self.adapter_for(provider)
            self.pairs[provider] = (fake, adapter)
            adapter.start(fake)
        return self.pairs[provider]

    def close(self):
        for fake, adapter in self.pairs.values():
            adapter.stop()
            fake.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, case):
        fake, adapter = self._pair(case.provider)
        self.count += 1
        call = call_for(case.provider, f"r{self.count}-{case.kill}", case.answered)
        fake.reset()
        if case.warm:
            self._settle(adapter, adapter.submit(call_for(case.provider, f"w{self.count}")))
        before = fake.counts()["requests"]
        fake.script(case.script)
        if case.kill == "accepted":
            fake.down()
        handle = adapter.submit(call)
        self._strike(case, fake, adapter)
        state, owner = self._settle(adapter, handle)
        requests = fake.requests(since=before)
        effects = fake.effects_by_ref().get(ref_seen(call), 0)
        return Outcome(case, effects, len(requests), state, owner, judge(case, effects, requests, state, owner))

    def _strike(self, case, fake, adapter):
        """Kills semel at the moment that the case is about, and starts it again."""
        if case.kill == "never":
            return
        if case.kill == "answered":
            self._until(lambda: not fake.pending(), f"{case.name}: the provider has played its part")
        elif case.kill != "accepted":
            fake.wait({"read": "requests", "acted": "effects", "late": "held"}[case.kill], 1)
        adapter.kill()
        if case.kill == "accepted":
            fake.up()
        adapter.restart()
        if case.kill == "late":
            fake.release()

    def _settle(self, adapter, handle):
        found = []
        self._until(lambda: found.append(adapter.final(handle)) or found[-1], None)
        return found[-1] or ("open", None)

    def _until(self, check, what):
        end = time.monotonic() + self.seconds
        while not check():
            if time.monotonic() > end:
                if what:
                    raise AssertionError(f"waited {self.seconds} s in vain for: {what}")
                return
            time.sleep(0.01)


# Judging it


def judge(case, effects, requests, state, owner):
    """What is wrong with an outcome, in words; nothing when it keeps the promises."""
    wrong = []
    if state not in FINAL:
        wrong.append(f"it never came to an end ({state})")
    if effects > 1 and not case.promise_broken:
        wrong.append(f"it happened {effects} times")
    if state == "confirmed" and effects == 0:
        wrong.append("confirmed, but it did not happen")
    if state in ("refused", "dead") and effects:
        wrong.append(f"{state}, but it happened")
    if state == "unknown" and not owner:
        wrong.append("unknown, and nobody has it")
    wrong += judge_requests(case, requests)
    expected = expected_state(case)
    if expected and state != expected:
        wrong.append(f"{state}, although nothing was open: {expected} was to be expected")
    return wrong


def judge_requests(case, requests):
    """Retries are byte-identical, and use the same key. Questions (GET) are not retries."""
    acts = [request for request in requests if getattr(request, "method", "SMTP") not in ("GET", "HEAD") and not request_asks(request)]
    if len({request.body for request in acts if request.body}) > 1:
        yield "a retry had another body"
    if case.provider != "smtp" and len({request.header("Idempotency-Key") for request in acts}) > 1:
        yield "a retry had another key"


def request_asks(request):
    return getattr(request, "path", "").endswith(("/search", "/conversations.history"))


def expected_state(case):
    """The state that must come out because nothing is left open; None where several are right."""
    if case.kill == "never" and case.fault in DEFINITE:
        return "refused"
    if case.kill == "never" and case.fault in PLAIN:
        return "confirmed"
    safe_to_repeat = case.capability in ("key", "upsert")
    stored_500 = case.provider == "stripe" and case.fault == "act_then_500"  # its key gives back this 500 for ever
    if safe_to_repeat and case.fault not in DEFINITE and not stored_500 and not case.promise_broken:
        return "confirmed"
    return None


# Printing it


def cell(outcome):
    """Effects, state, owner; a ! where something is wrong, a * where the provider broke its promise."""
    who = f" ({outcome.owner})" if outcome.state == "unknown" and outcome.owner else ""
    return f"{outcome.effects} {outcome.state}{who}" + ("!" if outcome.wrong else "*" if outcome.case.promise_broken and outcome.effects > 1 else "")


def table(outcomes):
    """One table for each provider in Markdown: a row for each fault, a column for each moment of the kill."""
    parts = []
    for provider in dict.fromkeys(outcome.case.provider for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.case.provider == provider]
        rows = {}
        for outcome in own:
            row = outcome.case.fault + (", warm" if outcome.case.warm else "")
            rows.setdefault(row, {})[outcome.case.kill] = cell(outcome)
        lines = [f"**{provider}** ({CAPABILITY[provider]})", ""]
        lines += ["| fault | " + " | ".join(KILLS) + " |", "|---" * (len(KILLS) + 1) + "|"]
        lines += [f"| {row} | " + " | ".join(cells.get(kill, "") for kill in KILLS) + " |" for row, cells in rows.items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n\n" + summary(outcomes)


def summary(outcomes):
    states = {state: sum(outcome.state == state for outcome in outcomes) for state in (*FINAL, "open")}
    twice = sum(outcome.effects > 1 and not outcome.case.promise_broken for outcome in outcomes)
    said = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    return f"{len(outcomes)} cases: {said}; {twice} happened twice; {sum(bool(outcome.wrong) for outcome in outcomes)} complaints"


def complaints(outcomes):
    return [f"{outcome.case.name}: {what}" for outcome in outcomes for what in outcome.wrong]


def counts(outcomes):
    """For the fixture `evidence`."""
    return {
        "cases": len(outcomes), "effects": sum(outcome.effects for outcome in outcomes), "unknown": sum(outcome.state == "unknown" for outcome in outcomes),
        "kills": sum(outcome.case.kill != "never" for outcome in outcomes), "duplicates": sum(outcome.effects > 1 and not outcome.case.promise_broken for outcome in outcomes),
    }
