"""That each fake has the semantics it claims. What is tested here is what the tests of semel rest on, the dangers included."""

import concurrent.futures
import http.client
import json
import smtplib
import socket
import threading
import urllib.parse

import pytest

import providers

HTTP = [name for name in providers.PROVIDERS if name != "smtp"]
ACCOUNT = "/2010-04-01/Accounts/AC1/Messages.json"


class Reply:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, dict(answer.getheaders()), answer.read()

    def json(self):
        return json.loads(self.body)


def call(fake, method, path, body=None, seconds=20, **headers):
    """One request on a connection of its own. Header names are given with underscores. A dictionary is sent as JSON, a string as a form."""
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=seconds)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, (dict, list)):
        body, kind = json.dumps(body), "application/json"
    else:
        kind = "application/x-www-form-urlencoded"
    try:
        connection.request(method, path, body, {"Content-Type": kind, **sent} if body is not None else sent)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def form(**fields):
    return urllib.parse.urlencode(fields)


def charge(ref="order-1", amount="500", **more):
    return form(amount=amount, currency="eur", source="tok_visa", **{"metadata[ref]": ref}, **more)


# One business call for each provider: what semel's tests will do through it.
CALLS = {
    "stripe": ("POST", "/v1/charges", charge()),
    "resend": ("POST", "/emails", {"from": "a@x.io", "to": ["b@y.io"], "subject": "Hi", "tags": [{"name": "ref", "value": "order-1"}]}),
    "postmark": ("POST", "/email", {"From": "a@x.io", "To": "b@y.io", "Subject": "Hi", "TextBody": "Hi", "Metadata": {"ref": "order-1"}}),
    "sendgrid": (
        "POST", "/v3/mail/send",
        {"personalizations": [{"to": [{"email": "b@y.io"}]}], "from": {"email": "a@x.io"}, "subject": "Hi",
         "content": [{"type": "text/plain", "value": "Hi"}], "custom_args": {"ref": "order-1"}},
    ),
    "hubspot": ("POST", "/marketing/v4/email/single-send", {"emailId": 7, "message": {"to": "b@y.io"}, "customProperties": {"ref": "order-1"}}),
    "slack": ("POST", "/api/chat.postMessage", {"channel": "C1", "text": "Hi", "metadata": {"event_type": "t", "event_payload": {"ref": "order-1"}}}),
    "twilio": ("POST", ACCOUNT, form(To="+15550001111", From="+15550002222", Body="order-1")),
    "discord": ("POST", "/api/v10/channels/42/messages", {"content": "order-1"}),
    "openai": ("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "metadata": {"ref": "order-1"}}),
    "anthropic": ("POST", "/v1/messages", {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "order-1"}]}),
    "gemini": ("POST", "/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "order-1"}]}]}),
    "generic": ("POST", "/hook", {"ref": "order-1"}),
    "generic-keys": ("POST", "/hook", {"ref": "order-1"}),
}


def act(fake, key=None, **options):
    method, path, body = CALLS[fake.name]
    return call(fake, method, path, body, **({"Idempotency_Key": key} if key else {}), **options)


def raw_answer(fake):
    """Every byte that is answered. Python's client takes a head that was cut for a whole one."""
    method, path, body = CALLS[fake.name]
    body = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = b"application/json" if body.startswith(b"{") else b"application/x-www-form-urlencoded"
    got = b""
    with socket.create_connection(("127.0.0.1", fake.port), timeout=20) as raw:
        raw.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nContent-Type: ".encode() + kind + b"\r\n\r\n" + body)
        while block := raw.recv(65536):
            got += block
    return got


@pytest.fixture
def fake(request):
    made = providers.start(request.param)
    yield made
    made.stop()


def with_fake(*names):
    return pytest.mark.parametrize("fake", names, indirect=True)


def lost(answer):
    """Runs a call whose answer is lost."""
    with pytest.raises((http.client.HTTPException, OSError)):
        answer()


# What all HTTP fakes share


@with_fake(*HTTP)
def test_a_call_is_one_effect_and_twice_is_two(fake):
    assert act(fake).status < 300
    assert len(fake.effects()) == 1
    assert act(fake).status < 300
    assert sum(fake.effects_by_ref().values()) == 2
    if fake.name not in ("twilio", "discord"):
        assert fake.effects_by_ref() == {"order-1": 2}


@with_fake(*HTTP)
@pytest.mark.parametrize("fault", ["drop_before", "500_before", "429", "503_retry_after", "bad_request"])
def test_faults_before_the_effect_have_none(fake, fault):
    fake.script([fault])
    if fault == "drop_before":
        lost(lambda: act(fake))
    else:
        reply = act(fake)
        assert reply.status >= 400 or reply.json()["ok"] is False
        assert ("Retry-After" in reply.headers) == (fault in ("429", "503_retry_after"))
    assert fake.effects() == [] and len(fake.requests()) == 1 and fake.pending() == []
    assert act(fake).status < 300
    assert len(fake.effects()) == 1


