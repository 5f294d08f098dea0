"""Each person once: forms, chats and mails of one person are one lead; what a rule or a person joined can be taken apart at any time; what nobody can tell is
asked; and all of it survives kills, races and a second node."""

import http.client
import itertools
import json
import threading
from email.message import EmailMessage

import pytest

from plain_server import reply
from semel_process import run_cli, until

PHONE = "+33612345678"
NUMBERS = itertools.count(1)


class Leads:
    def __init__(self, house, server, storage="sqlite", **settings):
        self.house = house
        self.sink = server(lambda head, body: reply())
        agent = {"provider": "http", "url": self.sink.url, "allow_private": True, "backoff": "50ms"}
        each = {"verify": "none", "forward": "agent", "as": "event", **settings}
        self.policy = json.dumps({"owner": "dana", "destinations": {"agent": agent}, "sources": {
            "website": {"preset": "form", **each}, "whatsapp": dict(each), "mail": {"addresses": ["us@example.com"], **each}, "shop": {"preset": "json", **each}}})
        self.daemon = house.start(storage, policy=self.policy)
        self.client = house.client(self.daemon)

    def send(self, source, body, kind, client=None):
        answer = (client or self.client).request("POST", f"/in/{source}", body, {"Content-Type": kind})
        assert answer.status == 200, answer

    def form(self, name, email, phone=None, text="What does it cost?", client=None):
        fields = {"name": name, "email": email, "message": f"{text} {next(NUMBERS)}", **({"phone": phone} if phone else {})}
        body = "&".join(f"{key}={''.join(c if c.isalnum() else f'%{b:02X}' for c in value for b in c.encode())}" for key, value in fields.items())
        self.send("website", body.encode(), "application/x-www-form-urlencoded", client)

    def chat(self, name, phone):
        digits = phone.removeprefix("+")
        value = {"messaging_product": "whatsapp", "metadata": {"display_phone_number": "15551304520", "phone_number_id": "248"},
                 "contacts": [{"profile": {"name": name}, "wa_id": digits}],
                 "messages": [{"from": digits, "id": f"wamid.{next(NUMBERS)}", "timestamp": "1706955513", "type": "text", "text": {"body": f"Are you there? {next(NUMBERS)}"}}]}
        self.send("whatsapp", json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "2", "changes": [{"field": "messages", "value": value}]}]}).encode(), "application/json")

    def mail(self, name, email):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"], mail["Message-ID"] = f"{name} <{email}>", "us@example.com", f"A question {next(NUMBERS)}", f"<{next(NUMBERS)}@mail.acme.io>"
        mail.set_content(f"Could I come by? {next(NUMBERS)}")
        self.send("mail", mail.as_bytes(), "message/rfc822")

    def add(self, source, expect=None, client=None, **person):
        answer = (client or self.client).post("/v1/leads", {"source": source, **person})
        assert answer.status == expect if expect else answer.status in (200, 201, 202), answer
        return answer.json

    def decided(self, count):
        """All events, oldest first, when there are so many and all are decided."""
        until(lambda: len(self.events()) == count and all(event["verdict"] != "waiting" for event in self.events()), f"{count} verdicts")
        return [self.client.get(f"/v1/events/{event['event']}").json for event in reversed(self.events())]

    def events(self):
        return self.client.get("/v1/events?limit=200").json["data"]

    def all(self):
        return self.client.get("/v1/leads?limit=200").json["data"]

    def get(self, lead):
        answer = self.client.get(f"/v1/leads/{lead}")
        assert answer.status == 200, answer
        return answer.json

    def dump(self):
        """What is to be the same again after an undo: leads and the records that belong to them."""
        return [{name: self.get(lead["lead"])[name] for name in ("lead", "name", "company", "records", "created_at", "updated_at", "identities", "versions")} for lead in self.all()]

    def cards(self):
        return self.client.get("/v1/exceptions").json["data"]

    def resolve(self, card, choice, **more):
        return self.client.post(f"/v1/exceptions/{card['exception']}/resolve", {"choice": choice, **more})

    def undo(self, edge, **more):
        answer = self.client.post(f"/v1/leads/edges/{edge}/undo", more)
        assert answer.status == 200, answer
        return answer.json

    def merge(self, lead, other, expect=200, **more):
        answer = self.client.post(f"/v1/leads/{lead}/merge", {"with": other, **more})
        assert answer.status == expect, answer
        return answer.json

    def cli(self, *words, expect=0):
        done = run_cli(*words, "--url", f"http://127.0.0.1:{self.daemon.port}")
        assert done.returncode == expect, done
        return done.stdout + done.stderr


