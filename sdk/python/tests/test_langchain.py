"""Tools and nodes, with fakes that have the interface of LangChain's BaseTool and StructuredTool and of LangGraph's nodes."""

import asyncio
import copy
import inspect

import pytest

from semel import KeyReused, OutcomeUnknown
from semel.langchain import AsyncOnceNode, OnceNode, once_tool


class BaseTool:
    """The way from invoke to _run is LangChain's: parse, add run_manager and config when _run takes them, format."""

    name = "base"
    description = ""
    args_schema = None
    response_format = "content"

    def __copy__(self):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __setattr__(self, name, value):
        raise AttributeError(f"{name}: a field cannot be set on this model")

    def _run(self, *args, **kwargs):
        raise NotImplementedError

    async def _arun(self, *args, **kwargs):
        return await asyncio.get_running_loop().run_in_executor(None, contextual(self._run, args, kwargs))

    def invoke(self, input, config=None, **kwargs):
        call = input if isinstance(input, dict) and input.get("type") == "tool_call" else {"args": input}
        content = self._run(*self._positional(call["args"]), **self._named(call["args"], config))
        return self._format(content, call.get("id"))

    async def ainvoke(self, input, config=None, **kwargs):
        call = input if isinstance(input, dict) and input.get("type") == "tool_call" else {"args": input}
        content = await self._arun(*self._positional(call["args"]), **self._named(call["args"], config))
        return self._format(content, call.get("id"))

    def _positional(self, given):
        return (given,) if isinstance(given, str) else ()

    def _named(self, given, config):
        named = dict(given) if isinstance(given, dict) else {}
        takes = inspect.signature(self._run).parameters
        named.update({"run_manager": object()} if "run_manager" in takes else {})
        named.update({"config": config} if "config" in takes else {})
        return named

    def _format(self, content, call_id):
        artifact = None
        if self.response_format == "content_and_artifact":
            assert isinstance(content, tuple) and len(content) == 2
            content, artifact = content
        return {"role": "tool", "tool_call_id": call_id, "content": content, "artifact": artifact} if call_id else content


def contextual(function, args, kwargs):
    import contextvars
    import functools

    return functools.partial(contextvars.copy_context().run, functools.partial(function, *args, **kwargs))


class StructuredTool(BaseTool):
    def __init__(self, func=None, coroutine=None, name=None, response_format="content"):
        self.__dict__.update(func=func, coroutine=coroutine, name=name or (func or coroutine).__name__, response_format=response_format)

    def _run(self, *args, config, run_manager=None, **kwargs):
        return self.func(*args, **kwargs)

    async def _arun(self, *args, config=None, run_manager=None, **kwargs):
        if self.coroutine is not None:
            return await self.coroutine(*args, **kwargs)
        return await super()._arun(*args, config=config, run_manager=run_manager, **kwargs)


class InjectedState:
    pass


@pytest.fixture
def sent(semel):
    return []


def mailer(sent, **more):
    def send_email(to, subject, body=""):
        """Sends a mail."""
        sent.append((to, subject))
        return f"sent {len(sent)}"

    return StructuredTool(send_email, **more)


def call(id, **args):
    return {"type": "tool_call", "id": id, "name": "send_email", "args": args}


def test_a_repeated_tool_call_gets_the_first_result_whatever_its_id(sent):
    tool = once_tool(mailer(sent), key="mail:{to}:{subject}")
    first = tool.invoke(call("call_1", to="a@b.c", subject="hi"), {"tags": []})
    again = tool.invoke(call("call_2", to="a@b.c", subject="hi"))
    assert first == {"role": "tool", "tool_call_id": "call_1", "content": "sent 1", "artifact": None}
    assert again == {**first, "tool_call_id": "call_2"}
    assert len(sent) == 1