@with_fake(*HTTP)
@pytest.mark.parametrize("fault", ["act_then_drop", "truncate", "truncate_head", "act_then_500"])
def test_faults_after_the_effect_have_one(fake, fault):
    fake.script([fault])
    if fault == "act_then_500":
        assert act(fake).status == 500
        fake.wait("answered", 1)
    else:
        got = raw_answer(fake)
        assert (b"\r\n\r\n" in got) == (fault == "truncate" and fake.name != "sendgrid") and (got == b"") == (fault == "act_then_drop")
    assert len(fake.effects()) == 1
    assert fake.requests()[0].step == fault and fake.requests()[0].effects == [1]
    assert fake.requests()[0].complete == (fault == "act_then_500")


@with_fake(*HTTP)
def test_refuse_connect_reads_nothing(fake):
    fake.script(["refuse_connect", "ok"])
    lost(lambda: act(fake))
    assert fake.requests() == [] and fake.counts()["refused"] == 1
    assert act(fake).status < 300


@with_fake(*HTTP)
def test_a_hang_ends_only_with_the_client(fake):
    fake.script(["hang", "act_then_hang"])
    lost(lambda: act(fake, seconds=0.2))
    assert fake.effects() == []
    lost(lambda: act(fake, seconds=0.2))
    assert len(fake.effects()) == 1


@with_fake(*HTTP)
def test_a_slow_answer_is_whole(fake):
    plain = act(fake)
    fake.script(["slow_stream:0.05", "act_then_late:0.05"])
    for _ in range(2):
        slow = act(fake)
        assert (slow.status, len(slow.body) > 0) == (plain.status, len(plain.body) > 0)
    assert len(fake.effects()) == 3


@with_fake(*HTTP)
def test_a_token_is_asked_for(fake):
    fake.token = "s3cret"
    refused = act(fake)
    assert refused.status == 401 or refused.json()["ok"] is False
    header = {"postmark": "X_Postmark_Server_Token", "gemini": "X_Goog_Api_Key"}.get(fake.name, "Authorization")
    method, path, body = CALLS[fake.name]
    assert call(fake, method, path, body, **{header: "Bearer s3cret"}).status < 300
    assert len(fake.effects()) == 1


def test_requests_are_kept_to_the_byte():
    with providers.start("generic") as fake:
        sent = b'POST /a?b=%20c HTTP/1.1\r\nhost: x\r\nX-OdD:  two  spaces \r\ncontent-length: 9\r\n\r\n{"ref":1}'
        chunked = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", fake.port)) as raw:
            raw.sendall(sent + chunked)
            fake.wait("answered", 2)
        first, second = fake.requests()
        assert (first.raw, first.target, first.body, first.header("x-odd")) == (sent, "/a?b=%20c", b'{"ref":1}', "two  spaces")
        assert (second.raw, second.body) == (chunked, b"abcdef")
        assert first.connection == second.connection


def test_half_a_request_is_none():
    with providers.start("generic") as fake:
        with socket.create_connection(("127.0.0.1", fake.port)) as raw:
            raw.sendall(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
        fake.wait("broken", 1)
        assert fake.requests() == [] and fake.effects() == []


def test_truncate_cuts_at_the_byte_that_was_asked_for():
    with providers.start("generic") as fake:
        fake.script(["truncate:3", {"do": "truncate_head", "at": 9}])
        assert raw_answer(fake).partition(b"\r\n\r\n")[2] == b'{"o'
        assert raw_answer(fake) == b"HTTP/1.1 "
        assert len(fake.effects()) == 2


def test_a_late_effect_comes_after_the_client_has_gone():
    with providers.start("generic") as fake:
        fake.script(["late_act"])
        lost(lambda: act(fake, seconds=0.2))
        assert fake.effects() == [] and call(fake, "GET", "/seen?ref=order-1").json()["total"] == 0
        fake.release()
        fake.wait("effects", 1)
        assert call(fake, "GET", "/seen?ref=order-1").json()["total"] == 1


def test_questions_do_not_consume_the_script_of_actions():
    with providers.start("generic") as fake:
        fake.script(["act_then_drop"])
        fake.script(["500_before"], on="read")
        assert call(fake, "GET", "/seen?ref=order-1").status == 500
        assert call(fake, "GET", "/seen?ref=order-1").json()["total"] == 0
        lost(lambda: act(fake))
        assert call(fake, "GET", "/seen?ref=order-1").json()["total"] == 1


def test_a_kept_connection_is_closed_when_the_next_is_to_be_refused():
    with providers.start("generic") as fake:
        connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=20)
        for _ in range(2):
            connection.request("POST", "/a", b"x")
            connection.getresponse().read()
        assert {request.connection for request in fake.requests()} == {1}
        fake.script(["refuse_connect"])
        assert connection.sock.recv(1) == b""
        connection.close()
        lost(lambda: act(fake))
        assert len(fake.requests()) == 2


