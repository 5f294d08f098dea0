"""`semel trigger`: deliveries as their senders make them, checked here by a second reading of each scheme. And the policies of the documents are right."""

import base64
import hashlib
import hmac
import json
import os
import re
import subprocess
import urllib.parse

import pytest

from plain_server import Server, reply
from semel_process import REPO, binary

SECRET = "s3cret-of-the-test"
SVIX = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()


@pytest.fixture
def inbox():
    server = Server(lambda head, body: reply(200, b'{"ok":true}'))
    yield server
    server.stop()


def headers_of(head):
    lines = head.decode().split("\r\n")
    return lines[0], {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}


def trigger(server, tmp_path, source, settings, *options, secret=SECRET):
    policy = tmp_path / "semel.yaml"
    policy.write_text(f"sources:\n  it: {{preset: {source}, {settings}}}\n")
    done = subprocess.run([binary(), "trigger", "it", "--policy", policy, "--url", server.url, "--id", "A1", *options], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "THE_SECRET": secret})
    assert secret not in done.stdout + done.stderr
    return done, [(*headers_of(head), body) for _, head, body in server.requests]


def mac(secret, data, name="sha256"):
    return hmac.new(secret.encode() if isinstance(secret, str) else secret, data, name).digest()


def by_hub(headers, body, url):
    return headers["x-hub-signature-256"] == "sha256=" + mac(SECRET, body).hex()


def by_stripe(headers, body, url):
    pairs = dict(pair.split("=", 1) for pair in headers["stripe-signature"].split(","))
    return pairs["v1"] == mac(SECRET, pairs["t"].encode() + b"." + body).hex()


def by_slack(headers, body, url):
    return headers["x-slack-signature"] == "v0=" + mac(SECRET, b"v0:" + headers["x-slack-request-timestamp"].encode() + b":" + body).hex()


def by_typeform(headers, body, url):
    return headers["typeform-signature"] == "sha256=" + base64.b64encode(mac(SECRET, body)).decode()


def by_hubspot(headers, body, url):
    signed = b"POST" + url.encode() + body + headers["x-hubspot-request-timestamp"].encode()
    return headers["x-hubspot-signature-v3"] == base64.b64encode(mac(SECRET, signed)).decode()


