"""What @once and claim() promise, for threads and for asyncio alike."""

import asyncio
import dataclasses
import datetime
import decimal
import enum
import threading
import time
import uuid

import pytest

import semel as sdk
from semel import (
    Expired, Fenced, InProgress, Invalid, KeyFieldError, KeyReused, NoEffect, OutcomeUnknown, Refused, ResultNotKept, TemplateError, claim, current,
    once,
)


@pytest.fixture
def acts():
    return []


def test_a_repetition_gets_the_first_result(semel, both, acts):
    @both.once("followup:{lead_id}:{template}:{day}")
    def send(lead_id, template, day="2026-11-15"):
        """Sends."""
        acts.append(lead_id)
        return {"id": len(acts)}

    assert (send.__name__, send.__doc__) == ("send", "Sends.")
    assert send(8821, "intro") == send(8821, template="intro", day="2026-11-15") == {"id": 1}
    assert send(8822, "intro") == {"id": 2}
    assert acts == [8821, 8822]
    assert [(i["workflow"], i["key"]) for i in semel.intents()][-1] == ("followup", "followup:8821:intro:2026-11-15")


def test_callers_that_come_together(semel, both, acts):
    gate = threading.Event()

    @both.once("job:{n}")
    def job(n):
        acts.append(n)
        gate.wait(0.2)
        return {"by": len(acts)}

    assert both.together(12, lambda n: job(1)) == [{"by": 1}] * 12
    assert acts == [1]


def test_a_hundred_coroutines_on_one_loop(semel, acts):
    @once("job:{n}")
    async def job(n):
        acts.append(n)
        await asyncio.sleep(0.01)
        return n

    async def main():
        return await asyncio.gather(*[job(n % 5) for n in range(100)])

    assert asyncio.run(main()) == [n % 5 for n in range(100)]
    assert sorted(acts) == [0, 1, 2, 3, 4]


def test_fields_make_the_key_and_the_rest_is_not_compared(semel, both, acts):
    @both.once(fields=["order_id", "amount"], workflow="refunds")
    def refund(order_id, amount, trace_id=None):
        acts.append(order_id)
        return str(amount)

    assert refund("o1", decimal.Decimal("1.50"), trace_id="a") == refund("o1", decimal.Decimal("1.50"), trace_id="b") == "1.50"
    refund("o1", decimal.Decimal("2"))
    assert acts == ["o1", "o1"]
    assert {intent["workflow"] for intent in semel.intents()} == {"refunds"}
    assert all(intent["key"].startswith("refunds:") for intent in semel.intents())


def test_the_policy_can_make_the_key(semel, both, acts):
    semel.policy("workflows:\n  digest:\n    key: 'digest:{user}:{day}'\n    time: at\n    zone: Europe/Paris\n    ignore: [at]\n")

    @both.once(workflow="digest")
    def digest(user, at):
        acts.append(user)

    digest("u1", datetime.datetime(2026, 11, 15, 23, 30, tzinfo=datetime.timezone.utc))
    digest("u1", "2026-11-16T12:00:00Z")
    digest("u1", "2026-11-17T12:00:00Z")
    assert acts == ["u1", "u1"]
    assert {intent["key"] for intent in semel.intents()} == {"digest:u1:2026-11-16", "digest:u1:2026-11-17"}


def test_time_parts_in_a_template(semel, acts):
    @once("digest:{user}:{week}", time="at", zone="Europe/Paris", ignore=["at"])
    def digest(user, at):
        acts.append(at)

    for at in ("2026-11-15T22:59:59Z", datetime.date(2026, 11, 10), 1794780000):
        digest("u", at)
    digest("u", "2026-11-15T23:00:00Z")
    assert len(acts) == 2