def test_down_refuses_and_up_is_the_same_port():
    with providers.start("generic") as fake:
        port = fake.port
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        kept.request("POST", "/a", b"x")
        kept.getresponse().read()
        fake.down()
        with pytest.raises(OSError):
            kept.request("POST", "/a", b"x")
            kept.getresponse()
        kept.close()
        with pytest.raises(ConnectionRefusedError):
            act(fake)
        fake.up()
        assert fake.port == port and act(fake).status == 200 and len(fake.effects()) == 2


def test_an_unknown_fault_is_refused():
    with providers.start("generic") as fake:
        with pytest.raises(ValueError, match="no fault"):
            fake.script(["ok", "explode"])
        assert fake.pending() == []


def test_many_at_once_are_all_counted():
    with providers.start("generic") as fake, concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda n: call(fake, "POST", "/a", {"ref": f"r{n % 10}"}).status, range(400)))
        assert replies == [200] * 400
        assert fake.effects_by_ref() == {f"r{n}": 40 for n in range(10)}


# Stripe


def test_stripe_same_key_same_parameters_is_one_charge_and_a_replay():
    with providers.start("stripe") as stripe:
        first, again = act(stripe, "k1"), act(stripe, "k1")
        other_order = call(stripe, "POST", "/v1/charges", "&".join(reversed(charge().split("&"))), Idempotency_Key="k1")
        assert first.status == again.status == other_order.status == 200
        assert first.body == again.body == other_order.body
        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true" and again.headers["Original-Request"] == first.headers["Request-Id"]
        assert stripe.effects_by_ref() == {"order-1": 1} and stripe.effects()[0].key == "k1"


def test_stripe_other_parameters_or_endpoint_are_an_error():
    with providers.start("stripe") as stripe:
        act(stripe, "k1")
        for path, body in (("/v1/charges", charge(amount="900")), ("/v1/customers", charge())):
            reply = call(stripe, "POST", path, body, Idempotency_Key="k1")
            assert reply.status == 400 and reply.json()["error"]["type"] == "idempotency_error"
        assert len(stripe.effects()) == 1
        assert act(stripe, "k" * 256).status == 400 and act(stripe, "k" * 255).status == 200


def test_stripe_after_its_time_a_key_charges_again():
    """The danger: the same request, the same key, a second charge."""
    with providers.start("stripe", key_ttl=3600) as stripe:
        first = act(stripe, "k1")
        stripe.advance(3599)
        assert act(stripe, "k1").body == first.body
        stripe.advance(2)
        second = act(stripe, "k1")
        assert second.status == 200 and second.json()["id"] != first.json()["id"] and "Idempotent-Replayed" not in second.headers
        assert stripe.effects_by_ref() == {"order-1": 2}
        stripe.script(["forget_keys"])
        act(stripe, "k1")
        assert stripe.effects_by_ref() == {"order-1": 3}


def test_stripe_concurrent_use_is_409():
    with providers.start("stripe") as stripe:
        stripe.script(["act_then_late:release"])
        replies = []
        first = threading.Thread(target=lambda: replies.append(act(stripe, "k1")))
        first.start()
        stripe.wait("held", 1)
        second = act(stripe, "k1")
        assert second.status == 409 and second.json()["error"]["code"] == "idempotency_key_in_use"
        assert second.headers["Stripe-Should-Retry"] == "true"
        stripe.release()
        first.join()
        assert replies[0].status == 200 and act(stripe, "k1").body == replies[0].body
        assert len(stripe.effects()) == 1


def test_stripe_replays_its_own_500():
    with providers.start("stripe") as stripe:
        stripe.script(["act_then_500"])
        first, again = act(stripe, "k1"), act(stripe, "k1")
        assert first.status == again.status == 500 and first.body == again.body
        assert first.headers["Stripe-Should-Retry"] == again.headers["Stripe-Should-Retry"] == "false"
        assert again.headers["Idempotent-Replayed"] == "true" and len(stripe.effects()) == 1


def test_stripe_does_not_remember_what_it_never_began():
    with providers.start("stripe") as stripe:
        assert call(stripe, "POST", "/v1/charges", charge(amount="x"), Idempotency_Key="k1").status == 400
        assert call(stripe, "POST", "/v1/charges", charge(), Idempotency_Key="k1").status == 200
        stripe.script(["500_before"])
        assert [act(stripe, "k2").status for _ in range(2)] == [500, 200]
        assert len(stripe.effects()) == 2


