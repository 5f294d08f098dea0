"""Answers in a conversation: each question gets one, whoever gives it.

The key is made by semel; this is how it looks, and where an agent finds what it answers.
"""

from typing import Any, Dict, Iterable, Mapping, Optional, Tuple, Union

from .errors import Invalid

WORKFLOW = "answers"
Headers = Union[Mapping[str, Any], Iterable[Tuple[Any, Any]]]


def answer_key(thread: str, action: str, *, epoch: Optional[int] = None, question: Optional[str] = None) -> Optional[str]:
    """`thr_…:3:reply`; `THREAD:QUESTION:ACTION` for a conversation that semel did not see come in; None when only semel knows it."""
    if epoch is not None:
        return f"{thread}:{epoch}:{action}"
    if question is not None:
        return f"{thread}:{_part(question)}:{_part(action)}"
    return None


def _part(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in ":%" or ord(c) < 0x20 or c == "\x7f" else c for c in text)


def question_of(headers: Headers) -> Dict[str, Any]:
    """What a request that semel forwarded says about its conversation: `thread` and `epoch`."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    said = {_text(name).lower(): _text(value).strip() for name, value in pairs}
    thread, epoch = said.get("semel-thread"), said.get("semel-epoch")
    if not thread or not epoch or not epoch.isdecimal():
        raise Invalid("these headers name no question; what semel forwards to be answered has Semel-Thread and Semel-Epoch")
    return {"thread": thread, "epoch": int(epoch)}


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