@pytest.fixture
def leads(house, server):
    return lambda storage="sqlite", **more: Leads(house, server, storage, **more)


def test_a_form_a_chat_and_a_mail_of_one_person_are_one_lead(leads, storage):
    box = leads(storage)
    box.form("Jon Smith", "jon@acme.io", PHONE)
    box.chat("Jon Smith", PHONE)
    box.mail("Jonathan Smith", "Jon@acme.io")
    box.chat("Jon Smith", PHONE)  # the same words: the same record
    events = box.decided(4)
    assert [event["lead"]["found"] for event in events] == ["new", "same", "same", "known"]
    (lead,) = box.all()
    assert {event["lead"]["lead"] for event in events} == {lead["lead"]} and lead["records"] == 3
    shown = box.get(lead["lead"])
    assert {(one["kind"], one["value"]) for one in shown["identities"]} == {("email", "jon@acme.io"), ("phone", PHONE)}
    assert {one["source"] for one in shown["versions"]} == {"website", "whatsapp", "mail"}
    assert [edge["kind"] for edge in shown["history"]] == ["same", "same"] and all(edge["explanation"] for edge in shown["history"])
    assert {event["event"] for event in shown["events"]} == {event["event"] for event in events} and not shown["exceptions"]
    assert {thread["thread"] for thread in shown["threads"]} == {event["thread"] for event in events}
    for event in events:
        assert box.client.get(f"/v1/threads/{event['thread']}").json["lead"] == lead["lead"]
    until(lambda: len(box.sink.requests) == 4, "the forwards")
    for _, head, body in box.sink.requests:
        assert f"semel-lead-id: {lead['lead']}" in head.decode().lower() and json.loads(body)["lead"] == lead["lead"]
    assert "the same e-mail address" in box.cli("leads", "why", lead["lead"]) and "is the same as" in box.cli("why", lead["lead"])
    assert f"It is from {lead['lead']}" in box.cli("inbox", "why", events[1]["event"]) and lead["lead"] in box.cli("inbox", "show", events[1]["event"])
    assert "Jonathan Smith" in box.cli("leads", "ls") and "website" in box.cli("leads", "show", lead["lead"])


def test_every_decision_about_a_lead_is_on_record(leads, storage):
    box = leads(storage)
    box.add("crm", 201, external_id="4711", name="Jon Smith", email="jon@acme.io")
    box.add("shop", 200, external_id="a-1", name="Jon Smith", email="jon@acme.io")
    rows = [row for row in box.client.decisions() if row["kind"].startswith("lead_")]
    assert sorted(row["kind"] for row in rows) == ["lead_new", "lead_same"]
    for row in rows:
        told = row["changes"]
        assert {"source_id", "system_of_record_id", "matching_score", "decision", "content_sha256", "weights", "candidates"} <= set(told) and row["actor"] and row["at"]
        assert told["system_of_record_id"] == box.all()[0]["lead"]
    (same,) = [row["changes"] for row in rows if row["kind"] == "lead_same"]
    assert same["source_id"] == "a-1" and same["matching_score"] > 0 and same["candidates"][0]["zone"] == "same"


def test_two_people_who_share_a_phone_are_two_leads(leads, storage):
    box = leads(storage)
    box.form("Maria Lopez", "maria@lopez.es", PHONE)
    box.form("Peter Jansen", "peter@jansen.nl", PHONE)
    box.decided(2)
    assert len(box.all()) == 2


