"""The tests that an author of agents writes first: three sends are one; fail after the send, retry, still one."""

import pytest

from semel import OutcomeUnknown, current, once


class NetworkError(Exception):
    pass


class EmailProvider:
    """Sends mails, and sends one with a key that it knows only once. `fail_after_send`: sends, then raises."""

    def __init__(self):
        self.sent = []
        self.keys = set()
        self.calls = 0
        self.fail_after_send = False

    def send(self, to, idempotency_key=None):
        self.calls += 1
        if idempotency_key is None or idempotency_key not in self.keys:
            self.sent.append(to)
        self.keys.add(idempotency_key)
        if self.fail_after_send:
            raise NetworkError("the answer was lost")
        return {"message_id": f"m-{len(self.sent)}"}

    @property
    def actually_sent_count(self):
        return len(self.sent)


@pytest.fixture
def db(semel):
    """What the author's own table was for."""
    return semel


@pytest.fixture
def fake_email_provider():
    return EmailProvider()


@pytest.fixture
def flaky_email_provider():
    return EmailProvider()


@pytest.fixture
def send_followup(request):
    """The agent's tool, with the provider that the test uses. The provider deduplicates on our key, so a crash may be retried."""
    name = "fake_email_provider" if "fake_email_provider" in request.fixturenames else "flaky_email_provider"
    provider = request.getfixturevalue(name)

    @once("followup:{lead_id}:{template}:{day}", on_crash="retry")
    def send_followup(db, lead_id, template, day):
        return provider.send(lead_id, idempotency_key=current().downstream_key)

    return send_followup


def test_send_followup_is_idempotent(db, fake_email_provider, send_followup):
    payload = {"lead_id": "lead_8821", "template": "followup_v2", "day": "2025-01-15"}

    send_followup(db, **payload)
    send_followup(db, **payload)
    send_followup(db, **payload)

    assert len(fake_email_provider.sent) == 1


def test_send_followup_recovers_from_crash(db, flaky_email_provider, send_followup):
    flaky_email_provider.fail_after_send = True  # send, then raise

    with pytest.raises(NetworkError):
        send_followup(db, lead_id="lead_8821", template="followup_v2", day="2025-01-15")

    flaky_email_provider.fail_after_send = False
    send_followup(db, lead_id="lead_8821", template="followup_v2", day="2025-01-15")  # retry

    # The provider received two calls, but only one email went out
    # because the provider's idempotency layer dedupes the second
    assert flaky_email_provider.actually_sent_count == 1
    assert flaky_email_provider.calls == 2


def test_a_provider_that_cannot_deduplicate_is_not_called_again(semel, flaky_email_provider):
    @once("followup:{lead_id}")
    def send_followup(lead_id):
        return flaky_email_provider.send(lead_id)

    flaky_email_provider.fail_after_send = True
    with pytest.raises(NetworkError):
        send_followup("lead_8821")
    flaky_email_provider.fail_after_send = False
    with pytest.raises(OutcomeUnknown):
        send_followup("lead_8821")
    assert flaky_email_provider.actually_sent_count == 1


def test_the_policy_can_say_that_the_destination_deduplicates(semel, flaky_email_provider):
    semel.policy("workflows:\n  followup:\n    capability: idempotent\n")

    @once("followup:{lead_id}")
    def send_followup(lead_id):
        return flaky_email_provider.send(lead_id, idempotency_key=current().downstream_key)

    flaky_email_provider.fail_after_send = True
    with pytest.raises(NetworkError):
        send_followup("lead_8821")
    flaky_email_provider.fail_after_send = False
    assert send_followup("lead_8821") == {"message_id": "m-1"}
    assert flaky_email_provider.actually_sent_count == 1