def test_stripe_remembers_a_declined_card():
    with providers.start("stripe") as stripe:
        body = form(amount="5", currency="eur", source="tok_chargeDeclined")
        replies = [call(stripe, "POST", "/v1/charges", body, Idempotency_Key="k1") for _ in range(2)]
        assert [reply.status for reply in replies] == [402, 402] and replies[1].headers["Idempotent-Replayed"] == "true"
        assert stripe.effects() == []


def test_stripe_the_key_survives_a_lost_answer():
    for fault in ("act_then_drop", "truncate", "truncate_head:5"):
        with providers.start("stripe") as stripe:
            stripe.script([fault])
            lost(lambda: act(stripe, "k1"))
            assert act(stripe, "k1").headers["Idempotent-Replayed"] == "true"
            assert stripe.effects_by_ref() == {"order-1": 1}
            assert stripe.requests()[0].body == stripe.requests()[1].body


def test_stripe_can_be_searched_by_metadata_when_its_index_has_caught_up():
    with providers.start("stripe", index_lag=60) as stripe:
        call(stripe, "POST", "/v1/charges", charge(**{"metadata[semel_key]": "sml-1"}))
        query = "/v1/charges/search?" + form(query="metadata['semel_key']:'sml-1'")
        assert call(stripe, "GET", query).json()["data"] == []
        assert len(call(stripe, "GET", "/v1/charges").json()["data"]) == 1
        stripe.advance(60)
        found = call(stripe, "GET", query).json()["data"]
        assert [made["metadata"]["semel_key"] for made in found] == ["sml-1"]
        assert call(stripe, "GET", "/v1/charges/search?" + form(query="metadata['semel_key']:'sml-2'")).json()["data"] == []
        assert call(stripe, "GET", "/v1/charges/" + found[0]["id"]).json()["id"] == found[0]["id"]
        assert call(stripe, "GET", "/v1/charges/ch_none").status == 404


def test_stripe_payment_intents_charge_when_confirmed_once():
    with providers.start("stripe") as stripe:
        body = form(amount="5", currency="eur", payment_method="pm_card_visa", **{"metadata[ref]": "order-1"})
        intent = call(stripe, "POST", "/v1/payment_intents", body).json()
        assert stripe.effects("charge") == []
        path = f"/v1/payment_intents/{intent['id']}/confirm"
        assert call(stripe, "POST", path, "").json()["status"] == "succeeded"
        assert call(stripe, "POST", path, "").json()["error"]["code"] == "payment_intent_unexpected_state"
        assert stripe.effects_by_ref("charge") == {"order-1": 1}
        assert call(stripe, "POST", "/v1/payment_intents", body + "&confirm=true").json()["status"] == "succeeded"
        assert stripe.effects_by_ref("charge") == {"order-1": 2}
        assert call(stripe, "POST", "/v1/customers", form(email="a@b.io")).status == 200
        assert stripe.effects_by_ref("customer") == {"a@b.io": 1}


# Mail


def test_resend_keys():
    with providers.start("resend", key_ttl=86400) as resend:
        first, again = act(resend, "k1"), act(resend, "k1")
        assert first.body == again.body and len(resend.effects()) == 1
        other = call(resend, "POST", "/emails", {"from": "a@x.io", "to": "b@y.io", "subject": "Other"}, Idempotency_Key="k1")
        assert other.status == 409 and other.json()["name"] == "invalid_idempotent_request"
        assert act(resend, "k" * 257).status == 400
        resend.advance(86400)
        assert act(resend, "k1").json() != first.json() and resend.effects_by_ref() == {"order-1": 2}
        assert call(resend, "GET", "/emails/" + first.json()["id"]).json()["subject"] == "Hi"


def test_resend_concurrent_use_is_409_and_a_500_hides_the_id_only():
    with providers.start("resend") as resend:
        resend.script(["act_then_late:release"])
        thread = threading.Thread(target=lambda: act(resend, "k1"))
        thread.start()
        resend.wait("held", 1)
        assert act(resend, "k1").json()["name"] == "concurrent_idempotent_requests"
        resend.release()
        thread.join()
        resend.script(["act_then_500"])
        assert [act(resend, "k2").status for _ in range(2)] == [500, 200]
        assert resend.effects_by_ref() == {"order-1": 2}


def test_resend_a_batch_is_all_or_nothing_under_one_key():
    with providers.start("resend") as resend:
        mails = [{"from": "a@x.io", "to": f"{n}@y.io", "subject": "Hi"} for n in range(3)]
        replies = [call(resend, "POST", "/emails/batch", mails, Idempotency_Key="k1") for _ in range(2)]
        assert replies[0].body == replies[1].body and len(replies[0].json()["data"]) == 3
        assert resend.effects_by_ref() == {f"{n}@y.io: Hi": 1 for n in range(3)}
        assert call(resend, "POST", "/emails/batch", mails + [{"from": "a@x.io"}]).status == 422 and len(resend.effects()) == 3


