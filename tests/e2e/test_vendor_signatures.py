"""The vendors' own libraries sign, semel verifies; one flipped byte is refused, and so is a signature that was made long ago. A Slack app made with Bolt stands
behind semel, unchanged, and handles a mention once although Slack sends it three times."""

import hashlib
import hmac
import json
import os
import subprocess
import threading
import time
import urllib.parse

import pytest

from interop.run import HERE, available
from semel_process import until

npm = pytest.mark.skipif(not available(), reason="Node 20 or the npm packages are missing: tools/interop.py")

WHSEC = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
SECRETS = {"stripe": "whsec_test", "svix": WHSEC, "standard-webhooks": WHSEC, "twilio": "token", "github": "s3cret", "hubspot": "hs_secret"}
BODIES = {
    "stripe": {"id": "evt_1", "type": "checkout.session.completed", "created": 1700000000, "data": {"object": {"id": "cs_1", "object": "checkout.session"}}},
    "svix": {"type": "email.delivered", "data": {"email_id": "e1"}},
    "standard-webhooks": {"type": "lead.created", "timestamp": "2026-01-02T03:04:05Z", "data": {"email": "a@b.c"}},
    "github": {"action": "opened", "issue": {"id": 1, "number": 1, "title": "t", "body": "b", "user": {"login": "jon"}}, "repository": {"id": 1, "full_name": "a/b"}},
    "hubspot": [{"eventId": 567890123, "subscriptionId": 234567, "portalId": 12345678, "appId": 987654, "occurredAt": 1708986598741, "subscriptionType": "contact.creation",
                 "attemptNumber": 0, "objectId": 65059681032, "changeFlag": "CREATED", "changeSource": "CRM_UI", "sourceId": "userId:45678"}],
}
FIELDS = {"MessageSid": "SM00000000000000000000000000000001", "From": "+15550001", "To": "+15550002", "Body": "Do you have time on Friday afternoon?", "NumMedia": "0"}


def policy():
    lines = [f'  {name}: {{preset: {name}, secret: env:SIGN_{name.replace("-", "_").upper()}, url: "https://hooks.example"}}' for name in SECRETS]
    return "version: 1\nsources:\n" + "\n".join(lines) + "\n"


def sign(vendor, body, seconds=None):
    said = {"vendor": vendor, "secret": SECRETS[vendor], "url": f"https://hooks.example/in/{vendor}", "body": body, "params": FIELDS, "id": "msg_1", "seconds": seconds or int(time.time())}
    done = subprocess.run(["node", str(HERE / "clients" / "sign.mjs")], input=json.dumps(said), capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def semel(house, monkeypatch):
    for name, secret in SECRETS.items():
        monkeypatch.setenv(f"SIGN_{name.replace('-', '_').upper()}", secret)
    return house.client(house.start(policy=policy()))


def body_of(vendor):
    return urllib.parse.urlencode(FIELDS) if vendor == "twilio" else json.dumps(BODIES[vendor])


def post(client, vendor, headers, body):
    kind = "application/x-www-form-urlencoded" if vendor == "twilio" else "application/json"
    return client.request("POST", f"/in/{vendor}", body.encode(), {"Content-Type": kind, **headers})


def flipped(text, at):
    return text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1:]


@npm
@pytest.mark.parametrize("vendor", SECRETS)
def test_what_the_vendors_library_signs_is_accepted_and_a_flipped_byte_is_not(semel, vendor):
    body = body_of(vendor)
    headers = sign(vendor, body)
    assert post(semel, vendor, headers, body).status == 200
    place = body.index("Friday") if vendor == "twilio" else len(body) // 2
    assert post(semel, vendor, headers, flipped(body, place)).status in (400, 401)
    signature = next(name for name in headers if "ignature" in name)
    for at in (len(headers[signature]) - 3, len(headers[signature]) // 2):
        wrong = {**headers, signature: flipped(headers[signature], at)}
        assert post(semel, vendor, wrong, body).status == 401, wrong
    assert post(semel, vendor, {}, body).status == 401
    until(lambda: semel.get("/v1/events?verdict=accepted").json["data"], "the event")
    assert len(semel.get("/v1/events").json["data"]) == 1, "what was refused left nothing behind"


@npm
@pytest.mark.parametrize("vendor", ["stripe", "svix", "standard-webhooks", "hubspot"])
@pytest.mark.parametrize("seconds", [-600, 600])
def test_a_signature_of_another_time_is_refused(semel, vendor, seconds):
    body = body_of(vendor)
    answer = post(semel, vendor, sign(vendor, body, int(time.time()) + seconds), body)
    assert answer.status == 401 and "300 s" in answer.json["detail"], answer.json


class Bolt:
    """The app in its own process; `handled` grows as it handles."""

    def __init__(self, secret):
        self.process = subprocess.Popen(["node", str(HERE / "clients" / "bolt.mjs")], env={**os.environ, "SECRET": secret}, stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.handled = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.handled.append(json.loads(line)["handled"])

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def bolt():
    app = Bolt("slacksecret")
    yield app
    app.stop()


def slack_headers(body, **more):
    stamp = str(int(time.time()))
    signature = "v0=" + hmac.new(b"slacksecret", f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature, **more}


@npm
def test_bolt_behind_semel_handles_a_mention_once(house, bolt, monkeypatch):
    monkeypatch.setenv("SLACK_SECRET", "slacksecret")
    text = f"""version: 1
destinations:
  app: {{provider: http, url: "http://127.0.0.1:{bolt.port}", allow_private: true}}
sources:
  slack: {{preset: slack, secret: env:SLACK_SECRET, forward: app, path: /slack/events}}
"""
    client = house.client(house.start(policy=text))
    body = json.dumps({"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "api_app_id": "A1", "authorizations": [{"team_id": "T1", "user_id": "U0", "is_bot": True}],
                       "event": {"type": "app_mention", "user": "U1", "text": "<@U0> are you there?", "channel": "C1", "ts": "1.1"}}).encode()
    for number in range(3):
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": "http_timeout"} if number > 0 else {}
        assert client.request("POST", "/in/slack", body, slack_headers(body, **retry)).status == 200
    until(lambda: len(client.get("/v1/events?verdict=suppressed").json["data"]) == 2, "two suppressed copies")
    until(lambda: bolt.handled, "the app to handle it")
    until(lambda: not client.get("/v1/effects?state=pending").json["data"], "the forward to be settled")
    assert bolt.handled == ["<@U0> are you there?"]
    challenge = json.dumps({"type": "url_verification", "token": "t", "challenge": "3eZbrw1aB"}).encode()
    answer = client.request("POST", "/in/slack", challenge, slack_headers(challenge))
    assert answer.status == 200 and "3eZbrw1aB" in answer.raw.decode()
