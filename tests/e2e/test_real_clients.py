"""Real client libraries through /to/…: what happened twice without semel (tests/interop) happens once. The clients are those of npm, Python's own, and curl."""

import email.message
import json
import shutil
import smtplib
import subprocess
import urllib.error
import urllib.request

import pytest

from interop.run import CLIENTS, available, run_client, start_client
from outbox import Outbox, keyed, policy, provider_calls, sink
from semel_process import until

npm = pytest.mark.skipif(not available(), reason="Node 20 or the npm packages are missing: tools/interop.py")
KEYS = {"stripe": "{metadata.ref}", "openai": "{metadata.ref}", "hubspot": "{customProperties.ref}"}


@pytest.fixture
def through(opened, fakes):
    """semel in front of a provider; `to` is the base URL for its clients."""

    def make(provider, **settings):
        fake = fakes(provider)
        box = opened(**{provider: sink(fake, provider, **{"rate": "1000/s", "timeout": "60s", **settings})})
        box.to = f"http://127.0.0.1:{box.daemon.port}/to/{provider}"
        return box, fake

    return make


# npm


@npm
@pytest.mark.parametrize("provider", CLIENTS)
def test_run_twice_it_happens_once(through, provider):
    box, fake = through(provider)
    first, again = [run_client(provider, box.to, KEY="k", REF="order-7") for _ in range(2)]
    assert first["ok"] and again["ok"] and first["id"] == again["id"], (first, again)
    assert fake.effects_by_ref() == {"order-7": 1} and len(fake.requests()) == 1
    authorization = fake.requests()[0].header("Authorization")
    assert "sk_test_semel" in authorization, "the caller's own credential reaches the provider"


@npm
@pytest.mark.parametrize("provider", ["stripe", "openai", "hubspot"])
def test_without_a_key_of_its_own_the_template_makes_it_one(through, provider):
    """A new process makes a new random key, or none: the destination's key template maps both to one."""
    box, fake = through(provider, key=KEYS[provider])
    first, again = [run_client(provider, box.to, REF="order-7") for _ in range(2)]
    assert first["ok"] and again["ok"] and first["id"] == again["id"] and fake.effects_by_ref() == {"order-7": 1}
    other = run_client(provider, box.to, REF="order-8")
    assert other["ok"] and other["id"] != first["id"] and fake.effects_by_ref() == {"order-7": 1, "order-8": 1}


@npm
@pytest.mark.parametrize("provider", ["stripe", "openai", "hubspot"])
def test_a_client_that_is_killed_between_attempts(through, provider):
    box, fake = through(provider, key=KEYS[provider])
    fake.script(["act_then_late:release"])
    first = start_client(provider, box.to, REF="order-7")
    fake.wait("held", 1)
    first.kill()
    first.communicate()
    fake.release()
    again = run_client(provider, box.to, REF="order-7")
    assert again["ok"] and fake.effects_by_ref() == {"order-7": 1} and len(fake.requests()) == 1
    if provider == "stripe":
        assert fake.requests()[0].header("Idempotency-Key").startswith("sml-") and again["replayed"] == "true"


@npm
def test_stripe_after_a_lost_answer_tries_again_and_is_charged_once(through):
    box, stripe = through("stripe", key=KEYS["stripe"])
    stripe.script(["act_then_drop"])
    outcome = run_client("stripe", box.to, REF="order-7")
    assert outcome["ok"] and stripe.effects_by_ref() == {"order-7": 1} and len(stripe.requests()) == 2
    assert len({request.header("Idempotency-Key") for request in stripe.requests()}) == 1


@npm
@pytest.mark.parametrize("provider", ["openai", "slack", "hubspot"])
def test_where_nobody_can_tell_the_library_does_not_try_again(through, provider):
    """They would repeat a lost call by themselves. The answer tells them not to, or does no harm when they do."""
    fault = "act_then_500" if provider == "hubspot" else "act_then_drop"
    box, fake = through(provider, **({"calls": [{"name": "send", "methods": ["POST"], "paths": ["/marketing/**"], "key": {"in": "nowhere"}}]} if provider == "hubspot" else {}))
    fake.script([fault])
    outcome = run_client(provider, box.to, KEY="k", REF="order-7", RETRIES=2)
    assert not outcome["ok"] and fake.effects_by_ref() == {"order-7": 1} and len([request for request in fake.requests() if request.method == "POST"]) == 1
    assert box.cards()[0]["owner"] == "dana"


@npm
def test_a_stream_of_openai(through):
    box, model = through("openai", key=KEYS["openai"])
    first, again = [run_client("openai", box.to, REF="order-7", STREAM=1) for _ in range(2)]
    assert first["finished"] and again["finished"] and first["text"] == again["text"] and again["replayed"] == "true"
    assert model.effects_by_ref() == {"order-7": 1}