def test_postmark_ignores_keys_and_can_be_asked():
    with providers.start("postmark", index_lag=5) as postmark:
        for _ in range(2):
            assert act(postmark, "k1").json()["ErrorCode"] == 0
        assert postmark.effects_by_ref() == {"order-1": 2}
        mail = {"From": "a@x.io", "To": "c@y.io, d@y.io", "Subject": "Two", "Tag": "welcome", "Metadata": {"semel_key": "sml-1"}}
        id = call(postmark, "POST", "/email", mail).json()["MessageID"]
        search = "/messages/outbound?count=10&offset=0&"
        assert call(postmark, "GET", search + "metadata_semel_key=sml-1").json()["TotalCount"] == 0
        postmark.advance(5)
        for condition in ("metadata_semel_key=sml-1", "recipient=D@y.io", "tag=welcome", "recipient=c@y.io&tag=welcome&metadata_semel_key=sml-1"):
            found = call(postmark, "GET", search + condition).json()
            assert [message["MessageID"] for message in found["Messages"]] == [id], condition
        assert call(postmark, "GET", search + "metadata_semel_key=sml-2").json() == {"TotalCount": 0, "Messages": []}
        assert call(postmark, "GET", "/messages/outbound?recipient=c@y.io").status == 422
        assert call(postmark, "GET", f"/messages/outbound/{id}/details").json()["Metadata"] == {"semel_key": "sml-1"}
        assert call(postmark, "POST", "/email", {"From": "a@x.io"}).json()["ErrorCode"] == 300


def test_postmark_judges_each_mail_of_a_batch_alone():
    with providers.start("postmark") as postmark:
        codes = [part["ErrorCode"] for part in call(postmark, "POST", "/email/batch", [CALLS["postmark"][2], {"From": "a@x.io"}]).json()]
        assert codes == [0, 300] and len(postmark.effects()) == 1


def test_sendgrid_says_202_and_nothing_else():
    with providers.start("sendgrid") as sendgrid:
        replies = [act(sendgrid, "k1") for _ in range(2)]
        assert [(reply.status, reply.body) for reply in replies] == [(202, b"")] * 2
        assert replies[0].headers["X-Message-Id"] != replies[1].headers["X-Message-Id"]
        assert sendgrid.effects_by_ref() == {"order-1": 2}
        assert [event["ref"] for event in sendgrid.delivered_events()] == ["order-1"] * 2
        assert call(sendgrid, "POST", "/v3/mail/send", {"from": {"email": "a@x.io"}}).status == 400


# HubSpot


def test_hubspot_an_email_is_unique():
    with providers.start("hubspot", index_lag=10) as hubspot:
        contact = {"properties": {"email": "Jon@acme.io", "firstname": "Jon"}}
        first, again = (call(hubspot, "POST", "/crm/v3/objects/contacts", contact) for _ in range(2))
        assert (first.status, again.status) == (201, 409)
        assert again.json()["category"] == "CONFLICT" and first.json()["id"] in again.json()["message"]
        assert hubspot.effects_by_ref() == {"Jon@acme.io": 1}
        query = {"filterGroups": [{"filters": [{"propertyName": "email", "operator": "EQ", "value": "Jon@acme.io"}]}]}
        assert call(hubspot, "POST", "/crm/v3/objects/contacts/search", query).json()["total"] == 0
        assert call(hubspot, "GET", "/crm/v3/objects/contacts/jon@acme.io?idProperty=email").json()["id"] == first.json()["id"]
        hubspot.advance(10)
        assert call(hubspot, "POST", "/crm/v3/objects/contacts/search", query).json()["results"][0]["id"] == first.json()["id"]
        assert call(hubspot, "POST", "/crm/v3/objects/contacts", {"properties": {"email": "no"}}).status == 400


def test_hubspot_an_upsert_repeated_changes_nothing():
    with providers.start("hubspot") as hubspot:
        def upsert(name):
            inputs = [{"idProperty": "email", "id": "jon@acme.io", "properties": {"firstname": name}}]
            return call(hubspot, "POST", "/crm/v3/objects/contacts/batch/upsert", {"inputs": inputs}).json()["results"][0]

        assert [upsert("Jon")["new"], upsert("Jon")["new"]] == [True, False]
        assert [effect.kind for effect in hubspot.effects()] == ["contact.created"]
        upsert("John")
        assert [effect.kind for effect in hubspot.effects()] == ["contact.created", "contact.updated"]
        bad = {"inputs": [{"idProperty": "firstname", "id": "Jon", "properties": {}}]}
        assert call(hubspot, "POST", "/crm/v3/objects/contacts/batch/upsert", bad).status == 400


