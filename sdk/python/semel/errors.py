"""What can go wrong, by what the caller should do about it. All of them are SemelError."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Type


class SemelError(Exception):
    """Base of everything that semel raises. `problem` is the server's answer (RFC 9457), if there was one."""

    def __init__(self, message: str, problem: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.problem: Dict[str, Any] = problem or {}

    @property
    def code(self) -> Optional[str]:
        """The stable code of the problem, such as `in_progress`."""
        return self.problem.get("code")

    @property
    def intent(self) -> Optional[str]:
        return self.problem.get("intent")


class InProgress(SemelError):
    """Someone is doing it right now, and was not ready within the time we waited. Ask again later."""


class OutcomeUnknown(SemelError):
    """Nobody can tell whether it happened. Do not act: find out, then confirm or fail it with `fence`."""

    @property
    def fence(self) -> Optional[int]:
        return self.problem.get("fence")


class KeyReused(SemelError):
    """The key was used before with other contents; `differs` names the fields. Nothing was done."""

    @property
    def differs(self) -> List[str]:
        return list(self.problem.get("differs") or [])


class Refused(SemelError):
    """It was refused for good: it did not happen and will not happen under this key."""


class Expired(SemelError):
    """It was settled so long ago that its result is not kept any more. It is not done again."""


class _WithResult(SemelError):
    """`result` is what the function returned before it turned out that the result cannot be recorded."""

    result: Any = None


class Fenced(_WithResult):
    """The claim is not ours any more: its lease ran out and someone else may have it."""


class Unreachable(_WithResult):
    """semel does not answer. Before the act: nothing was done. After it: `result` holds what came out, and semel was not told."""


class NotAllowed(SemelError):
    """The token is missing, wrong, or may not do this."""


class Invalid(SemelError, ValueError):
    """The request is not right; repeating it does not help."""


class TemplateError(SemelError, ValueError):
    """A key template is not right. Raised when the function is decorated."""


class KeyFieldError(SemelError, ValueError):
    """A key cannot be made from these values; `field` is to blame."""

    def __init__(self, field: Optional[str], why: str) -> None:
        super().__init__(f"the key cannot be made: field '{field}' {why}" if field else f"the key cannot be made: {why}")
        self.field = field


class ResultNotKept(_WithResult):
    """It happened and that is recorded, but what the function returned is no JSON, so that it cannot be given to repetitions.

    `result` is what was returned (only in the call that did it); `described` is what was recorded instead.
    """

    described: Dict[str, Any] = {}


class NoEffect(Exception):
    """Raise it inside of a claim to say: nothing happened, and it may be tried again. With `final` it is refused for good."""

    def __init__(self, message: str = "", final: bool = False) -> None:
        super().__init__(message)
        self.final = final


_BY_CODE: Dict[str, Type[SemelError]] = {
    "in_progress": InProgress,
    "outcome_unknown": OutcomeUnknown,
    "key_reused": KeyReused,
    "refused": Refused,
    "expired": Expired,
    "fenced": Fenced,
    "differs": Fenced,
    "already_sent": Fenced,
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
}


def from_problem(problem: Dict[str, Any]) -> SemelError:
    """The exception for a problem that the server answered with."""
    kind = _BY_CODE.get(str(problem.get("code")), Invalid)
    words = [problem.get("title"), problem.get("detail"), problem.get("hint")]
    sentences = [str(word).rstrip(".") for word in words if word]
    if problem.get("differs"):
        sentences.append("fields that differ: " + ", ".join(map(str, problem["differs"])))
    return kind(". ".join(sentences) or "semel refused the request", problem)
