"""The client for threads."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

from .answers import Headers, question_of
from .base import BaseClient
from .claims import Claim
from .protocol import NOT_GIVEN, Answer, Ask, Held, Protocol, Terms, claim
from .session import Care, Delivered, Effects, deliver
from .settings import environment
from .transport import Transport
from .wire import Lost, NotSent, Pause, Reply

T = TypeVar("T")


class Client(BaseClient):
    """Talks with semel. Safe to use from several threads.

    `claim()` is for `with`; the `ask`, `sent`, `confirm`, `fail`, `extend`, `release` below it are the calls of the API, one by one.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, **settings: Any) -> None:
        super().__init__(url, token, **settings)
        self._transport = Transport(self.settings.address, self.settings.token, self.settings.timeout_s, self.tls)

    def drive(self, protocol: Protocol[T]) -> T:
        """Does what a protocol asks for until it has its answer."""
        try:
            ask = next(protocol)
            while True:
                try:
                    reply = self._perform(ask)
                except (NotSent, Lost) as error:
                    ask = protocol.throw(error)
                else:
                    ask = protocol.send(reply)
        except StopIteration as end:
            answer: T = end.value
            return answer
        finally:
            protocol.close()

    def _perform(self, ask: Ask) -> Optional[Reply]:
        if not isinstance(ask, Pause):
            return self._transport.exchange(ask)
        time.sleep(ask.seconds)
        return None

    def claim(
        self, key: Optional[str] = None, *, workflow: Optional[str] = None, input: Any = NOT_GIVEN, lease: Optional[float] = None,
        wait: Optional[float] = None, keep: Optional[str] = None, scope: Optional[str] = None, thread: Optional[str] = None,
        action: Optional[str] = None, epoch: Optional[int] = None, event: Optional[str] = None, question: Optional[str] = None,
        on_crash: str = "unknown", on_error: Effects = None,
        encode: Optional[Callable[[Any], Any]] = None, decode: Optional[Callable[[Any], Any]] = None,
    ) -> Claim:
        """A block that is done once: `with client.claim("invoice:42:send") as c: if c.first: c.result = send()`."""
        terms = self.terms(
            key, workflow=workflow, input=input, lease=lease, wait=wait, keep=keep, scope=scope, thread=thread, action=action,
            epoch=epoch, event=event, question=question,
        )
        return self.hold(terms, Care(on_crash, on_error), encode=encode, decode=decode)

    def answer_once(self, headers: Headers, action: str = "reply", **how: Any) -> Claim:
        """A block that answers a question once: `with client.answer_once(request.headers) as c: if c.first: c.result = reply()`.

        The headers are those of the request with which semel forwarded it.
        """
        return self.claim(action=action, **question_of(headers), **how)

    def hold(self, terms: Terms, care: Care, **codec: Any) -> Claim:
        return Claim(self, self.session(terms, care), **codec)

    # ---- the calls of the API ----

    def ask(self, workflow: str, key: Optional[str] = None, *, two_phase: bool = False, wait: float = 0.0, **more: Any) -> Answer:
        """POST /v1/claims: a Grant (act, then confirm) or a Replay (here is the result); everything else is an exception.

        With `two_phase` a Grant is only claimed: say `sent` before you act. Only such a claim is given again when its answer was lost.
        """
        terms = self.terms(key, workflow=workflow, wait=wait, **more)
        return self.drive(claim(dataclasses.replace(terms, two_phase=two_phase), self.settings.patience_s))

    def sent(self, held: Held) -> Dict[str, Any]:
        """From now on it may have happened. Act only when this returns."""
        return self.drive(self._sent(held)).json

    def confirm(self, held: Held, result: Any = None) -> Dict[str, Any]:
        """It happened; here is the result, any JSON."""
        return self.drive(self._confirm(held, result)).json

    def fail(self, held: Held, effect: str = "unknown", *, final: bool = False, error: str = "", all_attempts: bool = False) -> Dict[str, Any]:
        """It failed; the effect is "none" when you know that nothing happened."""
        return self.drive(self._fail(held, effect, final, error, all_attempts)).json

    def extend(self, held: Held, lease: Optional[float] = None) -> Dict[str, Any]:
        """The lease begins anew."""
        return self.drive(self._extend(held, lease)).json

    def release(self, held: Held) -> Dict[str, Any]:
        """Given back untouched."""
        return self.drive(self._release(held)).json

    def deliver(self) -> Delivered:
        """Tells semel what is in the spool. It happens by itself before the next claim; this is for the end of a job."""
        return self.drive(deliver(self.spool, self.settings.patience_s)) if self.spool is not None else Delivered()

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_lock = threading.Lock()
_default: Optional[Tuple[Tuple[Optional[str], ...], Client]] = None


def default_client() -> Client:
    """The client that the environment describes; a new one when the environment has changed."""
    global _default
    with _lock:
        now = environment()
        if _default is None or _default[0] != now:
            _default = (now, Client())
        return _default[1]
