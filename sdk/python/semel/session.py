"""One go at an intent, from the claim to the last word about it, in each mode. Protocols, like those in protocol.py.

    enforce   ask semel and obey. When it is away: do nothing (the default), or with `fail_open` act and keep the result in the spool
    observe   ask semel and act in any case; say what it would have answered
    off       do not ask
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Type, Union

from . import values
from .errors import Expired, Fenced, InProgress, Invalid, KeyReused, NoEffect, OutcomeUnknown, Refused, ResultNotKept, SemelError, Unreachable
from .protocol import Grant, Held, Progress, Protocol, Replay, Terms, begin, claim, failure, log, say, say_text
from .settings import Settings
from .spool import Entry, Spool

ON_CRASH = ("unknown", "retry")
EFFECTS = ("none", "final", "unknown")

Effects = Union[Mapping[Type[BaseException], str], Callable[[BaseException], Optional[str]], None]


@dataclass(frozen=True)
class Care:
    """What follows when the act is interrupted."""

    on_crash: str = "unknown"
    on_error: Effects = None

    def __post_init__(self) -> None:
        if self.on_crash not in ON_CRASH:
            raise ValueError(f"on_crash is one of {', '.join(ON_CRASH)}, not {self.on_crash!r}")
        if self.on_error is not None and not callable(self.on_error):
            for word in self.on_error.values():
                _check_effect(word)

    def effect_of(self, error: BaseException, sent: bool) -> str:
        """none, final or unknown: what an exception says about the effect."""
        if isinstance(error, NoEffect):
            return "final" if error.final else "none"
        word: Optional[str] = None
        if callable(self.on_error):
            word = self.on_error(error)
        elif self.on_error is not None:
            word = next((word for kind, word in self.on_error.items() if isinstance(error, kind)), None)
        if word is not None:
            return _check_effect(word)
        return "unknown" if sent else "none"


def _check_effect(word: str) -> str:
    if word not in EFFECTS:
        raise ValueError(f"on_error says one of {', '.join(EFFECTS)}, not {word!r}")
    return word


class Session:
    def __init__(self, settings: Settings, spool: Optional[Spool], terms: Terms, care: Care) -> None:
        self.settings, self.spool, self.terms, self.care = settings, spool, terms, care
        self.grant: Optional[Grant] = None
        self.replay: Optional[Replay] = None
        self.would: Optional[str] = None  # what semel would have answered, when it was not obeyed
        self.sent = False
        self.progress = Progress()
        self._spooled: Optional[str] = None  # the id of our run in the spool

    @property
    def first(self) -> bool:
        return self.replay is None

    # ---- the beginning ----

    def begin(self) -> Protocol[None]:
        if self.settings.mode == "enforce":
            yield from self._begin_enforced()
        elif self.settings.mode == "observe":
            yield from self._begin_observed()

    def _begin_enforced(self) -> Protocol[None]:
        says_sent = self.care.on_crash == "unknown"
        try:
            if self.spool is not None and not self.spool.is_empty():
                yield from deliver(self.spool, self.settings.patience_s)
            answer = yield from begin(self.terms, says_sent, self.settings.patience_s, self.progress)
        except Unreachable:
            if self.settings.fail_open:
                self._begin_locally()
                return
            self._note_nothing_was_done()
            raise
        if isinstance(answer, Replay):
            self.replay = answer
        else:
            self.grant, self.would, self.sent = answer, answer.would, says_sent

    def _begin_observed(self) -> Protocol[None]:
        terms = dataclasses.replace(self.terms, wait_s=0.0)
        try:
            answer = yield from begin(terms, self.care.on_crash == "unknown", 0.0, self.progress)
        except SemelError as error:
            self.would = error.code or "unreachable"
        else:
            self.would = "replay" if isinstance(answer, Replay) else None
            self.grant = answer if isinstance(answer, Grant) else None
            self.sent = self.grant is not None and self.care.on_crash == "unknown"
        if self.would is not None:
            log.info("observed: %s %s would have been %s", self.terms.workflow, self.terms.key, self.would)

    def _begin_locally(self) -> None:
        """semel is away and we act all the same, unless the spool knows better."""
        assert self.spool is not None
        before = self.spool.find(self.terms)
        if before is not None and before.last.get("what") == "done":
            self.replay = Replay(None, json.loads(before.last["result"]))
            return
        if before is not None and before.is_under_way:
            raise InProgress(f"semel is away, and process {before.first['pid']} is doing it", {"code": "in_progress"})
        unknown = before is not None and before.last.get("effect") != "none"
        if unknown and self.care.on_crash == "unknown":
            raise OutcomeUnknown("semel is away, and the last run on this machine may have done it", {"code": "outcome_unknown"})
        log.warning("semel is away: %s %s goes ahead unasked", self.terms.workflow, self.terms.key)
        held = self.progress.grant
        self._spooled = self.spool.begin(self.terms, held.intent if held else None, held.fence if held else None)
        self.would, self.sent = "unreachable", self.care.on_crash == "unknown"

    def _note_nothing_was_done(self) -> None:
        """`sent` may have been recorded although its answer was lost: with a spool, the truth is told later."""
        if self.progress.grant is not None and self.spool is not None:
            self._keep_word(self.progress.grant, "fail", failure("none", False, "semel went away before the act"))

    def undo_begin(self) -> Protocol[None]:
        """For a caller that was interrupted before it could act: gives the claim back."""
        held, self.progress.grant = self.progress.grant, None
        if held is not None:
            try:
                yield from say(held, "fail", failure("none", False, "interrupted before the act"), 0.0)
            except SemelError as error:
                log.warning("%s could not be given back: %s", held.intent, error)

    # ---- while it lasts ----

    def say_sent(self) -> Protocol[None]:
        """From here on it may have happened. Only for on_crash="retry", where it is not said at the start."""
        if self.grant is not None and not self.sent and self.settings.mode == "enforce":
            yield from say(self.grant, "sent", {}, self.settings.patience_s)
            if self.grant.lease_is_over():
                raise Fenced("the lease was over before the act")
        self.sent = True

    def beat(self) -> Protocol[bool]:
        """One heartbeat; False when there is no point in another."""
        assert self.grant is not None
        since = time.monotonic()
        try:
            yield from say(self.grant, "extend", {}, self.grant.lease_s / 3)
            self.grant = dataclasses.replace(self.grant, since=since)
            return True
        except Unreachable as error:
            log.warning("a heartbeat for %s was not heard: %s", self.grant.intent, error)
            return True
        except SemelError as error:
            log.warning("the claim of %s is lost: %s", self.grant.intent, error)
            return False

    # ---- the end ----

    def confirm(self, value: Any) -> Protocol[Any]:
        """It happened. Returns the result as every repetition will get it: as JSON gives it back."""
        if self.settings.mode != "enforce":
            yield from self._confirm_quietly(value)
            return value
        try:
            text, why = values.result_text(value), None
        except values.NotPlain as error:
            text, why = values.description_text(value, str(error)), str(error)
        try:
            why = (yield from self._tell_result(value, text)) or why
        except (Fenced, Unreachable) as error:
            error.result = value
            raise
        if why is None:
            return json.loads(text)
        error_ = ResultNotKept(f"it happened, and that is recorded, but the result cannot be kept: {why}. Return JSON, or give encode=")
        error_.result = value
        raise error_

    def _tell_result(self, value: Any, text: str) -> Protocol[Optional[str]]:
        """None, or why a description was recorded in place of the result."""
        if self._spooled is not None and self.spool is not None:
            self.spool.done(self._spooled, text)
            return None
        assert self.grant is not None
        try:
            yield from self._say_or_keep(self.grant, "confirm", {"result": text})
            return None
        except Invalid as error:  # the server does not take it as JSON: too deep, too many members
            why = str(error)
        yield from self._say_or_keep(self.grant, "confirm", {"result": values.description_text(value, why)})
        return why

    def _confirm_quietly(self, value: Any) -> Protocol[None]:
        if self.grant is None:
            return
        try:
            text = values.result_text(value)
        except values.NotPlain as error:
            text = values.description_text(value, str(error))
        try:
            yield from say_text(self.grant, "confirm", {"result": text}, 0.0)
        except SemelError as error:
            log.info("observed: the result of %s was not recorded: %s", self.grant.intent, error)

    def fail(self, error: BaseException) -> Protocol[None]:
        """It went wrong. What the caller sees is the exception itself, so nothing else is raised from here."""
        word = self.care.effect_of(error, self.sent)
        said = failure("unknown" if word == "unknown" else "none", word == "final", f"{type(error).__name__}: {error}")
        yield from self.fail_as(said)

    def fail_as(self, said: Dict[str, Any]) -> Protocol[None]:
        if self._spooled is not None and self.spool is not None:
            self.spool.failed(self._spooled, said)
        elif self.grant is not None:
            try:
                yield from self._say_or_keep(self.grant, "fail", {name: json.dumps(member) for name, member in said.items()})
            except SemelError as problem:
                log.warning("semel did not take that %s failed: %s", self.grant.intent, problem)

    def _say_or_keep(self, held: Grant, verb: str, members: Dict[str, str]) -> Protocol[None]:
        patience_s = self.settings.patience_s if self.settings.mode == "enforce" else 0.0
        try:
            yield from say_text(held, verb, members, patience_s)
        except Unreachable:
            if self.spool is None:
                raise
            self.spool.say(held.intent, held.fence, verb, members)
            log.warning("semel is away: %s of %s is kept in %s", verb, held.intent, self.spool.path)

    def _keep_word(self, held: Grant, verb: str, members: Dict[str, Any]) -> None:
        assert self.spool is not None
        self.spool.say(held.intent, held.fence, verb, {name: json.dumps(member) for name, member in members.items()})


# ---- the spool ----


@dataclass
class Delivered:
    """What became of the spool. `duplicates` happened here and elsewhere too; `rejected` are for a person, in the file beside the spool."""

    delivered: int = 0
    duplicates: int = 0
    rejected: int = 0
    left: int = 0


def deliver(spool: Spool, patience_s: float) -> Protocol[Delivered]:
    """Tells semel what happened while it was away. Unreachable when it still is."""
    report = Delivered()
    for entry in spool.entries():
        if entry.is_under_way:
            report.left += 1
            continue
        try:
            known = yield from (_deliver_run(entry, patience_s) if entry.is_run else _deliver_word(entry, patience_s))
        except InProgress:
            report.left += 1
            continue
        except (Fenced, OutcomeUnknown, KeyReused, Refused, Expired, Invalid) as error:
            log.warning("the spool holds what semel does not take: %s", error)
            spool.reject(entry, str(error))
            report.rejected += 1
            continue
        spool.over(entry.id)
        report.delivered += 1
        if not known:
            log.warning("%s %s was done here while semel was away, and elsewhere too", entry.first.get("workflow"), entry.first.get("key"))
            report.duplicates += 1
    return report


def _deliver_word(entry: Entry, patience_s: float) -> Protocol[bool]:
    yield from say_text((entry.first["intent"], entry.first["fence"]), entry.first["verb"], entry.first["members"], patience_s)
    return True


def _deliver_run(entry: Entry, patience_s: float) -> Protocol[bool]:
    """False when someone else did it too."""
    verb, members = _last_word(entry)
    if entry.first.get("intent") is not None:
        try:
            yield from say_text((entry.first["intent"], entry.first["fence"]), verb, members, patience_s)
            return True
        except Fenced:  # someone else has claimed it since
            pass
    answer = yield from claim(entry.terms(), patience_s)
    if isinstance(answer, Replay):
        return bool(verb == "fail" or answer.result == json.loads(members["result"]))
    held: Held = answer
    yield from say(held, "sent", {}, patience_s)
    yield from say_text(held, verb, members, patience_s)
    return True


def _last_word(entry: Entry) -> Any:
    if entry.last.get("what") == "done":
        return "confirm", {"result": entry.last["result"]}
    said = entry.last or failure("unknown", False, "the process ended while semel was away")
    return "fail", {name: json.dumps(said[name]) for name in ("effect", "final", "error")}
