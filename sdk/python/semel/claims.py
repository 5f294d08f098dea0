"""What a `with claim(…)` block holds, and the work that surrounds it. The two kinds differ only in how they wait."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Type

from . import values
from .errors import InProgress, ResultNotKept
from .protocol import Terms, failure
from .session import Session

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .client import Client

BEAT_SECONDS_MIN = 0.02

_stack: "contextvars.ContextVar[Tuple[_Claim, ...]]" = contextvars.ContextVar("semel_claims", default=())


def current() -> "_Claim":
    """The claim inside of which we are: for its `downstream_key`, or to say `sent`. LookupError outside of any."""
    stack = _stack.get()
    if not stack:
        raise LookupError("this code does not run inside of a claim")
    return stack[-1]


def _same(value: Any) -> Any:
    return value


class _Claim:
    """Common to both kinds.

    `first` says whether to act. `result` is the first caller's result when someone was before us; otherwise set it: it is what repetitions get.
    """

    def __init__(self, session: Session, encode: Optional[Callable[[Any], Any]] = None, decode: Optional[Callable[[Any], Any]] = None) -> None:
        self._session = session
        self._encode, self._decode = encode or _same, decode or _same
        self._value: Any = None
        self._nothing_done: Optional[Tuple[str, bool]] = None
        self._token: "Optional[contextvars.Token[Tuple[_Claim, ...]]]" = None

    def __repr__(self) -> str:
        return f"<claim {self.workflow} {self.key} {'first' if self.first else 'replay'}>"

    @property
    def first(self) -> bool:
        """True when it is ours to do."""
        return self._session.first

    @property
    def result(self) -> Any:
        return self._value

    @result.setter
    def result(self, value: Any) -> None:
        if not self.first:
            raise ValueError("it was done before: the result is that of the first")
        self._value = value

    @property
    def workflow(self) -> str:
        return self._session.terms.workflow

    @property
    def key(self) -> Optional[str]:
        return self._session.terms.key

    @property
    def intent(self) -> Optional[str]:
        """The id of the intent, for `semel why`."""
        held = self._session.grant or self._session.replay
        return held.intent if held is not None else None

    @property
    def fence(self) -> Optional[int]:
        return self._session.grant.fence if self._session.grant is not None else None

    @property
    def downstream_key(self) -> Optional[str]:
        """A key for the destination, the same for every attempt. None when semel was not asked."""
        return self._session.grant.downstream_key if self._session.grant is not None else None

    @property
    def would(self) -> Optional[str]:
        """What semel would have answered, when it was not obeyed (observe mode, shadow mode, semel away)."""
        return self._session.would

    def no_effect(self, why: str = "", final: bool = False) -> None:
        """Nothing was done, and it may be tried again; with `final` never again. Said when the block ends."""
        self._nothing_done = (why, final)

    def _enter(self) -> None:
        self._token = _stack.set(_stack.get() + (self,))

    def _leave(self) -> None:
        if self._token is not None:
            _stack.reset(self._token)
            self._token = None

    def _refuse_to_wait_for_ourselves(self) -> None:
        mine: Terms = self._session.terms
        for outer in _stack.get():
            terms = outer._session.terms
            if outer.first and mine.key is not None and (terms.workflow, terms.key) == (mine.workflow, mine.key):
                raise InProgress(f"{mine.workflow} {mine.key} is asked for inside of itself", {"code": "in_progress"})

    def _take_replay(self) -> None:
        replay = self._session.replay
        if replay is None:
            return
        if values.is_description(replay.result):
            described = replay.result[values.NOT_KEPT]
            error = ResultNotKept(f"it was done before, but its result was no JSON and was not kept: {described.get('why')}")
            error.described = described
            raise error
        self._value = self._decode(replay.result)

    def _encoded(self) -> Any:
        """The effect has happened: an encoder that fails must not lose it."""
        try:
            return self._encode(self._value)
        except Exception as error:
            return _Unencoded(self._value, error)

    def _beat_seconds(self) -> Optional[float]:
        """How often to say that we are still at it: three times a lease."""
        grant = self._session.grant
        return max(grant.lease_s / 3, BEAT_SECONDS_MIN) if grant is not None and self.first else None


class _Unencoded:
    """Stands for a result that the encoder failed on; it is no JSON, so its description is recorded."""

    def __init__(self, value: Any, error: Exception) -> None:
        self._text = f"{value!r} (encode failed: {type(error).__name__}: {error})"

    def __repr__(self) -> str:
        return self._text


class Claim(_Claim):
    """`with client.claim(…) as c:`"""

    def __init__(self, client: "Client", session: Session, **codec: Any) -> None:
        super().__init__(session, **codec)
        self._client = client
        self._heart: Optional[_Heart] = None

    def __enter__(self) -> "Claim":
        self._refuse_to_wait_for_ourselves()
        try:
            self._client.drive(self._session.begin())
        except Exception:
            raise
        except BaseException:  # interrupted between the claim and the act
            self._client.drive(self._session.undo_begin())
            raise
        self._take_replay()
        seconds = self._beat_seconds()
        if seconds is not None:
            self._heart = _Heart(self._client, self._session, seconds)
        self._enter()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave()
        if self._heart is not None:
            self._heart.stop()
        if not self.first:
            return
        if error is not None:
            self._client.drive(self._session.fail(error))
        elif self._nothing_done is not None:
            why, final = self._nothing_done
            self._client.drive(self._session.fail_as(failure("none", final, why)))
        else:
            self._value = self._decode(self._client.drive(self._session.confirm(self._encoded())))

    def sent(self) -> None:
        """With on_crash="retry": up to here a crash is simply tried again, from here on it is unknown."""
        self._client.drive(self._session.say_sent())


class _Heart(threading.Thread):
    """Extends the lease while the block runs."""

    def __init__(self, client: "Client", session: Session, seconds: float) -> None:
        super().__init__(name="semel-heartbeat", daemon=True)
        self._client, self._session, self._seconds = client, session, seconds
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(self._seconds):
            if not self._client.drive(self._session.beat()):
                return

    def stop(self) -> None:
        self._over.set()


class AsyncClaim(_Claim):
    """`async with client.claim(…) as c:`"""

    def __init__(self, client: "AsyncClient", session: Session, **codec: Any) -> None:
        super().__init__(session, **codec)
        self._client = client
        self._heart: "Optional[asyncio.Task[None]]" = None

    async def __aenter__(self) -> "AsyncClaim":
        self._refuse_to_wait_for_ourselves()
        try:
            await self._client.drive(self._session.begin())
        except Exception:
            raise
        except BaseException:  # cancelled between the claim and the act
            await asyncio.shield(self._client.drive(self._session.undo_begin()))
            raise
        self._take_replay()
        seconds = self._beat_seconds()
        if seconds is not None:
            self._heart = asyncio.ensure_future(self._beat(seconds))
        self._enter()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave()
        if self._heart is not None:
            self._heart.cancel()
        if self.first:
            await asyncio.shield(self._finish(error))  # a cancelled task still has to say what it did

    async def _finish(self, error: Optional[BaseException]) -> None:
        if error is not None:
            await self._client.drive(self._session.fail(error))
        elif self._nothing_done is not None:
            why, final = self._nothing_done
            await self._client.drive(self._session.fail_as(failure("none", final, why)))
        else:
            self._value = self._decode(await self._client.drive(self._session.confirm(self._encoded())))

    async def _beat(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not await self._client.drive(self._session.beat()):
                return

    async def sent(self) -> None:
        """With on_crash="retry": up to here a crash is simply tried again, from here on it is unknown."""
        await self._client.drive(self._session.say_sent())