def test_hubspot_one_mail_for_each_send_id():
    with providers.start("hubspot") as hubspot:
        body = {"emailId": 7, "message": {"to": "b@y.io", "sendId": "s1"}, "customProperties": {"ref": "order-1"}}
        ids = [call(hubspot, "POST", "/marketing/v3/transactional/single-email/send", body).json()["statusId"] for _ in range(2)]
        results = [call(hubspot, "GET", f"/marketing/v3/email/send-statuses/{id}").json()["sendResult"] for id in ids]
        assert results == ["SENT", "IDEMPOTENT_IGNORE"]
        assert hubspot.effects_by_ref() == {"order-1": 1} and hubspot.effects()[0].key == "s1"
        act(hubspot), act(hubspot)  # without a sendId
        assert hubspot.effects_by_ref() == {"order-1": 3}


# Chat


def test_slack_errors_are_200_and_history_has_metadata():
    with providers.start("slack") as slack:
        for body, error in (({"text": "x"}, "channel_not_found"), ({"channel": "C0MISSING", "text": "x"}, "channel_not_found"), ({"channel": "C1"}, "no_text")):
            reply = call(slack, "POST", "/api/chat.postMessage", body)
            assert (reply.status, reply.json()) == (200, {"ok": False, "error": error})
        assert slack.effects() == []
        first, second = act(slack, "k1").json(), act(slack, "k1").json()
        assert first["ok"] and float(second["ts"]) > float(first["ts"]) and slack.effects_by_ref() == {"order-1": 2}
        as_form = form(channel="C1", text="Hi", metadata=json.dumps({"event_type": "t", "event_payload": {"ref": "order-2"}}))
        assert call(slack, "POST", "/api/chat.postMessage", as_form).json()["ok"]
        history = call(slack, "GET", "/api/conversations.history?channel=C1&limit=2&include_all_metadata=true").json()
        assert [message["metadata"]["event_payload"]["ref"] for message in history["messages"]] == ["order-2", "order-1"] and history["has_more"]
        rest = call(slack, "POST", "/api/conversations.history", form(channel="C1", cursor=history["response_metadata"]["next_cursor"], limit="2")).json()
        assert [message["ts"] for message in rest["messages"]] == [first["ts"]] and "metadata" not in rest["messages"][0]
        newer = call(slack, "GET", "/api/conversations.history?channel=C1&oldest=" + first["ts"]).json()
        assert len(newer["messages"]) == 2
        assert call(slack, "POST", "/api/chat.update", {"channel": "C1", "ts": first["ts"], "text": "Ho"}).json()["text"] == "Ho"


def test_slack_a_fatal_error_may_have_posted():
    with providers.start("slack") as slack:
        slack.script(["act_then_fatal", "429:7"])
        reply = act(slack)
        assert (reply.status, reply.json()) == (200, {"ok": False, "error": "fatal_error"}) and len(slack.effects()) == 1
        limited = act(slack)
        assert (limited.status, limited.headers["Retry-After"], limited.json()["error"]) == (429, "7", "ratelimited") and len(slack.effects()) == 1


def test_twilio_has_no_key_but_a_list():
    with providers.start("twilio") as twilio:
        made = [act(twilio, "k1") for _ in range(2)]
        assert [reply.status for reply in made] == [201, 201] and len(twilio.effects()) == 2
        day = made[0].json()["date_sent"]
        found = call(twilio, "GET", ACCOUNT + "?" + form(To="+15550001111", From="+15550002222")).json()["messages"]
        assert [message["body"] for message in found] == ["order-1", "order-1"] and found[0]["date_sent"] == day
        assert call(twilio, "GET", ACCOUNT + "?" + form(To="+15550009999")).json()["messages"] == []
        assert call(twilio, "GET", ACCOUNT + "?" + form(DateSent="2001-01-01")).json()["messages"] == []
        page = call(twilio, "GET", ACCOUNT + "?PageSize=1").json()
        assert call(twilio, "GET", page["next_page_uri"]).json()["messages"][0]["sid"] == made[0].json()["sid"]
        for wrong, code in ((form(From="+15550002222", Body="x"), 21604), (form(To="12", From="+15550002222", Body="x"), 21211), (form(To="+15550001111", Body="x"), 21603)):
            reply = call(twilio, "POST", ACCOUNT, wrong)
            assert (reply.status, reply.json()["code"]) == (400, code)


def test_discord_an_enforced_nonce_holds_for_some_minutes():
    with providers.start("discord", nonce_ttl=180) as discord:
        def post(content="order-1", nonce="n1", **more):
            return call(discord, "POST", "/api/v10/channels/42/messages", {"content": content, "nonce": nonce, **more})

        first = post(enforce_nonce=True).json()
        assert post(enforce_nonce=True).json() == first
        assert post(content="other", enforce_nonce=True).json()["content"] == "order-1"  # nobody compares
        assert discord.effects_by_ref() == {"42: order-1": 1}
        discord.advance(180)
        assert post(enforce_nonce=True).json()["id"] != first["id"]
        assert post().json()["id"] not in (first["id"],) and discord.effects_by_ref() == {"42: order-1": 3}  # a nonce alone does nothing
        assert post(nonce="n" * 26).status == 400 and post(content="").json()["code"] == 50006
        history = call(discord, "GET", "/api/v10/channels/42/messages?after=" + first["id"]).json()
        assert len(history) == 2 and history[0]["nonce"] == "n1"


