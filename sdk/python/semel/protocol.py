"""How a client talks with semel, written once for threads and for asyncio.

Each function here is a generator: it yields what is to be done (a Request, or a Pause), is sent the Reply, or is thrown NotSent or Lost.
`Client` and `AsyncClient` drive them, and do nothing else of their own.

Every call is safe to repeat, and is repeated while there is patience. A claim carries a nonce, so that its repetition is not locked out by
the claim whose answer was lost: it gets that answer. This needs two phases: in one phase a claim counts as sent.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import secrets
import time
from dataclasses import dataclass
from typing import Any, Dict, Generator, Mapping, Optional, Tuple, TypeVar, Union

from .errors import Fenced, InProgress, Unreachable, from_problem
from .wire import Lost, NotSent, Pause, Reply, Request

T = TypeVar("T")
Ask = Union[Request, Pause]
Protocol = Generator[Ask, Any, T]

WAIT_SLICE_S = 20.0  # a longer wait is asked for in slices, so that no proxy on the way finds it too quiet
BEGIN_TRIES_MAX = 5
ACTION_SIZE_MAX = 128
ERROR_SIZE_MAX = 4096
NOT_GIVEN: Any = object()

log = logging.getLogger("semel")


@dataclass(frozen=True)
class Terms:
    """What is to be done once, and how it is asked for."""

    workflow: str
    key: Optional[str] = None
    input: Any = NOT_GIVEN
    lease_s: Optional[float] = None
    wait_s: float = 0.0
    keep: Optional[str] = None
    run: Optional[str] = None
    thread: Optional[str] = None
    action: Optional[str] = None
    epoch: Optional[int] = None
    event: Optional[str] = None
    question: Optional[str] = None
    two_phase: bool = True

    @property
    def is_answer(self) -> bool:
        """Named by its conversation and what is done there; semel makes the key."""
        return self.key is None and self.action is not None and (self.thread is not None or self.event is not None)

    def body(self, nonce: str, wait_s: float) -> bytes:
        members = {
            "workflow": self.workflow,
            "key": self.key,
            "lease_ms": None if self.lease_s is None else max(10, round(self.lease_s * 1000)),
            "wait_ms": round(wait_s * 1000) or None,
            "keep": self.keep,
            "run": self.run,
            "thread": self.thread,
            "action": _clean(self.action),
            "epoch": self.epoch,
            "event": self.event,
            "question": self.question,
            "two_phase": self.two_phase or None,
            "nonce": nonce if self.two_phase else None,
        }
        body = {name: value for name, value in members.items() if value is not None}
        if self.input is not NOT_GIVEN:
            body["input"] = self.input
        return json.dumps(body, allow_nan=False).encode()


@dataclass(frozen=True)
class Grant:
    """It is ours: act, then say what became of it. `since` is our own clock from before the claim was sent."""

    intent: str
    fence: int
    downstream_key: str
    lease_s: float
    since: float
    would: Optional[str] = None  # shadow mode let it through although this would have been the answer

    @property
    def first(self) -> bool:
        return True

    def lease_is_over(self) -> bool:
        return time.monotonic() - self.since >= self.lease_s


@dataclass(frozen=True)
class Replay:
    """It was done before; here is the result."""

    intent: Optional[str]
    result: Any
    confirmed_at: Optional[str] = None

    @property
    def first(self) -> bool:
        return False


Answer = Union[Grant, Replay]
Held = Union[Grant, Tuple[str, int]]  # for calls about a claim: the grant, or (intent, fence)


# ---- one exchange ----


def exchange(request: Request, patience_s: float, after_loss: Optional[Request] = None) -> Protocol[Tuple[Reply, bool]]:
    """The answer, and whether an earlier one may have been lost on the way to it. Unreachable when patience ends.

    `after_loss` is what is sent instead once an answer was lost.
    """
    end, delay_s, lost = time.monotonic() + patience_s, 0.05, False
    while True:
        pause_s: Optional[float] = None
        problem: Dict[str, Any] = {}
        try:
            reply = yield request
        except NotSent as error:
            why = str(error)
        except Lost as error:
            why, pause_s = str(error), 0.0 if error.stale else None
            lost, request = True, after_loss or request
        else:
            if not reply.may_be_repeated:
                return reply, lost
            why, problem, pause_s = _complaint(request, reply), reply.json, max(delay_s, reply.retry_after_s or 0.0)
            lost, request = True, after_loss or request
        pause_s = delay_s if pause_s is None else pause_s
        if time.monotonic() + pause_s >= end and pause_s > 0:
            raise Unreachable(why, problem)
        yield Pause(pause_s)
        delay_s = min(delay_s * 2, 2.0)


def _complaint(request: Request, reply: Reply) -> str:
    if not reply.is_from_semel:
        return f"something that is not semel answered {request.name} with {reply.status}"
    return f"semel answered {request.name} with {reply.status} {reply.code}: {reply.json.get('detail') or reply.json.get('title')}"


# ---- claim ----


def claim(terms: Terms, patience_s: float) -> Protocol[Answer]:
    """A Grant or a Replay; otherwise the exception that says what to do."""
    nonce, end = secrets.token_hex(16), time.monotonic() + terms.wait_s
    while True:
        since = time.monotonic()
        slice_s = min(max(0.0, end - since), WAIT_SLICE_S)
        reply, lost = yield from exchange(_claim_request(terms, nonce, slice_s), patience_s, _claim_request(terms, nonce, 0.0))
        if reply.status == 201:
            return _grant(reply.json, since)
        if reply.status == 200:
            return Replay(reply.json.get("intent"), reply.json.get("result"), reply.json.get("confirmed_at"))
        error = from_problem(reply.json)
        if not isinstance(error, InProgress) or time.monotonic() >= end:
            raise error
        if not lost and time.monotonic() - since < slice_s / 2:  # it did not want to keep us waiting
            yield Pause(min(reply.retry_after_s or 0.1, max(0.0, end - time.monotonic())))


def _claim_request(terms: Terms, nonce: str, wait_s: float) -> Request:
    return Request("claim", "POST", "/v1/claims", terms.body(nonce, wait_s), wait_s)


def _clean(action: Optional[str]) -> Optional[str]:
    """As much of it as is taken: it is a note for people, and no claim may fail for it."""
    clean = "".join(c if c.isprintable() else " " for c in action or "")
    return clean.encode("utf-8", "replace")[:ACTION_SIZE_MAX].decode("utf-8", "ignore").strip() or None


def _grant(answer: Mapping[str, Any], since: float) -> Grant:
    shadow = answer.get("shadow") or {}
    return Grant(answer["intent"], answer["fence"], answer["downstream_key"], answer["lease_ms"] / 1000, since, shadow.get("would"))


# ---- what a holder says ----


def say(held: Held, verb: str, members: Mapping[str, Any], patience_s: float) -> Protocol[Reply]:
    return say_text(held, verb, {name: json.dumps(value) for name, value in members.items()}, patience_s)


def say_text(held: Held, verb: str, members: Mapping[str, str], patience_s: float) -> Protocol[Reply]:
    """`members` are JSON texts: a result is repeated byte for byte."""
    intent, fence = (held.intent, held.fence) if isinstance(held, Grant) else held
    texts = ",".join(f"{json.dumps(name)}:{text}" for name, text in {"fence": str(fence), **members}.items())
    request = Request(verb, "POST", f"/v1/claims/{intent}/{verb}", b"{" + texts.encode() + b"}")
    reply, _ = yield from exchange(request, patience_s)
    if reply.status != 200:
        raise from_problem(reply.json)
    return reply


def failure(effect: str, final: bool, error: str) -> Dict[str, Any]:
    text = error.replace("\0", " ").encode("utf-8", "replace")[:ERROR_SIZE_MAX].decode("utf-8", "ignore")
    return {"effect": effect, "final": final, "error": text}


# ---- claim, then sent ----


@dataclass
class Progress:
    """What `begin` holds while it is under way, for a caller that is interrupted."""

    grant: Optional[Grant] = None


def begin(terms: Terms, says_sent: bool, patience_s: float, progress: Progress) -> Protocol[Answer]:
    """Claims in two phases and says `sent`, so that a Grant means: act now. What was lost on the way here is never in doubt."""
    end = time.monotonic() + terms.wait_s
    for _ in range(BEGIN_TRIES_MAX):
        left_s = max(0.0, end - time.monotonic())
        answer = yield from claim(dataclasses.replace(terms, wait_s=left_s), patience_s)
        if isinstance(answer, Replay) or not says_sent:
            return answer
        progress.grant = answer
        try:
            yield from say(answer, "sent", {}, patience_s)
        except Fenced:  # the lease ended before we began: nothing was done, so ask again
            progress.grant = None
            continue
        if not answer.lease_is_over():
            return answer
        yield from say(answer, "fail", failure("none", False, "the lease was over before the act"), patience_s)
        progress.grant = None
    raise InProgress(f"the lease of {terms.workflow} ended {BEGIN_TRIES_MAX} times before the act could begin; make it longer")