def test_what_nobody_can_tell_is_asked_with_both_sides(leads, storage):
    box = leads(storage)
    box.form("Jon Smith", "jon@acme.io", PHONE)
    box.form("Jane Smith", "jane@acme.io", PHONE)
    first, second = box.decided(2)
    assert second["lead"]["found"] == "review" and second["lead"]["lead"] != first["lead"]["lead"]
    (card,) = box.cards()
    assert card["kind"] == "ambiguous_identity" and card["owner"] == "dana" and {one["choice"] for one in card["choices"]} == {"same", "different"}
    question = box.client.get(f"/v1/exceptions/{card['exception']}").json["question"]
    assert {side["says"]["name"] for side in question["sides"]} == {"Jon Smith", "Jane Smith"} and question["edge"]["explanation"]
    assert box.get(first["lead"]["lead"])["exceptions"][0]["exception"] == card["exception"]
    told = box.cli("exceptions", "show", card["exception"])
    assert "Jane Smith" in told and "different given names" in told and "It can be undone" in told
    assert "is one lead now" in box.cli("exceptions", "resolve", card["exception"], "--choice", "same", "--note", "she is his assistant")
    (lead,) = box.all()
    assert lead["lead"] == first["lead"]["lead"] and not box.cards()
    assert box.resolve(card, "different").status == 409
    (row,) = [row for row in box.client.decisions() if row["kind"] == "lead_merged"]
    assert row["changes"]["note"] == "she is his assistant"


def test_different_survives_whatever_comes_later(leads, storage):
    box = leads(storage)
    for name, email in (("Jon Smith", "jon@acme.io"), ("Jane Smith", "jane@acme.io")):
        box.add("website", name=name, email=email, phone=PHONE)
    (card,) = box.cards()
    assert box.resolve(card, "different").json["changed"]
    for source in ("crm", "shop", "mail"):
        for name, email in (("Jon Smith", "jon@acme.io"), ("Jane Smith", "jane@acme.io")):
            box.add(source, name=name, email=email, phone=PHONE)
    box.add("both", name="Jon Smith", emails=["jon@acme.io", "jane@acme.io"], phone=PHONE)
    assert len(box.all()) == 2 and not box.cards()
    apart = box.merge(*(lead["lead"] for lead in box.all()), expect=409)
    assert apart["code"] == "kept_apart" and box.undo(apart["edge"])["changed"]
    box.merge(*(lead["lead"] for lead in box.all()))
    assert len(box.all()) == 1


def test_a_merge_is_undone_to_what_was_before(leads, storage):
    box = leads(storage)
    first = box.add("crm", name="Jon Smith", company="Acme", email="jon@acme.io")
    second = box.add("website", name="Johannes Schmidt", email="js@schmidt.io", phone=PHONE)
    before = box.dump()
    merged = box.merge(second["lead"], first["lead"], note="he moved to Germany")
    assert merged["lead"] == first["lead"] and merged["changed"] and len(box.all()) == 1
    assert box.get(second["lead"])["lead"] == first["lead"]  # its old id is a name of it
    assert not box.merge(first["lead"], second["lead"])["changed"]
    assert "are two leads" in box.cli("leads", "undo", merged["edge"], "--note", "he did not")
    assert box.dump() == before
    assert not box.undo(merged["edge"])["changed"]
    assert [edge["undone_note"] for edge in box.get(first["lead"])["history"]] == ["he did not"]


def test_an_undo_after_later_merges_takes_back_only_its_own(leads, storage):
    box = leads(storage)
    people = [("Anna Berg", "anna@berg.io"), ("Boris Blau", "boris@blau.io"), ("Carla Cruz", "carla@cruz.io")]
    a, b, c = (box.add("crm", name=name, email=email)["lead"] for name, email in people)
    alone = {lead["lead"]: lead for lead in box.dump()}
    first = box.merge(a, b)
    box.merge(a, c)
    box.add("mail", 200, name="Boris Blau", email="boris@blau.io")
    assert len(box.all()) == 1
    box.undo(first["edge"])
    left = {lead["lead"]: [one["name"] for one in lead["versions"]] for lead in box.dump()}
    assert left == {a: ["Anna Berg", "Carla Cruz"], b: ["Boris Blau", "Boris Blau"]} and set(left) < set(alone)