# The model


def test_openai_counts_paid_completions_and_never_says_the_same_twice():
    with providers.start("openai") as model:
        texts = [act(model, "k1").json()["choices"][0]["message"]["content"] for _ in range(2)]
        assert texts[0] != texts[1] and model.effects_by_ref() == {"order-1": 2}
        assert call(model, "POST", "/v1/chat/completions", {"model": "m", "messages": []}).status == 400


def test_openai_streams():
    with providers.start("openai") as model:
        body = dict(CALLS["openai"][2], stream=True, stream_options={"include_usage": True})
        reply = call(model, "POST", "/v1/chat/completions", body)
        assert reply.headers["Content-Type"] == "text/event-stream" and reply.headers["Transfer-Encoding"] == "chunked"
        events = [line[6:] for line in reply.body.decode().split("\n\n") if line]
        assert events[-1] == "[DONE]" and json.loads(events[-2])["usage"]["total_tokens"] > 0
        text = "".join(choice["delta"].get("content", "") for event in events[:-1] for choice in json.loads(event)["choices"])
        assert text.startswith("Completion 1 about")
        model.script(["truncate", "slow_stream:0.05"])
        lost(lambda: call(model, "POST", "/v1/chat/completions", body))
        assert call(model, "POST", "/v1/chat/completions", body).body.endswith(b"data: [DONE]\n\n")
        assert len(model.effects()) == 3


# The generic sink


def test_generic_ignores_keys_and_generic_keys_does_not():
    with providers.start("generic") as plain, providers.start("generic-keys", key_ttl=60) as keyed:
        for fake in (plain, keyed):
            for _ in range(2):
                act(fake, "k1")
        assert len(plain.effects()) == 2 and [effect.key for effect in plain.effects()] == ["k1", "k1"]
        assert len(keyed.effects()) == 1 and call(keyed, "GET", "/seen?key=k1").json()["total"] == 1
        assert call(keyed, "POST", "/hook", {"ref": "other"}, Idempotency_Key="k1").status == 422
        keyed.advance(60)
        assert "Idempotent-Replayed" not in act(keyed, "k1").headers and keyed.effects_by_ref() == {"order-1": 2}


@pytest.mark.parametrize("compare, spaced, other", [("bytes", 422, 422), ("json", 200, 422), ("none", 200, 200)])
def test_generic_compares_as_told(compare, spaced, other):
    with providers.start("generic-keys", compare=compare, carrier="X-Request-Id") as fake:
        replies = [call(fake, "POST", "/a", body, X_Request_Id="k1").status for body in (b'{"ref":"r"}', b'{ "ref":"r"}', b'{"ref":"s"}')]
        assert replies == [200, spaced, other] and len(fake.effects()) == 1


def test_generic_key_in_the_body():
    with providers.start("generic-keys", carrier="body:idempotency_key") as fake:
        for key in ("k1", "k1", "k2"):
            assert call(fake, "POST", "/a", {"ref": "r", "idempotency_key": key}).status == 200
        assert [effect.key for effect in fake.effects()] == ["k1", "k2"]


def test_generic_can_refuse_to_be_asked():
    with providers.start("generic", askable=False) as fake:
        assert call(fake, "GET", "/seen?ref=order-1").status == 404


# Mail over SMTP


def mail(subject="Hi", id="<m1@x>", ref=None):
    ref = f"X-Ref: {ref}\r\n" if ref else ""
    return f"From: a@x.io\r\nTo: b@y.io\r\nSubject: {subject}\r\nMessage-ID: {id}\r\n{ref}\r\nHello\r\n.leading dot\r\n"


def deliver(fake, to=("b@y.io",), **options):
    with smtplib.SMTP("127.0.0.1", fake.port, timeout=20) as client:
        return client.sendmail("a@x.io", list(to), mail(**options))


def test_smtp_counts_by_message_id_and_recipient_and_forgives_nothing():
    with providers.start("smtp") as smtp:
        deliver(smtp, to=("b@y.io", "c@y.io"))
        deliver(smtp)
        deliver(smtp, id="<m2@x>", ref="order-1")
        assert smtp.by_message_id() == {"<m1@x>": 2, "<m2@x>": 1}
        assert smtp.by_recipient() == {"b@y.io": 3, "c@y.io": 1}
        assert smtp.effects_by_ref() == {"b@y.io: Hi": 2, "c@y.io: Hi": 1, "order-1": 1}
        first = smtp.requests()[0]
        assert first.data == mail().encode() and b"\r\n..leading dot\r\n" in first.raw and first.status == 250
        assert (first.sender, first.recipients) == ("a@x.io", ["b@y.io", "c@y.io"])