def test_the_copy_is_a_tool_of_the_same_kind_and_the_original_is_untouched(sent):
    tool = mailer(sent)
    once = once_tool(tool, key="mail:{to}:{subject}")
    assert isinstance(once, StructuredTool) and type(once).__name__ == "StructuredTool"
    assert (once.name, once.func) == (tool.name, tool.func)
    assert inspect.signature(once._run) == inspect.signature(tool._run)
    assert isinstance(copy.copy(once), type(once))
    tool.invoke({"to": "a", "subject": "s"})
    tool.invoke({"to": "a", "subject": "s"})
    assert len(sent) == 2


def test_the_model_changed_its_mind_under_the_same_key(sent):
    tool = once_tool(mailer(sent), key="mail:{to}:{subject}")
    tool.invoke({"to": "a@b.c", "subject": "hi", "body": "Hello"})
    with pytest.raises(KeyReused) as refused:
        tool.invoke({"to": "a@b.c", "subject": "hi", "body": "Good day"})
    assert refused.value.differs == ["body"]
    relaxed = once_tool(mailer(sent), key="letter:{to}", ignore=["body"])
    assert relaxed.invoke({"to": "x", "subject": "s", "body": "1"}) == relaxed.invoke({"to": "x", "subject": "s", "body": "2"})
    assert len(sent) == 2


def test_without_a_key_equal_arguments_are_the_same_within_a_run(sent, monkeypatch):
    tool = once_tool(mailer(sent))
    with pytest.raises(ValueError, match="SEMEL_RUN"):
        tool.invoke({"to": "a", "subject": "s"})
    for run in ("run_1", "run_1", "run_2"):
        monkeypatch.setenv("SEMEL_RUN", run)
        tool.invoke(call("call_9", to="a", subject="s"))
    tool.invoke({"to": "b", "subject": "s"})
    assert sent == [("a", "s"), ("a", "s"), ("b", "s")]


def test_async_tools(sent):
    async def send_email(to, subject):
        await asyncio.sleep(0.01)
        sent.append(to)
        return {"n": len(sent)}

    tool = once_tool(StructuredTool(coroutine=send_email), key="mail:{to}")

    async def main():
        return await asyncio.gather(*[tool.ainvoke(call(f"c{n}", to="a", subject="s")) for n in range(5)])

    answers = asyncio.run(main())
    assert len(sent) == 1 and all(answer["content"] == {"n": 1} for answer in answers)


def test_an_async_call_of_a_sync_tool_does_not_wait_for_itself(sent):
    tool = once_tool(mailer(sent), key="mail:{to}")
    for _ in range(2):
        assert asyncio.run(tool.ainvoke({"to": "a", "subject": "s"})) == "sent 1"
    assert len(sent) == 1


def test_content_and_artifact_come_back_as_a_pair(sent):
    def look(query):
        sent.append(query)
        return f"found {query}", {"rows": [1, 2]}

    tool = once_tool(StructuredTool(look, response_format="content_and_artifact"), key="look:{query}")
    first, again = tool.invoke(call("1", query="q")), tool.invoke(call("2", query="q"))
    assert (first["content"], first["artifact"]) == (again["content"], again["artifact"]) == ("found q", {"rows": [1, 2]})
    assert len(sent) == 1


def test_what_the_framework_injects_is_not_part_of_the_call(sent, monkeypatch):
    from typing import Annotated, Any

    monkeypatch.setenv("SEMEL_RUN", "r")

    def act(order: str, state: Annotated[Any, InjectedState], tool_call_id: str = ""):
        sent.append(order)
        return order

    tool = once_tool(StructuredTool(act))
    tool.invoke({"order": "o", "state": {"n": 1}, "tool_call_id": "1"})
    tool.invoke({"order": "o", "state": {"n": 2}, "tool_call_id": "2"})
    assert sent == ["o"]


def test_an_argument_that_is_called_state_counts(sent, monkeypatch):
    monkeypatch.setenv("SEMEL_RUN", "r")

    def tax(state):
        sent.append(state)
        return state

    tool = once_tool(StructuredTool(tax))
    assert [tool.invoke({"state": name}) for name in ("Ohio", "Utah", "Ohio")] == ["Ohio", "Utah", "Ohio"]
    assert sent == ["Ohio", "Utah"]


