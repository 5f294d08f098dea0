"""`@once(…)`: a function whose effect happens once per key, and whose result every repetition gets."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Iterable, Optional, Sequence, TypeVar, Union, cast

from . import values
from .aio import AsyncClient, default_async_client
from .base import workflow_of
from .client import Client, default_client
from .errors import TemplateError
from .keys import Template, hash_of
from .protocol import Terms
from .session import Care, Effects

F = TypeVar("F", bound=Callable[..., Any])


class Rule:
    """How calls become keys: by a template, by the hash of named arguments, or by the policy of the workflow."""

    def __init__(
        self, template: Optional[str], fields: Optional[Sequence[str]], workflow: Optional[str], name: str,
        ignore: Iterable[str] = (), time: Optional[str] = None, zone: Optional[str] = None,
    ) -> None:
        if template is not None and fields is not None:
            raise TemplateError("give a template or fields, not both")
        if template is None and fields is None and workflow is None:
            raise TemplateError("once needs a key: a template, fields=[…], or the workflow whose policy has one")
        self.template = Template(template, time, zone) if template is not None else None
        self.fields = list(fields) if fields is not None else None
        self.ignore = list(ignore)
        prefix = workflow_of(template)
        self.workflow = workflow or (prefix if prefix != "default" else name)
        self.name = name

    def check(self, parameters: Iterable[str], open_ended: bool) -> None:
        """A key that names an argument which does not exist is a mistake to be found now, not at the first call."""
        named = self.fields if self.fields is not None else sorted(self.template.names()) if self.template else []
        missing = [name for name in named if name not in set(parameters)]
        if missing and not open_ended:
            raise TemplateError(f"{self.name} has no argument {missing[0]}")

    def key_and_input(self, arguments: Dict[str, Any]) -> Any:
        if self.fields is not None:
            chosen = {name: values.plain(arguments[name]) for name in self.fields if name in arguments}
            return f"{self.workflow}:{hash_of(chosen, self.fields)}", values.input_of(chosen)
        if self.template is None:
            return None, values.input_of(arguments, self.ignore)
        needed = {name: values.plain(arguments[name]) for name in self.template.names() if name in arguments}
        return self.template.fill(needed), values.input_of(arguments, self.ignore)


def bound_arguments(signature: inspect.Signature, args: Any, kwargs: Any) -> Dict[str, Any]:
    """All arguments of a call by name, defaults included, and what was caught by `**kwargs` among them."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    arguments: Dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        elif signature.parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL or value:
            arguments[name] = value
    return arguments


def once(
    key: Optional[str] = None,
    *,
    fields: Optional[Sequence[str]] = None,
    workflow: Optional[str] = None,
    ignore: Iterable[str] = (),
    time: Optional[str] = None,
    zone: Optional[str] = None,
    scope: Optional[str] = None,
    on_crash: str = "unknown",
    on_error: Effects = None,
    lease: Optional[float] = None,
    wait: Optional[float] = None,
    keep: Optional[str] = None,
    encode: Optional[Callable[[Any], Any]] = None,
    decode: Optional[Callable[[Any], Any]] = None,
    client: Union[Client, AsyncClient, None] = None,
) -> Callable[[F], F]:
    """Makes a function, sync or async, happen once per key.

    key: a template over the arguments, such as "followup:{lead_id}:{template}:{day}". Or `fields`: the arguments whose hash is the key.
        Or only `workflow`: its policy makes the key.
    ignore: arguments that may differ between attempts (trace ids, a text that a model writes anew). Other arguments that differ under the
        same key raise KeyReused. Arguments that are no JSON (connections, `self`) are ignored anyway.
    time, zone: the argument that holds the event's own time, and where its days are counted, for {day}, {week} … in the template.
    scope: "run" when the same key in another run (SEMEL_RUN) is another thing.
    on_crash: what follows when the process dies in the middle. "unknown": nobody acts again before someone has looked.
        "retry": the function is safe to repeat, for instance because it passes `current().downstream_key` on.
    on_error: what an exception says about the effect: a mapping from exception classes to "none", "final" or "unknown", or a function.
        Without it an exception leaves the outcome unknown, unless it is NoEffect, or on_crash is "retry".
    lease, wait, keep: seconds without a heartbeat; seconds to wait for another caller; how long the result is kept ("30d").
    encode, decode: between what the function returns and JSON.
    """
    care = Care(on_crash, on_error)
    how = {"lease": lease, "wait": wait, "keep": keep, "scope": scope}
    codec = {"encode": encode, "decode": decode}

    def decorate(function: F) -> F:
        name = getattr(function, "__name__", type(function).__name__)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{name} is a generator: what it yields cannot be kept. Return a list")
        rule = Rule(key, fields, workflow, name, ignore, time, zone)
        calls = _Calls(function, rule, care, {**how, "action": name}, codec)
        if inspect.iscoroutinefunction(function):
            return cast(F, calls.asynchronous(client))
        return cast(F, calls.sync(client))

    return decorate


class _Calls:
    """The calls of one decorated function."""

    def __init__(self, function: Callable[..., Any], rule: Rule, care: Care, how: Dict[str, Any], codec: Dict[str, Any]) -> None:
        self.function, self.rule, self.care, self.how, self.codec = function, rule, care, how, codec
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters
        rule.check(parameters, any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()))

    def terms(self, client: Union[Client, AsyncClient], args: Any, kwargs: Any) -> Terms:
        key, about = self.rule.key_and_input(bound_arguments(self.signature, args, kwargs))
        return client.terms(key, workflow=self.rule.workflow, input=about, **self.how)

    def sync(self, client: Union[Client, AsyncClient, None]) -> Callable[..., Any]:
        if isinstance(client, AsyncClient):
            raise TypeError(f"{self.rule.name} is no coroutine function: it needs a Client")
        given: Optional[Client] = client

        @functools.wraps(self.function)
        def call(*args: Any, **kwargs: Any) -> Any:
            own = given or default_client()
            with own.hold(self.terms(own, args, kwargs), self.care, **self.codec) as claim:
                if claim.first:
                    claim.result = self.function(*args, **kwargs)
            return claim.result

        return call

    def asynchronous(self, client: Union[Client, AsyncClient, None]) -> Callable[..., Any]:
        if isinstance(client, Client):
            raise TypeError(f"{self.rule.name} is a coroutine function: it needs an AsyncClient")
        given: Optional[AsyncClient] = client

        @functools.wraps(self.function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            own = given or default_async_client()
            async with own.hold(self.terms(own, args, kwargs), self.care, **self.codec) as claim:
                if claim.first:
                    claim.result = await self.function(*args, **kwargs)
            return claim.result

        return call