@pytest.mark.parametrize("fault", ["act_then_drop", "truncate:2", "truncate_head"])
def test_smtp_a_drop_after_the_final_dot_leaves_a_mail(fault):
    with providers.start("smtp") as smtp:
        smtp.script([fault, "ok"])
        with pytest.raises((smtplib.SMTPException, OSError, ValueError)):
            deliver(smtp)
        assert smtp.by_message_id() == {"<m1@x>": 1}
        deliver(smtp)
        assert smtp.by_message_id() == {"<m1@x>": 2}  # the danger of trying again
        assert smtp.requests()[0].data == smtp.requests()[1].data


@pytest.mark.parametrize("fault, code", [
    ("drop_before", None), ("drop_in_data", None), ("refuse_connect", None), ("500_before", 451), ("429", 451), ("503_retry_after", 421), ("bad_request", 550),
    ("reply:MAIL:450", 450), ("reply:RCPT:452", 452), ("reply:DATA:554", 554), ("reply:DOT:552", 552),
])
def test_smtp_faults_without_a_mail(fault, code):
    with providers.start("smtp") as smtp:
        smtp.script([fault])
        with pytest.raises((smtplib.SMTPException, OSError)) as caught:
            deliver(smtp)
        error = caught.value
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            assert [reply[0] for reply in error.recipients.values()] == [code]
        elif code:
            assert error.smtp_code == code
        assert smtp.effects() == [] and smtp.pending() == []
        deliver(smtp)
        assert smtp.by_message_id() == {"<m1@x>": 1}


def test_smtp_a_451_may_have_kept_the_mail():
    with providers.start("smtp") as smtp:
        smtp.script(["act_then_500", "slow_stream:0.05", "act_then_late:0.05"])
        with pytest.raises(smtplib.SMTPDataError):
            deliver(smtp)
        deliver(smtp), deliver(smtp)
        assert smtp.by_message_id() == {"<m1@x>": 3}


def test_smtp_one_of_two_recipients_is_refused():
    with providers.start("smtp") as smtp:
        smtp.script(["reply:RCPT:550"])
        refused = deliver(smtp, to=("b@y.io", "c@y.io"))
        assert list(refused) == ["b@y.io"] and smtp.by_recipient() == {"c@y.io": 1} and len(smtp.requests()) == 1


def test_smtp_hangs_and_asks_for_a_password():
    with providers.start("smtp", token="s3cret") as smtp:
        with smtplib.SMTP("127.0.0.1", smtp.port, timeout=20) as client:
            with pytest.raises(smtplib.SMTPAuthenticationError):
                client.login("me", "wrong")
        with pytest.raises(smtplib.SMTPSenderRefused):
            deliver(smtp)
        smtp.script(["act_then_hang"])
        client = smtplib.SMTP("127.0.0.1", smtp.port, timeout=0.3)
        client.login("me", "s3cret")
        with pytest.raises(OSError):
            client.sendmail("a@x.io", ["b@y.io"], mail())
        client.close()
        assert smtp.by_message_id() == {"<m1@x>": 1}


# In a process of its own


def test_a_spawned_fake_is_the_same_and_keeps_a_journal(tmp_path):
    journal = tmp_path / "stripe.jsonl"
    with providers.spawn("stripe", journal=journal, key_ttl=60) as stripe:
        stripe.script(["act_then_drop", "ok"])
        lost(lambda: act(stripe, "k1"))
        assert act(stripe, "k1").headers["Idempotent-Replayed"] == "true"
        stripe.advance(60)
        stripe.forget_keys()
        act(stripe, "k1")
        assert stripe.effects_by_ref() == {"order-1": 2} and stripe.pending() == []
        requests = stripe.requests()
        assert requests[0].raw == requests[1].raw and requests[0].header("idempotency-key") == "k1" and requests[0].step == "act_then_drop"
        with pytest.raises(ValueError):
            stripe.script(["explode"])
        stripe.down()
        with pytest.raises(ConnectionRefusedError):
            act(stripe)
        stripe.up()
        stripe.wait("effects", 2)
        stripe.process.kill()
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [entry["effect"]["ref"] for entry in entries if "effect" in entry] == ["order-1", "order-1"]
    assert sum("request" in entry for entry in entries) == 3
    # On record before it acts: a request never appears after its effect.
    order = [next(iter(entry)) for entry in entries]
    assert order.index("request") < order.index("effect")


def test_a_spawned_mail_server(tmp_path):
    with providers.spawn("smtp", journal=tmp_path / "smtp.jsonl") as smtp:
        deliver(smtp)
        assert smtp.by_message_id() == {"<m1@x>": 1} and smtp.requests()[0].data == mail().encode()
        assert smtp.by_recipient() == {"b@y.io": 1} and smtp.effects()[0].key == "<m1@x>"
