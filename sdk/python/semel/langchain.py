"""LangChain tools and LangGraph nodes that happen once. Nothing of LangChain is imported: what is needed is looked up on the objects given.

    send_email = once_tool(send_email, key="mail:{to}:{subject}")
    graph.add_node("send", OnceNode(send, key="followup:{thread_id}:{lead_id}"))

The id of a tool call is never part of a key: a model makes a new one for every attempt.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Set, Tuple, get_type_hints

from .aio import default_async_client
from .client import default_client
from .decorate import Rule, bound_arguments
from .keys import make_key
from .session import Care, Effects
from .values import NotPlain, input_of, plain

# What the framework passes along with a call. It says nothing about what is to be done. More is known by its annotation.
FRAMEWORK_ARGUMENTS = ("self", "config", "run_manager", "callbacks", "tool_call_id")
FRAMEWORK_TYPES = ("RunnableConfig", "ToolRuntime", "InjectedToolArg", "InjectedToolCallId", "InjectedState", "InjectedStore")

# LangGraph ends a node with these to come back to it later. By rule nothing has been done before an interrupt.
GRAPH_SIGNALS = ("GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand")

_inside: "contextvars.ContextVar[Tuple[int, ...]]" = contextvars.ContextVar("semel_tools", default=())


def _is_graph_signal(error: BaseException) -> bool:
    return any(kind.__name__ in GRAPH_SIGNALS for kind in type(error).__mro__)


def _with_graph_signals(on_error: Effects) -> Callable[[BaseException], Optional[str]]:
    def effect(error: BaseException) -> Optional[str]:
        if _is_graph_signal(error):
            return "none"
        if callable(on_error):
            return on_error(error)
        return next((word for kind, word in (on_error or {}).items() if isinstance(error, kind)), None)

    return effect


# ---- tools ----


def once_tool(
    tool: Any,
    key: Optional[str] = None,
    *,
    fields: Optional[Sequence[str]] = None,
    workflow: Optional[str] = None,
    ignore: Iterable[str] = (),
    scope: Optional[str] = None,
    on_crash: str = "unknown",
    on_error: Effects = None,
    lease: Optional[float] = None,
    wait: Optional[float] = None,
    keep: Optional[str] = None,
) -> Any:
    """A copy of a tool whose work is done once per key; a repeated call gets the first result.

    key: a template over the tool's arguments. Without key and fields, equal arguments within one run (SEMEL_RUN) are the same call:
    in another run they may well be meant again. The rest is as for `once`.

    The copy is of the tool's own class, so that agents, ToolNode and bind_tools take it as what it is. Only `_run` and `_arun` are wrapped
    (`invoke` and `ainvoke` when there are no such methods), so callbacks, parsing and error handling stay the tool's own.
    """
    name = str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))
    everything = key is None and fields is None and workflow is None
    rule = None if everything else Rule(key, fields, workflow, name)
    wrapper = _ToolCalls(
        name, rule, Care(on_crash, _with_graph_signals(on_error)), set(ignore) | _injected(tool),
        {"lease": lease, "wait": wait, "keep": keep, "scope": scope or ("run" if everything else None), "action": name},
        _as_pair if getattr(tool, "response_format", None) == "content_and_artifact" else None,
    )
    kind = type(tool)
    for sync_name, async_name in (("_run", "_arun"), ("invoke", "ainvoke")):
        if callable(getattr(kind, sync_name, None)):
            return _copy_with(tool, kind, wrapper, sync_name, async_name)
    raise TypeError(f"{name} is no tool: it has neither _run nor invoke. For a function use once")


def _injected(tool: Any) -> Set[str]:
    """The arguments that are filled in by the framework, not by the model."""
    names = set(FRAMEWORK_ARGUMENTS)
    for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None), getattr(type(tool), "_run", None)):
        try:
            hints = get_type_hints(function, include_extras=True) if function is not None else {}
        except Exception:  # annotations that cannot be resolved here tell us nothing
            hints = {}
        for name, hint in hints.items():
            marks = (hint,) + tuple(getattr(hint, "__metadata__", ()))
            kinds = {getattr(mark, "__name__", type(mark).__name__) for mark in marks}
            names.update([name] if kinds & set(FRAMEWORK_TYPES) else [])
    return names


def _as_pair(value: Any) -> Any:
    """A tool with content and artifact returns a tuple; JSON makes a list of it."""
    return tuple(value) if isinstance(value, list) else value


def _copy_with(tool: Any, kind: type, wrapper: "_ToolCalls", sync_name: str, async_name: str) -> Any:
    members: Dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    members[sync_name] = wrapper.sync(getattr(kind, sync_name))
    if callable(getattr(kind, async_name, None)):
        members[async_name] = wrapper.asynchronous(getattr(kind, async_name))
    changed = copy.copy(tool)
    object.__setattr__(changed, "__class__", type(kind)(kind.__name__, (kind,), members))
    return changed


class _ToolCalls:
    def __init__(
        self, name: str, rule: Optional[Rule], care: Care, ignore: Any, how: Dict[str, Any], decode: Optional[Callable[[Any], Any]]
    ) -> None:
        self.name, self.rule, self.care, self.ignore, self.how, self.decode = name, rule, care, ignore, how, decode

    def sync(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
            if id(self) in _inside.get():  # _arun of a tool without async calls _run: that is the same call
                return method(tool, *args, **kwargs)
            client = default_client()
            with client.hold(self._terms(client, method, tool, args, kwargs), self.care, decode=self.decode) as claim:
                if claim.first:
                    mark = _inside.set(_inside.get() + (id(self),))
                    try:
                        claim.result = method(tool, *args, **kwargs)
                    finally:
                        _inside.reset(mark)
            return claim.result

        return call

    def asynchronous(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        async def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
            if id(self) in _inside.get():
                return await method(tool, *args, **kwargs)
            client = default_async_client()
            async with client.hold(self._terms(client, method, tool, args, kwargs), self.care, decode=self.decode) as claim:
                if claim.first:
                    mark = _inside.set(_inside.get() + (id(self),))
                    try:
                        claim.result = await method(tool, *args, **kwargs)
                    finally:
                        _inside.reset(mark)
            return claim.result

        return call

    def _terms(self, client: Any, method: Callable[..., Any], tool: Any, args: Any, kwargs: Any) -> Any:
        arguments = bound_arguments(inspect.signature(method), (tool,) + args, kwargs)
        arguments = _unpacked({name: value for name, value in arguments.items() if name not in self.ignore})
        arguments = {name: value for name, value in arguments.items() if name not in self.ignore}
        if self.rule is not None:
            made, about = self.rule.key_and_input(arguments)
            return client.terms(made, workflow=self.rule.workflow, input=about, **self.how)
        about = input_of(arguments)
        made = f"{self.name}:" + make_key("{hash}", **(about or {"(no arguments)": True}))
        return client.terms(made, workflow="tool", input=about, **self.how)


def _unpacked(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`invoke` gets its arguments in one dict, or in a tool call whose `args` they are; `_run(*args)` may get a single text."""
    given = arguments.get("input")
    if len(arguments) == 1 and isinstance(given, Mapping):
        inner = given.get("args") if given.get("type") == "tool_call" else given
        return dict(inner) if isinstance(inner, Mapping) else {"input": inner}
    rest = arguments.pop("args", None)
    if isinstance(rest, tuple):
        arguments.update({"input": rest[0]} if len(rest) == 1 else {"args": list(rest)})
    return arguments