def test_upserts_are_idempotent_and_find_changes_nothing(leads, storage):
    box = leads(storage)
    person = {"external_id": "4711", "name": "Jon Smith", "email": "jon@acme.io", "country": "FR", "phone": "06 12 34 56 78"}
    first = box.add("crm", 201, **person)
    assert first["found"] == "new" and box.add("crm", 200, **person)["record"] == first["record"]
    changed = box.add("crm", 200, **{**person, "name": "J. Smith", "email": "smith@other.io"})
    assert (changed["found"], changed["lead"], changed["rule"]) == ("same", first["lead"], "same_id")
    before, rows = box.dump(), len(box.client.decisions())
    for body, found in [({"email": "JON@acme.io", "name": "Jon Smith"}, "same"), ({"phone": PHONE, "name": "Jon Smith"}, "same"), ({"source": "crm", "external_id": "4711"}, "same"),
                        ({"email": "nobody@nowhere.io"}, "new"), ({"source": "crm", **person}, "known")]:
        answer = box.client.post("/v1/leads/find", body)
        assert answer.status == 200 and answer.json["found"] == found and answer.json["lead"] == (None if found == "new" else first["lead"]), (body, answer)
    assert box.dump() == before and len(box.client.decisions()) == rows
    for body, field in [({}, "source"), ({"source": "crm", "name": "Jon"}, "email"), ({"source": "crm", "emails": "jon"}, "emails"), ({"source": "crm", "email": 1}, "email")]:
        answer = box.client.post("/v1/leads", body)
        assert answer.status == 400 and answer.json["field"] == field, answer
    for path in ("/v1/leads/lead_0000000000001", "/v1/leads/lead_0000000000001/why"):
        assert box.client.get(path).status == 404
    assert box.client.post("/v1/leads/edges/edg_0000000000001/undo", {}).status == 404
    assert box.client.post(f"/v1/leads/{first['lead']}/merge", {"with": "lead_0000000000001"}).status == 404
    assert "same" in box.cli("leads", "find", "--email", "jon@acme.io", "--name", "Jon Smith") and "nobody like this" in box.cli("leads", "find", "--email", "x@nowhere.io")
    assert first["lead"] in box.cli("leads", "add", "--source", "crm", "--external-id", "4711", "--name", "Jon Smith", "--phone", PHONE)


def test_leads_are_listed_in_pages(leads):
    box = leads()
    names = ["Anna Berg", "Boris Blau", "Carla Cruz", "Dora Dahl", "Emil Erb", "Fritz Funk", "Greta Graf"]
    made = [box.add("crm", 201, external_id=str(n), name=name, **({"company": f"Acme {name}"} if n % 2 else {}))["lead"] for n, name in enumerate(names)]
    seen, after = [], ""
    while after is not None:
        page = box.client.get(f"/v1/leads?limit=3{after and '&after=' + after}").json
        seen += [lead["lead"] for lead in page["data"]]
        after = page["page"]["next"]
    assert seen == made[::-1]
    assert [lead["lead"] for lead in box.client.get("/v1/leads?q=carla").json["data"]] == [made[2]]
    assert len(box.client.get("/v1/leads?q=acme").json["data"]) == 3 and box.client.get("/v1/leads?limit=0").status == 400


def test_in_shadow_mode_nobody_is_joined(leads, storage):
    box = leads(storage, mode="shadow")
    box.form("Jon Smith", "jon@acme.io", PHONE)
    box.chat("Jon Smith", PHONE)
    box.decided(2)
    assert len(box.all()) == 2 and not box.cards()
    (row,) = [row for row in box.client.decisions() if row["kind"] == "lead_same"]
    assert row["changes"]["shadow"] and row["changes"]["other"] in {lead["lead"] for lead in box.all()}


def test_a_released_event_is_somebodys_too(leads, storage):
    box = leads(storage)
    assert box.client.post("/v1/sources/shop/mute", {"for_ms": 3_600_000}).status == 200
    box.send("shop", json.dumps({"name": "Jon Smith", "email": "jon@acme.io", "message": "Hello there"}).encode(), "application/json")
    (event,) = box.decided(1)
    assert event["verdict"] == "muted" and event["lead"] is None and not box.all()
    assert box.client.post(f"/v1/events/{event['event']}/release", {}).json["changed"]
    (lead,) = box.all()
    assert box.client.get(f"/v1/events/{event['event']}").json["lead"]["lead"] == lead["lead"]
    until(lambda: len(box.sink.requests) == 1, "the forward")
    assert f"semel-lead-id: {lead['lead']}" in box.sink.requests[0][1].decode().lower()