def test_a_text_as_the_only_argument(sent):
    class Echo(BaseTool):
        name = "echo"

        def _run(self, query, run_manager=None):
            assert run_manager is not None
            sent.append(query)
            return query.upper()

    tool = once_tool(Echo(), key="echo:{query}")
    assert [tool.invoke("hi"), tool.invoke("hi")] == ["HI", "HI"]
    assert sent == ["hi"]


def test_something_with_invoke_alone(sent):
    class Chain:
        name = "chain"

        def invoke(self, input, config=None):
            sent.append(input)
            return {"n": len(sent)}

    chain = once_tool(Chain(), key="chain:{lead}")
    assert chain.invoke({"lead": 1}) == chain.invoke({"lead": 1}) == {"n": 1}
    with pytest.raises(TypeError, match="neither _run nor invoke"):
        once_tool(object(), key="x:{a}")


def test_a_tool_that_fails_is_unknown_unless_it_says_otherwise(sent):
    def charge(card):
        sent.append(card)
        raise TimeoutError("no answer") if card == "a" else ConnectionRefusedError("nobody there")

    tool = once_tool(StructuredTool(charge), key="charge:{card}", on_error={ConnectionRefusedError: "none"})
    for error in (TimeoutError, OutcomeUnknown):
        with pytest.raises(error):
            tool.invoke({"card": "a"})
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            tool.invoke({"card": "b"})
    assert sent == ["a", "b", "b"]


# ---- nodes ----


class GraphBubbleUp(Exception):
    pass


class GraphInterrupt(GraphBubbleUp):
    pass


def config(thread):
    return {"configurable": {"thread_id": thread}, "metadata": {}}


def test_a_node_that_the_graph_runs_again_acts_once_per_thread(sent):
    def send(state):
        sent.append(state["lead_id"])
        return {"status": "sent"}

    node = OnceNode(send, key="followup:{thread_id}:{lead_id}")
    assert node.__name__ == "send"
    for thread, messages in (("t1", [object()]), ("t1", [object(), object()]), ("t2", [])):
        assert node({"lead_id": 7, "messages": messages}, config(thread)) == {"status": "sent"}
    assert sent == [7, 7]


def test_a_node_is_what_langgraph_looks_for(sent):
    def plain(state):
        return {}

    async def coroutine(state, config):
        sent.append(config["configurable"]["thread_id"])
        return {"ok": True}

    assert list(inspect.signature(OnceNode(plain, key="a:{x}")).parameters) == ["state", "config"]
    node = OnceNode(coroutine, key="b:{x}")
    assert isinstance(node, AsyncOnceNode) and inspect.iscoroutinefunction(node.__call__)
    for _ in range(2):
        assert asyncio.run(node({"x": 1}, config("t"))) == {"ok": True}
    assert sent == ["t"]


def test_an_interrupt_is_no_effect(sent):
    def approve_then_send(state):
        if not state.get("approved"):
            raise GraphInterrupt("may I?")
        sent.append(1)
        return {"done": True}

    node = OnceNode(approve_then_send, key="approve:{thread_id}")
    with pytest.raises(GraphInterrupt):
        node({}, config("t"))
    assert node({"approved": True}, config("t")) == {"done": True}
    assert node({"approved": True}, config("t")) == {"done": True}
    assert sent == [1]


def test_a_node_without_a_key_is_known_by_thread_name_and_state(sent):
    def send(state):
        sent.append(state["n"])
        return {"n": state["n"]}

    node = OnceNode(send)
    for n in (1, 1, 2):
        assert node({"n": n}, config("t")) == {"n": n}
    assert sent == [1, 2]
    with pytest.raises(ValueError, match="thread_id"):
        node({"n": 1})
    with pytest.raises(ValueError, match="give a key"):
        node({"n": object()}, config("t"))