def test_other_contents_under_the_same_key_are_refused(semel, both, acts):
    @both.once("mail:{to}", ignore=["trace"])
    def mail(to, subject, trace=None, connection=None):
        acts.append(subject)

    mail("a", "one", trace=1, connection=object())
    mail("a", "one", trace=2, connection=threading.Lock())
    with pytest.raises(KeyReused) as refused:
        mail("a", "two", connection=object())
    assert refused.value.differs == ["subject"] and "subject" in str(refused.value)
    assert acts == ["one"]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Lead:
    id: int
    email: str


def test_arguments_of_many_kinds(semel, acts):
    @once("a:{day}:{uid}:{colour}:{lead.id}:{amount}")
    def act(day, uid, colour, lead, amount, *rest, **more):
        acts.append(1)

    uid = uuid.UUID(int=7)
    for _ in range(2):
        act(datetime.date(2026, 11, 15), uid, Colour.RED, Lead(1, "a@b.c"), decimal.Decimal("9.90"), 1, 2, extra={"x": [1]})
    assert semel.intents()[0]["key"] == f"a:2026-11-15:{uid}:red:1:9.90" and acts == [1]
    with pytest.raises(KeyFieldError, match="lead.id"):
        act(datetime.date(2026, 11, 15), uid, Colour.RED, {}, 1)
    with pytest.raises(KeyReused):
        act(datetime.date(2026, 11, 15), uid, Colour.RED, Lead(1, "a@b.c"), decimal.Decimal("9.90"), 1, 3, extra={"x": [1]})


def test_long_arguments_are_compared_by_their_hash(semel, acts):
    @once("mail:{to}")
    def mail(to, html, items):
        acts.append(1)

    mail("a", "x" * 2_000_000, list(range(20_000)))
    mail("a", "x" * 2_000_000, list(range(20_000)))
    with pytest.raises(KeyReused) as refused:
        mail("a", "x" * 1_999_999 + "y", list(range(20_000)))
    assert refused.value.differs == ["html"] and acts == [1]


def test_a_method(semel, acts):
    class Mailer:
        @once("mail:{to}")
        def send(self, to):
            acts.append(to)
            return 1

    assert Mailer().send("a") == Mailer().send("a") == 1 and acts == ["a"]


def test_mistakes_are_found_when_the_function_is_decorated():
    for how in [{"key": "never"}, {"key": "{now}:x"}, {"key": "{missing}"}, {}, {"fields": ["missing"], "workflow": "w"},
                {"key": "{a}", "fields": ["a"]}]:
        with pytest.raises(TemplateError):
            once(**how)(lambda a: None)
    with pytest.raises(TypeError, match="generator"):
        @once("x:{a}")
        def generator(a):
            yield a
    with pytest.raises(ValueError, match="on_crash"):
        once("x:{a}", on_crash="panic")
    with pytest.raises(ValueError, match="on_error"):
        once("x:{a}", on_error={OSError: "maybe"})
    with pytest.raises(TypeError, match="AsyncClient"):
        @once("x:{a}", client=sdk.Client())
        async def coroutine(a):
            pass
    once("x:{a}")(lambda **kwargs: None)  # may come in the keywords


# ---- results ----


def test_every_caller_gets_what_json_gives_back(semel, both):
    @both.once("job:{n}")
    def job(n):
        return {"pair": (1, 2), 3: "three", "text": "Zoë → ☃ 😀", "big": 2**70, "nothing": None}

    assert job(1) == job(1) == {"pair": [1, 2], "3": "three", "text": "Zoë → ☃ 😀", "big": 2**70, "nothing": None}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), "\ud800", b"bytes", ["x" * 1_100_000], "deep", {("a", 1): 2}],
                         ids=["object", "set", "nan", "surrogate", "bytes", "long", "deep", "tuple as a name"])
def test_a_result_that_is_no_json_is_described_and_the_effect_is_not_lost(semel, both, acts, value):
    if value == "deep":
        value = 1
        for _ in range(200):
            value = [value]

    @both.once("job:{n}")
    def job(n):
        acts.append(n)
        return value

    with pytest.raises(ResultNotKept) as first:
        job(1)
    assert first.value.result is value or first.value.result == value
    with pytest.raises(ResultNotKept) as again:
        job(1)
    assert again.value.described["why"]
    assert acts == [1] and semel.intents()[0]["state"] == "confirmed"


