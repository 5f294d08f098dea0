"""A storm: every message is delivered ten times, by the channels that carry it, in any order, while the daemon is killed again and again. The user's webhook gets
each message once: it takes our keys, so what it saw twice under one key is one effect."""

import base64
import collections
import hashlib
import hmac
import http.client
import json
import os
import queue
import random
import re
import threading
from email.message import EmailMessage

import pytest

from plain_server import Server, reply
from semel_process import until

SECRET = "storm_secret"
MESSAGES, COPIES, SENDERS = 1000, 10, 16
POLICY = """version: 1
destinations:
  agent: {{provider: http, url: "{url}", allow_private: true, capability: idempotent, key_header: Idempotency-Key, window: 24h, timeout: 5s, backoff: 50ms,
    concurrency: 16, attempts: 100}}
sources:
  form: {{preset: typeform, secret: env:STORM_SECRET, forward: agent}}
  mail: {{preset: mail, verify: none, forward: agent}}
  platform1: {{preset: whatsapp, secret: env:STORM_SECRET, verify_token: env:STORM_SECRET, forward: agent}}
  platform2: {{preset: whatsapp, secret: env:STORM_SECRET, verify_token: env:STORM_SECRET, forward: agent}}
  sms: {{preset: twilio, secret: env:STORM_SECRET, url: "https://hooks.example", forward: agent}}
"""


def mac(body, digest=hashlib.sha256):
    return hmac.new(SECRET.encode(), body, digest).digest()


def text_of(number):
    return f"Message number {number}: could you tell me what a visit on day {number % 28 + 1} of next month would cost, please?"


def form(number):
    body = json.dumps({"event_id": f"ev{number}", "event_type": "form_response", "form_response": {
        "form_id": "contact", "token": f"tok{number}", "submitted_at": "2026-09-26T08:23:49Z",
        "definition": {"id": "contact", "title": "Contact", "fields": [{"id": "a", "ref": "email", "type": "email", "title": "E-mail"}, {"id": "b", "ref": "message", "type": "long_text", "title": "Message"}]},
        "answers": [{"type": "email", "email": f"p{number}@example.com", "field": {"id": "a", "type": "email", "ref": "email"}},
                    {"type": "text", "text": text_of(number), "field": {"id": "b", "type": "long_text", "ref": "message"}}]}}).encode()
    return "form", {"Content-Type": "application/json", "Typeform-Signature": "sha256=" + base64.b64encode(mac(body)).decode()}, body


def notification(number):
    mail = EmailMessage()
    mail["From"], mail["Reply-To"], mail["To"] = "forms@builder.example", f"p{number}@example.com", "us@example.com"
    mail["Subject"], mail["Message-ID"] = "New submission", f"<n{number}@builder.example>"
    mail.set_content(f"Your form has a new submission.\n\nE-mail: p{number}@example.com\nMessage: {text_of(number)}\n\nReply to this mail to answer.\n")
    return "mail", {"Content-Type": "message/rfc822"}, mail.as_bytes()


def whatsapp(number, platform):
    body = json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "210", "changes": [{"field": "messages", "value": {
        "messaging_product": "whatsapp", "metadata": {"display_phone_number": "15551304520", "phone_number_id": platform},
        "contacts": [{"profile": {"name": "Jon"}, "wa_id": f"4479000{number:05}"}],
        "messages": [{"from": f"4479000{number:05}", "id": f"wamid.{number}", "timestamp": "1706955513", "type": "text", "text": {"body": text_of(number)}}]}}]}]}).encode()
    return platform, {"Content-Type": "application/json", "X-Hub-Signature-256": "sha256=" + mac(body).hex()}, body


def sms(number):
    fields = {"MessageSid": f"SM{number:032}", "From": f"+33612{number:06}", "To": "+15550001", "Body": text_of(number)}
    signed = "https://hooks.example/in/sms" + "".join(k + fields[k] for k in sorted(fields))
    body = "&".join(f"{k}={http_quote(v)}" for k, v in fields.items()).encode()
    return "sms", {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": base64.b64encode(mac(signed.encode(), hashlib.sha1)).decode()}, body


def http_quote(text):
    return "".join(c if c.isalnum() else f"%{b:02X}" for c in text for b in c.encode())


def deliveries():
    """Each message ten times: a form and its notification, one WhatsApp message by two platforms, or a text message."""
    for number in range(MESSAGES):
        ways = [[form(number), notification(number)], [whatsapp(number, "platform1"), whatsapp(number, "platform2")], [sms(number)]][number % 3]
        for copy in range(COPIES):
            yield ways[copy % len(ways)]


class Sender(threading.Thread):
    """Delivers until it is acknowledged, as real senders do."""

    def __init__(self, daemon, work, gate):
        super().__init__(daemon=True)
        self.daemon_process, self.work, self.gate, self.acknowledged, self.refused = daemon, work, gate, 0, []

    def run(self):
        connection = None
        while True:
            try:
                source, headers, body = self.work.get_nowait()
            except queue.Empty:
                return
            while True:
                self.gate.wait()
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.daemon_process.port, timeout=60)
                    connection.request("POST", f"/in/{source}", body, headers)
                    answer = connection.getresponse()
                    text = answer.read()
                except (OSError, http.client.HTTPException):
                    connection = None
                    continue
                if answer.status == 200:
                    self.acknowledged += 1
                    break
                if answer.status < 500:
                    self.refused.append((source, answer.status, text))
                    break


@pytest.fixture
def sink():
    lock, seen, effects = threading.Lock(), set(), collections.Counter()

    def take(head, body):
        key = re.search(rb"(?im)^idempotency-key: *(\S+)", head).group(1)
        number = int(re.search(rb"Message(?:%20| |\+|=20)number(?:%20| |\+|=20)(\d+)", body).group(1))
        with lock:
            if key not in seen:
                seen.add(key)
                effects[number] += 1
        return reply(200)

    server = Server(take)
    server.effects = effects
    yield server
    server.stop()


def test_ten_thousand_deliveries_of_a_thousand_messages_are_a_thousand(house, sink, evidence, monkeypatch):
    monkeypatch.setenv("STORM_SECRET", SECRET)
    dice = random.Random(7)
    everything = list(deliveries())
    dice.shuffle(everything)
    work = queue.Queue()
    for delivery in everything:
        work.put(delivery)
    daemon = house.start(policy=POLICY.format(url=sink.url))
    gate = threading.Event()
    gate.set()
    senders = [Sender(daemon, work, gate) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    kills = 0
    while any(s.is_alive() for s in senders):
        senders[0].join(dice.uniform(0.1, 0.5))
        if kills < 20:
            daemon.kill()
            kills += 1
            daemon.start()
    assert not [r for s in senders for r in s.refused]
    assert sum(s.acknowledged for s in senders) == MESSAGES * COPIES
    until(lambda: len(sink.effects) == MESSAGES, "every message at the user's webhook", seconds=600)
    client = house.client(daemon)
    until(lambda: not client.get("/v1/events?verdict=waiting").json["data"], "every event to be decided", seconds=600)
    until(lambda: not client.get("/v1/effects?state=pending").json["data"], "every forward to be settled", seconds=600)
    assert set(sink.effects.values()) == {1}
    assert len(sink.effects) == MESSAGES
    assert kills > 0
    evidence(deliveries=MESSAGES * COPIES, messages=MESSAGES, kills=kills, twice=sum(n > 1 for n in sink.effects.values()))
