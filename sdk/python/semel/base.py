"""What both clients have: settings, terms, and the protocols behind the calls of the API."""

from __future__ import annotations

import re
import ssl
from typing import Any, Optional

from .answers import WORKFLOW as ANSWERS
from . import values
from .errors import TemplateError
from .protocol import NOT_GIVEN, Held, Protocol, Terms, failure, say, say_text
from .session import Care, Session
from .settings import make_settings
from .spool import Spool
from .wire import Reply

WAIT_S = 60.0
TIMEOUT_S = 10.0
_PREFIX = re.compile(r"([A-Za-z0-9._-]{1,64}):")


def workflow_of(key: Optional[str]) -> str:
    """The workflow that a key names with its first word: `followup` for `followup:lead_8821:intro`."""
    found = _PREFIX.match(key or "")
    return found.group(1) if found else "default"


class BaseClient:
    """Settings that are not given come from the environment: SEMEL_URL, SEMEL_TOKEN, SEMEL_RUN, SEMEL_MODE, SEMEL_SPOOL, SEMEL_LEASE."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        run: Optional[str] = None,
        mode: Optional[str] = None,
        fail_open: Optional[bool] = None,
        spool: Optional[str] = None,
        lease: Optional[float] = None,
        wait: float = WAIT_S,
        timeout: float = TIMEOUT_S,
        patience: Optional[float] = None,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        """
        lease: seconds that a claim is held without a heartbeat; the workflow's own when not given.
        wait: seconds to wait for another holder. timeout: for one exchange. patience: how long a call is repeated when there is no answer.
        """
        self.settings = make_settings(url, token, run, mode, fail_open, spool, lease, wait, timeout, patience)
        self.tls = tls
        self.spool = Spool(self.settings.spool) if self.settings.spool else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.settings.address)!r})"

    def session(self, terms: Terms, care: Care) -> Session:
        return Session(self.settings, self.spool, terms, care)

    def terms(
        self, key: Optional[str], *, workflow: Optional[str] = None, input: Any = NOT_GIVEN, lease: Optional[float] = None,
        wait: Optional[float] = None, keep: Optional[str] = None, scope: Optional[str] = None, thread: Optional[str] = None,
        action: Optional[str] = None, epoch: Optional[int] = None, event: Optional[str] = None, question: Optional[str] = None,
    ) -> Terms:
        answer = key is None and action is not None and (thread is not None or event is not None)
        workflow = workflow or (ANSWERS if answer else workflow_of(key))
        if scope not in (None, "run"):
            raise ValueError(f"scope is None or 'run', not {scope!r}")
        if scope == "run":
            if key is None:
                raise TemplateError("scope='run' goes with a key, and here the policy makes it")
            key = f"run {self._run_name()}: {key}"
        return Terms(
            workflow=workflow, key=key, input=input if input is NOT_GIVEN else values.plain(input),
            lease_s=lease if lease is not None else self.settings.lease_s, wait_s=wait if wait is not None else self.settings.wait_s,
            keep=keep, run=self.settings.run, thread=thread, action=action, epoch=epoch, event=event, question=question,
        )

    def _run_name(self) -> str:
        if not self.settings.run:
            raise ValueError("scope='run' needs to know the run: set SEMEL_RUN, or give run=")
        return self.settings.run.replace("%", "%25").replace(":", "%3A")

    # ---- the protocols of the calls about a claim ----

    def _sent(self, held: Held) -> Protocol[Reply]:
        return say(held, "sent", {}, self.settings.patience_s)

    def _confirm(self, held: Held, result: Any) -> Protocol[Reply]:
        return say_text(held, "confirm", {"result": values.result_text(result)}, self.settings.patience_s)

    def _fail(self, held: Held, effect: str, final: bool, error: str, all_attempts: bool) -> Protocol[Reply]:
        members = failure(effect, final, error)
        return say(held, "fail", {**members, **({"all_attempts": True} if all_attempts else {})}, self.settings.patience_s)

    def _extend(self, held: Held, lease: Optional[float]) -> Protocol[Reply]:
        return say(held, "extend", {} if lease is None else {"lease_ms": round(lease * 1000)}, self.settings.patience_s)

    def _release(self, held: Held) -> Protocol[Reply]:
        return say(held, "release", {}, self.settings.patience_s)

