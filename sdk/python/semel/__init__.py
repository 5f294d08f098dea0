"""semel: each thing happens once. The client for Python, sync and asyncio, with nothing but the standard library.

    from semel import once

    @once("followup:{lead_id}:{template}:{day}")
    def send_followup(lead_id, template, day): ...
"""

from typing import Any, Optional, Union

from .aio import AsyncClient, default_async_client
from .answers import Headers, answer_key, question_of
from .claims import AsyncClaim, Claim, current
from .client import Client, default_client
from .decorate import once
from .errors import (
    Expired, Fenced, InProgress, Invalid, KeyFieldError, KeyReused, NoEffect, NotAllowed, OutcomeUnknown, Refused, ResultNotKept, SemelError,
    TemplateError, Unreachable,
)
from .keys import Template, make_key
from .protocol import Grant, Replay
from .session import Delivered

__version__ = "0.1.0"
__all__ = [
    "AsyncClaim", "AsyncClient", "Claim", "Client", "Delivered", "Expired", "Fenced", "Grant", "InProgress", "Invalid", "KeyFieldError",
    "KeyReused", "NoEffect", "NotAllowed", "OutcomeUnknown", "Refused", "Replay", "ResultNotKept", "SemelError", "Template", "TemplateError",
    "Unreachable", "answer_key", "answer_once", "claim", "current", "default_async_client", "default_client", "make_key", "once",
]


class claim:
    """A block that is done once, for `with` and for `async with`. Takes what `Client.claim` takes."""

    def __init__(self, key: Optional[str] = None, **how: Any) -> None:
        self._key, self._how = key, how
        self._inner: Union[Claim, AsyncClaim, None] = None

    def __enter__(self) -> Claim:
        self._inner = default_client().claim(self._key, **self._how)
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> None:
        assert isinstance(self._inner, Claim)
        self._inner.__exit__(*error)

    async def __aenter__(self) -> AsyncClaim:
        self._inner = default_async_client().claim(self._key, **self._how)
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        assert isinstance(self._inner, AsyncClaim)
        await self._inner.__aexit__(*error)


def answer_once(headers: Headers, action: str = "reply", **how: Any) -> claim:
    """A block that answers a question once, for `with` and for `async with`. The headers are those of the request with which semel forwarded it."""
    return claim(action=action, **question_of(headers), **how)