# ---- nodes ----


class OnceNode:
    """A LangGraph node whose work is done once per key, however often the graph runs it again: retries, resumes, replays.

    key: a template over the state's fields and over `thread_id`, the thread of the graph's config. Only the fields that the key names are
    compared; the rest of a state changes all the time. Without a key it is the thread, the node's name and the hash of the whole state.
    The rest is as for `once`. What the node returns, its update of the state, has to be JSON, or give encode and decode.

    Made from a coroutine function it is one too, as an AsyncOnceNode.
    """

    def __new__(cls, function: Callable[..., Any], *_: Any, **__: Any) -> "OnceNode":
        return object.__new__(AsyncOnceNode if inspect.iscoroutinefunction(function) else OnceNode)

    def __init__(
        self,
        function: Callable[..., Any],
        key: Optional[str] = None,
        *,
        name: Optional[str] = None,
        workflow: Optional[str] = None,
        on_crash: str = "unknown",
        on_error: Effects = None,
        lease: Optional[float] = None,
        wait: Optional[float] = None,
        keep: Optional[str] = None,
        encode: Optional[Callable[[Any], Any]] = None,
        decode: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        self.function = function
        self.__name__: str = name or str(getattr(function, "__name__", type(function).__name__))
        self.__doc__ = getattr(function, "__doc__", None)
        self._rule = Rule(key or "{hash}", None, workflow or (None if key else "node"), self.__name__)
        self._whole = key is None
        self._takes_config = "config" in inspect.signature(function).parameters
        self._care = Care(on_crash, _with_graph_signals(on_error))
        self._how = {"lease": lease, "wait": wait, "keep": keep, "action": self.__name__}
        self._codec = {"encode": encode, "decode": decode}

    def __call__(self, state: Any, config: Any = None) -> Any:
        client = default_client()
        with client.hold(self._terms(client, state, config), self._care, **self._codec) as claim:
            if claim.first:
                claim.result = self._call(state, config)
        return claim.result

    def _call(self, state: Any, config: Any) -> Any:
        return self.function(state, config=config) if self._takes_config else self.function(state)

    def _terms(self, client: Any, state: Any, config: Any) -> Any:
        thread = (config or {}).get("configurable", {}).get("thread_id")
        if self._whole:
            made, about = self._key_of_everything(state, thread)
        else:
            assert self._rule.template is not None
            fields = {"thread_id": thread, **_fields(state)}
            about = {name: plain(fields[name]) for name in self._rule.template.names() if name in fields}
            made = self._rule.template.fill(about)
        named = str(thread)[:200] if thread is not None else None
        return client.terms(made, workflow=self._rule.workflow, input=about, thread=named, **self._how)

    def _key_of_everything(self, state: Any, thread: Any) -> Tuple[str, Dict[str, Any]]:
        if thread is None:
            raise ValueError(f"{self.__name__}: without a key the graph's config has to name a thread_id")
        try:
            whole = {name: plain(value) for name, value in _fields(state).items()}
        except NotPlain as error:
            raise ValueError(f"{self.__name__}: the state is no JSON ({error}); give a key such as 'send:{{thread_id}}:{{lead_id}}'") from error
        return f"{make_key('{t}:{n}', t=thread, n=self.__name__)}:{make_key('{hash}', **(whole or {'(empty)': True}))}", input_of(whole)


class AsyncOnceNode(OnceNode):
    """An OnceNode around a coroutine function."""

    async def __call__(self, state: Any, config: Any = None) -> Any:
        client = default_async_client()
        async with client.hold(self._terms(client, state, config), self._care, **self._codec) as claim:
            if claim.first:
                claim.result = await self._call(state, config)
        return claim.result


def _fields(state: Any) -> Dict[str, Any]:
    """The fields of a state: a dict, or an object such as a dataclass or a pydantic model."""
    return dict(state) if isinstance(state, Mapping) else dict(vars(state))


__all__ = ["AsyncOnceNode", "OnceNode", "once_tool"]