def test_encode_and_decode(semel, both, acts):
    @both.once("lead:{id}", encode=dataclasses.asdict, decode=lambda data: Lead(**data))
    def lead(id):
        acts.append(id)
        return Lead(id, "a@b.c")

    assert lead(1) == lead(1) == Lead(1, "a@b.c") and acts == [1]


def test_an_encoder_that_fails_does_not_lose_the_effect(semel, both):
    @both.once("lead:{id}", encode=lambda value: 1 / 0)
    def lead(id):
        return id

    with pytest.raises(ResultNotKept, match="ZeroDivisionError|JSON"):
        lead(1)
    assert semel.intents()[0]["state"] == "confirmed"


# ---- exceptions ----


def failing(both, acts, error, **how):
    @both.once("job:{n}", **how)
    def job(n):
        acts.append(n)
        if len(acts) == 1:
            raise error
        return "done"

    return job


def test_an_exception_leaves_the_outcome_unknown(semel, both, acts):
    job = failing(both, acts, TimeoutError("no answer"))
    with pytest.raises(TimeoutError):
        job(1)
    with pytest.raises(OutcomeUnknown) as unknown:
        job(1)
    assert acts == [1] and unknown.value.fence == 1
    assert semel.intents()[0]["error"] == "TimeoutError: no answer"
    client = both.client(semel.url)
    assert both.call(client, "confirm", (unknown.value.intent, unknown.value.fence), "found it")["state"] == "confirmed"
    assert job(1) == "found it"


@pytest.mark.parametrize("how", [
    {"error": NoEffect("declined")},
    {"error": KeyError("x"), "on_error": {LookupError: "none"}},
    {"error": KeyError("x"), "on_error": lambda error: "none" if isinstance(error, KeyError) else None},
    {"error": KeyError("x"), "on_crash": "retry"},
], ids=["NoEffect", "mapping", "function", "on_crash"])
def test_no_effect_may_be_tried_again(semel, both, acts, how):
    job = failing(both, acts, **how)
    with pytest.raises(type(how["error"])):
        job(1)
    assert job(1) == "done" and len(acts) == 2


@pytest.mark.parametrize("how", [{"error": NoEffect("declined", final=True)}, {"error": KeyError("x"), "on_error": {KeyError: "final"}}],
                         ids=["NoEffect", "mapping"])
def test_a_final_refusal_is_remembered(semel, both, acts, how):
    job = failing(both, acts, **how)
    with pytest.raises(type(how["error"])):
        job(1)
    with pytest.raises(Refused):
        job(1)
    assert acts == [1]


