"""What the real clients do without semel: the duplicates that semel is for. The fakes stand where the providers would."""

import pytest

import providers

from .run import CLIENTS, available, run_client, start_client

pytestmark = pytest.mark.skipif(not available(), reason="Node 20 or the npm packages are missing: tools/interop.py")


@pytest.fixture
def fake(request):
    made = providers.start(request.param)
    yield made
    made.stop()


every_client = pytest.mark.parametrize("fake", CLIENTS, indirect=True)


@every_client
def test_run_twice_it_happens_twice(fake):
    assert all(run_client(fake.name, fake.url, REF="order-7")["ok"] for _ in range(2))
    assert fake.effects_by_ref() == {"order-7": 2}


@every_client
def test_a_path_in_front_and_a_key_are_passed_on(fake):
    """As with semel's /to/<destination>: the base URL has a path, the key is a header."""
    run_client(fake.name, fake.url + f"/to/{fake.name}", KEY="k1", RETRIES=0)
    request = fake.requests()[0]
    assert request.path.startswith(f"/to/{fake.name}/") and not request.path.startswith(f"/to/{fake.name}//")
    assert request.header("Idempotency-Key") == "k1"


@pytest.mark.parametrize("fake, attempts, effects", [("stripe", 2, 1), ("openai", 2, 2), ("slack", 2, 2), ("hubspot", 1, 1)], indirect=["fake"])
def test_after_a_lost_answer_some_try_again(fake, attempts, effects):
    fake.script(["act_then_drop"])
    outcome = run_client(fake.name, fake.url)
    assert outcome["ok"] == (attempts > 1)
    requests = fake.requests()
    assert len(requests) == attempts and len({request.body for request in requests}) == 1
    assert fake.effects_by_ref() == {"order-1": effects}
    if fake.name == "stripe":
        assert len({request.header("Idempotency-Key") for request in requests}) == 1


def test_stripe_a_new_process_makes_a_new_key():
    with providers.start("stripe") as stripe:
        stripe.script(["act_then_hang"])
        first = start_client("stripe", stripe.url)
        stripe.wait("effects", 1)
        first.kill()
        first.communicate()
        assert run_client("stripe", stripe.url)["ok"]
        keys = [request.header("Idempotency-Key") for request in stripe.requests()]
        assert len(set(keys)) == 2 and stripe.effects_by_ref() == {"order-1": 2}


def test_stripe_a_key_of_the_callers_own_is_kept():
    with providers.start("stripe") as stripe:
        assert [run_client("stripe", stripe.url, KEY="k1")["replayed"] for _ in range(2)] == [None, "true"]
        assert stripe.effects_by_ref() == {"order-1": 1}


def test_openai_streams_and_pays_again_for_a_cut_stream():
    with providers.start("openai") as model:
        assert run_client("openai", model.url, STREAM=1)["finished"]
        model.script(["truncate"])
        assert not run_client("openai", model.url, STREAM=1).get("finished")
        assert len(model.effects()) == 2


def test_slack_waits_when_it_is_told_to():
    with providers.start("slack") as slack:
        slack.script(["429:1"])
        assert run_client("slack", slack.url)["ok"]
        assert [request.status for request in slack.requests()] == [429, 200] and slack.effects_by_ref() == {"order-1": 1}


def test_hubspot_retries_a_500_that_hid_a_mail():
    with providers.start("hubspot") as hubspot:
        hubspot.script(["act_then_500"])
        assert run_client("hubspot", hubspot.url, RETRIES=1)["ok"]
        assert hubspot.effects_by_ref() == {"order-1": 2}


def test_hubspot_a_contact_is_made_once_anyway():
    with providers.start("hubspot") as hubspot:
        outcomes = [run_client("hubspot", hubspot.url, CALL=name) for name in ("contact", "contact", "upsert")]
        assert [outcome.get("status") for outcome in outcomes] == [None, 409, None] and outcomes[2]["created"] is False
        assert len(hubspot.effects()) == 1