def post_together(ports, bodies):
    """Each body to each port at the same instant."""
    barrier, statuses = threading.Barrier(len(ports) * len(bodies)), []

    def go(port, path, kind, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.connect()
        barrier.wait()
        connection.request("POST", path, body, {"Content-Type": kind})
        statuses.append(connection.getresponse().status)
        connection.close()

    threads = [threading.Thread(target=go, args=(port, *body)) for port in ports for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(200 <= status < 300 for status in statuses) and len(statuses) == len(threads), statuses


def webhooks(number):
    """One person, told of by several systems at once."""
    name, email = f"Ute {'abcdefghijklmnopqrstuvwxyz'[number]}{'mnopqrstuvwxyzabcdefghijkl'[number]}berg", f"ute{number}@berg{number}.io"
    form = json.dumps({"name": name, "email": email, "message": f"Hello number {number}"}).encode()
    rows = [json.dumps({"source": source, "external_id": str(number), "name": name, "email": email}).encode() for source in ("crm", "billing")]
    return [("/in/shop", "application/json", form), *(("/v1/leads", "application/json", row) for row in rows)]


def test_webhooks_at_the_same_instant_are_one_lead(leads, storage):
    box = leads(storage)
    for number in range(8):
        post_together([box.daemon.port], webhooks(number))
    box.decided(8)
    assert len(box.all()) == 8 and {lead["records"] for lead in box.all()} == {3} and not box.cards()


def test_two_nodes_at_the_same_instant_make_one_lead(leads):
    box = leads("postgres")
    other = box.house.start("postgres", db=box.daemon.db, policy=box.policy, name="other")
    for number in range(8):
        post_together([box.daemon.port, other.port], webhooks(number))
    until(lambda: all(event["verdict"] != "waiting" for event in box.events()), "all verdicts")
    assert len(box.all()) == 8 and {lead["records"] for lead in box.all()} == {3} and not box.cards()
    there = box.house.client(other).get("/v1/leads?limit=200").json["data"]
    assert there == box.all()


def test_a_kill_in_the_middle_leaves_each_lead_once(leads, storage):
    """Senders repeat until they are acknowledged; the daemon is killed again and again."""
    box = leads(storage)
    people, done = [webhooks(number) for number in range(20)], []

    def deliver(bodies):
        for path, kind, body in bodies:
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", box.daemon.port, timeout=60)
                    connection.request("POST", path, body, {"Content-Type": kind})
                    status = connection.getresponse().status
                    connection.close()
                except (OSError, http.client.HTTPException):
                    until(box.daemon.alive, "the daemon")
                    continue
                if status < 500:
                    assert 200 <= status < 300, status
                    break
        done.append(1)

    threads = [threading.Thread(target=deliver, args=(bodies,)) for bodies in people]
    for thread in threads:
        thread.start()
    for kill in range(3):
        until(lambda: len(done) > kill * 4 or len(done) == len(people), "some progress", seconds=120)
        box.daemon.kill()
        box.daemon.start()
    for thread in threads:
        thread.join()
    box.client = box.house.client(box.daemon)
    until(lambda: len(box.events()) >= 20 and all(event["verdict"] != "waiting" for event in box.events()), "all verdicts", seconds=120)
    assert len(box.all()) == 20 and {lead["records"] for lead in box.all()} == {3}
    box.daemon.stop()
    if storage == "sqlite":
        assert run_cli("audit", "verify", "--data", str(box.daemon.data)).returncode == 0


def test_spaces_do_not_see_each_others_leads(house):
    daemon = house.start("sqlite", command="serve")
    admin = house.client(daemon, token=(daemon.data / "admin.token").read_text().strip())
    made = admin.post("/v1/tokens", {"name": "other", "space": "other", "scopes": ["read", "claim", "resolve"]}).json
    other = house.client(daemon, token=made["token"])
    person = {"source": "crm", "name": "Jon Smith", "email": "jon@acme.io"}
    first = admin.post("/v1/leads", person).json
    assert other.post("/v1/leads/find", person).json["found"] == "new" and other.get(f"/v1/leads/{first['lead']}").status == 404
    second = other.post("/v1/leads", person)
    assert second.status == 201 and second.json["lead"] != first["lead"]
    assert admin.post(f"/v1/leads/{first['lead']}/merge", {"with": second.json["lead"]}).status == 404
    reader = house.client(daemon, token=admin.post("/v1/tokens", {"name": "reader", "scopes": ["read"]}).json["token"])
    assert reader.post("/v1/leads", person).status == 403 and reader.post(f"/v1/leads/{first['lead']}/merge", {"with": first["lead"]}).status == 403
    assert reader.post("/v1/leads/find", person).status == 200