def test_even_an_exit_is_reported(semel, both, acts):
    job = failing(both, acts, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        job(1)
    assert semel.intents()[0]["state"] == "unknown"


def test_what_is_expired_is_not_done_again(semel, acts):
    @once("job:{n}", keep="1s")
    def job(n):
        acts.append(n)

    job(1)
    end = time.monotonic() + 60
    with pytest.raises(Expired):
        while time.monotonic() < end:
            job(1)
            time.sleep(0.2)
    assert acts == [1]


def test_a_bad_request_is_invalid(semel, both):
    with pytest.raises(Invalid) as bad:
        both.call(both.client(semel.url), "ask", "w" * 200, "k")
    assert bad.value.code == "invalid"
    with pytest.raises(Invalid, match="key"):
        both.call(both.client(semel.url), "ask", "w")


# ---- claim ----


def test_claim_as_a_block(semel, acts):
    for n in range(2):
        with claim("invoice:42:send") as c:
            assert c.first == (n == 0) and c.workflow == "invoice"
            if c.first:
                assert c.downstream_key.startswith("sml-") and current() is c
                c.result = acts.append(1) or {"n": 1}
        assert c.result == {"n": 1} and c.intent.startswith("int_")
    assert acts == [1]
    with pytest.raises(LookupError):
        current()
    with pytest.raises(ValueError):
        c.result = 2


def test_claim_as_an_async_block(semel, acts):
    async def main():
        for _ in range(2):
            async with claim("invoice:42:send") as c:
                if c.first:
                    assert current() is c
                    c.result = acts.append(1) or {"n": 1}
            assert c.result == {"n": 1}

    asyncio.run(main())
    assert acts == [1]


def test_a_block_can_say_that_nothing_was_done(semel, both):
    client = both.client(semel.url)
    assert both.held(client, lambda c: c.no_effect("not needed today"), "job:1") is None
    assert semel.intents()[0]["state"] == "pending"
    both.held(client, lambda c: c.no_effect("never", final=True), "job:1")
    assert semel.intents()[0]["state"] == "refused"


def test_a_claim_inside_of_itself_is_told_so_at_once(semel):
    with claim("job:1"):
        with pytest.raises(InProgress, match="inside of itself"):
            with claim("job:1"):
                pass
        with claim("job:2"):
            pass


def test_waiting_ends(semel, both):
    held = semel.client().ask("job", "job:1")
    with pytest.raises(InProgress):
        both.held(both.client(semel.url, wait=0.05), lambda c: None, "job:1")
    with pytest.raises(InProgress):
        both.held(both.client(semel.url), lambda c: None, "job:1", wait=0)
    semel.client().release(held)
    assert both.held(both.client(semel.url), lambda c: 1, "job:1") == 1


def test_runs_are_apart_when_the_scope_says_so(semel, both, acts, monkeypatch):
    @both.once("job:{n}", scope="run")
    def job(n):
        acts.append(n)

    with pytest.raises(ValueError, match="SEMEL_RUN"):
        job(1)
    for run in ("r:1", "r:1", "r2"):
        monkeypatch.setenv("SEMEL_RUN", run)
        job(1)
    assert acts == [1, 1]
    assert {intent["run"] for intent in semel.intents()} == {"r:1", "r2"}


def test_each_call_of_the_api(semel, both):
    client = both.client(semel.url)
    held = both.call(client, "ask", "w", "1", two_phase=True, lease=30, input={"a": 1}, action="trying", thread="t")
    assert held.first and held.lease_s == 30 and not held.lease_is_over()
    assert both.call(client, "extend", held, 40)["state"] == "claimed"
    assert both.call(client, "release", held)["state"] == "pending"
    held = both.call(client, "ask", "w", "1", two_phase=True, input={"a": 1})
    assert held.lease_s > 50
    assert both.call(client, "sent", held)["state"] == "sent"
    with pytest.raises(Fenced):
        both.call(client, "release", held)
    assert both.call(client, "fail", held, "none", error="x")["state"] == "pending"
    held = both.call(client, "ask", "w", "1", input={"a": 1})
    assert both.call(client, "confirm", (held.intent, held.fence), [1])["state"] == "confirmed"
    with pytest.raises(Fenced):
        both.call(client, "confirm", held, [2])
    again = both.call(client, "ask", "w", "1", input={"a": 1})
    assert (again.first, again.result) == (False, [1]) and again.confirmed_at
    held = both.call(client, "ask", "w", "2")
    assert both.call(client, "fail", held)["state"] == "unknown"
    assert both.call(client, "fail", held, "none", all_attempts=True)["state"] == "pending"


def test_shadow_mode_of_the_server_lets_everything_through(semel, both, acts):
    semel.policy("mode: shadow\n")
    client = both.client(semel.url)
    woulds = []
    for _ in range(2):
        both.held(client, lambda c: acts.append(1) or woulds.append(c.would), "job:1")
    assert acts == [1, 1] and woulds == [None, "replay"]
