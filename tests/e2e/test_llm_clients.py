"""Real clients of models through /llm/…: what was paid twice without semel (tests/interop) is paid once, and everyone reads the same text."""

import json

import pytest

from fault_proxy import Fault, FaultProxy
from interop.run import available, run_client, start_client
from outbox import sink

pytestmark = pytest.mark.skipif(not available(), reason="Node 20 or the npm packages are missing: tools/interop.py")

# client, its provider, settings
CLIENTS = {
    "openai": ("openai", {}), "openai-stream": ("openai", {"STREAM": 1}), "responses": ("openai", {"CALL": "responses"}),
    "responses-stream": ("openai", {"CALL": "responses", "STREAM": 1}), "embeddings": ("openai", {"CALL": "embeddings"}),
    "anthropic": ("anthropic", {}), "anthropic-stream": ("anthropic", {"STREAM": 1}), "ai": ("openai", {}), "ai-stream": ("openai", {"STREAM": 1}),
}
PROGRAMS = {"responses": "openai", "embeddings": "openai"}
every_client = pytest.mark.parametrize("kind", CLIENTS)


@pytest.fixture
def through(opened, fakes):
    """semel in front of a provider, and a proxy in front of semel that breaks the connections that `faults` names, in order."""
    proxies = []

    def make(kind, faults=(), **settings):
        provider, options = CLIENTS[kind]
        model = fakes(provider, odd=True)
        box = opened(**{provider: sink(model, provider, **{"timeout": "60s", **settings})})
        plan = iter(faults)
        proxies.append(FaultProxy(box.daemon.port, lambda: next(plan, Fault())))
        name = kind.split("-")[0]
        to = f"http://127.0.0.1:{proxies[-1].port}/llm/{provider}"
        box.run = lambda **more: run_client(PROGRAMS.get(name, name), to, **options, **more)
        box.start = lambda **more: start_client(PROGRAMS.get(name, name), to, **options, **more)
        box.model, box.proxy = model, proxies[-1]
        return box

    yield make
    for proxy in proxies:
        proxy.close()


@every_client
def test_two_processes_with_one_run_are_one_call(through, kind):
    box = through(kind)
    first, again = [box.run(RUN="r1") for _ in range(2)]
    assert first["ok"] and again["ok"], (first, again)
    assert first["text"] == again["text"] and first.get("id") == again.get("id") and first.get("finished") == again.get("finished")
    assert len(box.model.effects()) == 1 and len(box.model.requests()) == 1
    credential = box.model.requests()[0]
    assert "sk_test_semel" in (credential.header("x-api-key") or credential.header("Authorization"))
    other = box.run(RUN="r2")
    assert other["ok"] and other["text"] != first["text"] and len(box.model.effects()) == 2


@every_client
def test_the_answer_is_lost_on_its_way_and_the_client_tries_again(through, kind):
    """The connection breaks when the answer comes: the client asks again by itself, and the provider is asked once."""
    box = through(kind, [Fault(response=0)])
    outcome = box.run(RUN="r1")
    assert outcome["ok"] and box.proxy.faults == 1, outcome
    assert len(box.model.effects()) == 1 and len(box.model.requests()) == 1


@pytest.mark.parametrize("kind", ["openai", "openai-stream", "responses", "embeddings", "anthropic", "anthropic-stream"])
def test_a_retry_that_says_so_needs_no_run(through, kind):
    box = through(kind, [Fault(response=0), Fault(response=0)])
    outcome = box.run()
    assert outcome["ok"] and box.proxy.faults == 2 and len(box.model.effects()) == 1, outcome


@every_client
def test_two_processes_at_the_same_time_are_one_call(through, kind):
    box = through(kind)
    box.model.script(["act_then_late:2"])
    running = [box.start(RUN="r1") for _ in range(2)]
    first, second = [json.loads(process.communicate(timeout=180)[0].strip().splitlines()[-1]) for process in running]
    assert first["ok"] and second["ok"] and first["text"] == second["text"] and len(box.model.effects()) == 1


@pytest.mark.parametrize("kind", ["openai-stream", "anthropic-stream", "responses-stream", "ai-stream"])
def test_a_stream_that_broke_half_way_is_read_whole_by_the_next_process(through, kind):
    box = through(kind, [Fault(response=600)])
    broken = box.run(RUN="r1", RETRIES=0)
    assert not broken.get("finished")
    whole = box.run(RUN="r1")
    assert whole["ok"] and whole["finished"] and len(box.model.effects()) == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic", "ai"])
@pytest.mark.parametrize("step, effects", [("429:0", 1), ("500_before", 1), ("act_then_drop", 2)])
def test_a_failing_provider_is_asked_again(through, kind, step, effects):
    box = through(kind)
    box.model.script([step])
    outcome = box.run(RUN="r1")
    assert outcome["ok"] and len(box.model.effects()) == effects and box.client.get("/v1/exceptions").json["data"] == []