@npm
def test_slack_waits_when_it_is_told_to(through):
    box, slack = through("slack")
    slack.script(["429:1"])
    assert run_client("slack", box.to, KEY="k", REF="order-7")["ok"] and slack.effects_by_ref() == {"order-7": 1}


@npm
def test_semel_is_killed_while_stripe_charges(through):
    box, stripe = through("stripe", key=KEYS["stripe"], timeout="3s")
    stripe.script(["act_then_hang"])
    first = start_client("stripe", box.to, REF="order-7", RETRIES=0)
    stripe.wait("effects", 1)
    box.daemon.kill()
    first.communicate(timeout=60)
    box.daemon.start()
    until(lambda: run_client("stripe", box.to, REF="order-7").get("ok"), "the end of the lease")
    assert stripe.effects_by_ref() == {"order-7": 1}


# Python's own, and curl


def post(url, body, **headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_urllib(opened, fake):
    box = opened(sink=sink(fake))
    url = f"http://127.0.0.1:{box.daemon.port}/to/sink/hook"
    first, again = [post(url, {"ref": "r"}, **{"Idempotency-Key": "k"}) for _ in range(2)]
    assert first[0] == again[0] == 200 and first[2] == again[2] and again[1]["Idempotent-Replayed"] == "true" and fake.effects_by_ref() == {"r": 1}
    fake.script(["act_then_drop"])
    assert [post(url, {"ref": "lost"}, **{"Idempotency-Key": "lost"})[0] for _ in range(2)] == [409, 409]
    assert fake.effects_by_ref() == {"r": 1, "lost": 1}


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl(opened, fakes):
    fake = fakes("generic-keys")
    box = opened(it=keyed(fake, key="{ref}"))
    url = f"http://127.0.0.1:{box.daemon.port}/to/it/hook"
    fake.script(["act_then_drop"])
    words = ["curl", "-sS", "--retry", "5", "--retry-all-errors", "--retry-delay", "1", "--fail", "-H", "Content-Type: application/json", "-d", '{"ref":"r"}', url]
    outs = [subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout for _ in range(2)]
    assert '"ok": true' in outs[0] and outs[0][-40:] == outs[1][-40:] and fake.effects_by_ref() == {"r": 1} and len(fake.requests()) == 2
    form = subprocess.run(["curl", "-sS", "-F", "a=b", "-H", "Idempotency-Key: f", url], capture_output=True, text=True, timeout=60, check=True)
    assert '"ok": true' in form.stdout and b"multipart/form-data" in fake.requests()[-1].head
    big = subprocess.run(["curl", "-sS", "--data-binary", "@-", "-H", "Idempotency-Key: big", "-H", "Content-Type: text/plain", url], input="x" * 900000, capture_output=True,
                         text=True, timeout=60, check=True)
    assert '"ok": true' in big.stdout and len(fake.requests()[-1].body) == 900000


def test_smtplib_twice_is_two_mails_and_the_outbox_makes_it_one(opened, fakes):
    smtp = fakes("smtp")
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"], message["Message-ID"] = "a@x.io", "b@y.io", "plain", "<one@x.io>"
    message.set_content("Hi")
    for _ in range(2):
        with smtplib.SMTP("127.0.0.1", smtp.port) as server:
            server.send_message(message)
    assert smtp.by_message_id() == {"<one@x.io>": 2}
    box = opened(mail=sink(smtp, "smtp"))
    mail = {"to": "b@y.io", "subject": "semel", "text": "Hi"}
    url = f"http://127.0.0.1:{box.daemon.port}/v1/effects"
    answers = [post(url, {"destination": "mail", "key": "m", "mail": mail}) for _ in range(2)]
    assert [answer[0] for answer in answers] == [202, 200]
    box.over(json.loads(answers[0][2])["effect"])
    assert [count for ref, count in smtp.effects_by_ref().items() if "semel" in ref] == [1]


def test_a_python_worker_that_dies_between_attempts(opened, fakes, tmp_path):
    """A process of its own with urllib and no key: killed while it waits, run again."""
    fake = fakes()
    box = opened(sink=sink(fake, timeout="60s", key="{ref}"))
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import sys, urllib.request\n"
        "request = urllib.request.Request(sys.argv[1], b'{\"ref\":\"r\"}', {'Content-Type': 'application/json'})\n"
        "print(urllib.request.urlopen(request, timeout=120).read().decode())\n")
    words = ["/usr/bin/python3", str(worker), f"http://127.0.0.1:{box.daemon.port}/to/sink/hook"]
    fake.script(["act_then_late:release"])
    first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    fake.wait("held", 1)
    first.kill()
    first.communicate()
    fake.release()
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert '"ok": true' in done.stdout and fake.effects_by_ref() == {"r": 1}