def by_twilio(headers, body, url):
    fields = sorted(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
    return headers["x-twilio-signature"] == base64.b64encode(mac(SECRET, (url + "".join(a + b for a, b in fields)).encode(), "sha1")).decode()


def by_standard(headers, body, url):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return headers["webhook-signature"] == "v1," + base64.b64encode(mac(base64.b64decode(SVIX[6:]), signed)).decode()


def by_mailgun(headers, body, url):
    part = json.loads(body)["signature"]
    return part["signature"] == mac(SECRET, (part["timestamp"] + part["token"]).encode()).hex()


SCHEMES = {"github": by_hub, "whatsapp": by_hub, "messenger": by_hub, "meta-lead-ads": by_hub, "stripe": by_stripe, "slack": by_slack, "typeform": by_typeform,
           "hubspot": by_hubspot, "twilio": by_twilio, "standard-webhooks": by_standard, "mailgun": by_mailgun}


@pytest.mark.parametrize("source", SCHEMES)
def test_a_delivery_is_signed_as_the_sender_signs_it(inbox, tmp_path, source):
    secret = SVIX if source == "standard-webhooks" else SECRET
    done, requests = trigger(inbox, tmp_path, source, "secret: env:THE_SECRET", "--text", 'Is it "free"? ü', secret=secret)
    assert done.returncode == 0, done.stderr
    (line, headers, body), = requests
    assert line == "POST /in/it HTTP/1.1"
    assert "authorization" not in headers
    assert SCHEMES[source](headers, body, f"{inbox.url}/in/it")


def test_twice_is_byte_for_byte_and_again_is_the_same_event_signed_anew(inbox, tmp_path):
    done, requests = trigger(inbox, tmp_path, "stripe", "secret: env:THE_SECRET", "--twice")
    assert done.returncode == 0, done.stderr
    assert len(requests) == 2 and requests[0] == requests[1]
    inbox.requests.clear()
    done, requests = trigger(inbox, tmp_path, "stripe", "secret: env:THE_SECRET", "--again-after", "40m")
    assert done.returncode == 0, done.stderr
    (_, first, body), (_, again, body_again) = requests
    assert body == body_again and first["stripe-signature"] != again["stripe-signature"]
    assert by_stripe(again, body, "")
    happened, signed = json.loads(body)["created"], int(re.search(r"t=(\d+)", first["stripe-signature"])[1])
    assert signed - happened == 2400


def test_a_tampered_delivery_no_longer_fits_its_signature(inbox, tmp_path):
    done, requests = trigger(inbox, tmp_path, "github", "secret: env:THE_SECRET", "--tamper")
    (_, headers, body), = requests
    assert not by_hub(headers, body, "")
    assert json.loads(body)
    assert done.returncode == 65 and "was not refused" in done.stderr  # this inbox takes everything
    inbox.answer = lambda head, body: reply(401, b"{}")
    done, _ = trigger(inbox, tmp_path, "github", "secret: env:THE_SECRET", "--tamper")
    assert done.returncode == 0, done.stderr
    done, _ = trigger(inbox, tmp_path, "github", "secret: env:THE_SECRET")
    assert done.returncode == 65


HOUSE = {**{source: "secret: env:THE_SECRET" for source in SCHEMES if source != "standard-webhooks"}, "standard-webhooks": "secret: env:THE_SVIX",
         "svix": "secret: env:THE_SVIX", "resend": "secret: env:THE_SVIX", "openai": "secret: env:THE_SVIX", "calendly": "secret: env:THE_SECRET",
         "shopify": "secret: env:THE_SECRET", "telegram": "secret: env:THE_SECRET", "postmark": "secret: env:THE_LOGIN",
         "cloudevents": "secret: env:THE_SECRET, verify: bearer", "form": "secret: env:THE_SECRET, verify: query", "json": "secret: env:THE_SECRET, verify: hmac",
         "mail": "secret: env:THE_SECRET, verify: bearer"}


def test_every_preset_is_taken_by_the_daemon_and_refused_when_tampered_with(house, tmp_path, monkeypatch):
    secrets = {"THE_SECRET": SECRET, "THE_SVIX": SVIX, "THE_LOGIN": "user:password"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    daemon = house.start("sqlite")
    policy = tmp_path / "semel.yaml"
    policy.write_text("sources:\n" + "".join(f"  {source}: {{{settings}}}\n" for source, settings in HOUSE.items()))
    url = ["--url", f"http://127.0.0.1:{daemon.port}"]
    subprocess.run([binary(), "policy", "apply", policy, *url], check=True, timeout=60, capture_output=True)
    for source in HOUSE:
        for options, status in ((["--twice"], "200"), (["--tamper"], "401")):
            done = subprocess.run([binary(), "trigger", source, *options, *url], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, source + done.stdout + done.stderr
            assert {line.split()[1] for line in done.stdout.splitlines()} == {status}, source


def test_several_can_come_in_reverse(inbox, tmp_path):
    done, requests = trigger(inbox, tmp_path, "whatsapp", "secret: env:THE_SECRET", "--count", "3", "--reorder", "--from", "+15550001111")
    assert done.returncode == 0, done.stderr
    messages = [json.loads(body)["entry"][0]["changes"][0]["value"]["messages"][0] for _, _, body in requests]
    assert [one["id"] for one in messages] == ["wamid.A1-2", "wamid.A1-1", "wamid.A1"]
    assert [int(one["timestamp"]) for one in messages] == sorted((int(one["timestamp"]) for one in messages), reverse=True)
    assert {one["from"] for one in messages} == {"15550001111"}


@pytest.mark.parametrize("settings", ["verify: bearer, secret: env:THE_SECRET", "verify: query, secret: env:THE_SECRET"])
def test_a_dry_run_sends_nothing_and_shows_no_secret(inbox, tmp_path, settings):
    done, requests = trigger(inbox, tmp_path, "json", settings, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"POST {inbox.url}/in/it") and '"id":"A1"' in done.stdout
    assert requests == []


def test_a_secret_that_cannot_be_had_is_said(inbox, tmp_path):
    done, _ = trigger(inbox, tmp_path, "github", "secret: env:NOT_SET_ANYWHERE")
    assert done.returncode == 78 and "NOT_SET_ANYWHERE is not set" in done.stderr
    done, _ = trigger(inbox, tmp_path, "github", "secret: secret:hub")
    assert done.returncode == 64 and "--secret env:NAME" in done.stderr


def test_a_window_shorter_than_the_senders_patience_is_warned_of(tmp_path):
    policy = tmp_path / "semel.yaml"
    for window, warned in (("window: 6d", False), ("window: 5d", True)):
        policy.write_text(f"sources:\n  pay: {{preset: stripe, secret: env:A, {window}}}\n")
        done = subprocess.run([binary(), "policy", "check", policy], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert ("shorter than twice the 3d" in done.stderr) == warned


@pytest.mark.parametrize("name", ["docs/reference/sources.md", "docs/reference/policy.md"])
def test_the_policies_of_a_document_are_right(tmp_path, name):
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (REPO / name).read_text(), re.M | re.S)
    assert blocks
    for block in blocks:
        done = subprocess.run([binary(), "policy", "check", "-"], input=block, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, block + done.stdout
