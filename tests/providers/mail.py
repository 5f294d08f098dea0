"""Three ways to send a mail over HTTP: Resend takes a key, Postmark can only be asked afterwards, SendGrid neither.

The business reference is what the sender tagged it with (tag, Metadata or custom_args named `ref`), else "recipient: subject"."""

import datetime
import json
import uuid

from .keys import KeyedFake
from .web import Answer, Refused, WebFake, route


def listed(value):
    return value if isinstance(value, list) else [value]


def stable_uuid(number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


class Resend(KeyedFake):
    """`/emails` and `/emails/batch` take `Idempotency-Key` (1 to 256 characters, 24 h). Another body under the same key, or a request that still runs:
    409. Only what was sent is remembered: the answer to a repeat is the first id, also when the first answer was a 500."""

    name = "resend"
    key_max = 256

    def clear(self):
        super().clear()
        self.mails = {}

    def error(self, status, message, headers=(), kind=None):
        kinds = {400: "validation_error", 401: "missing_api_key", 404: "not_found", 422: "validation_error", 429: "rate_limit_exceeded"}
        return Answer(status, {"statusCode": status, "name": kind or kinds.get(status, "internal_server_error"), "message": message}, headers)

    def print_of(self, request):
        return (request.method, request.path, json.dumps(request.json(), sort_keys=True))

    def key_is_bad(self, key):
        return self.error(400, f"The key must be between 1 and {self.key_max} characters.", kind="invalid_idempotency_key")

    def key_is_for_something_else(self, entry):
        return self.error(409, "Same idempotency key used with a different request payload.", kind="invalid_idempotent_request")

    def key_is_in_use(self, entry):
        return self.error(409, "Same idempotency key used while original request is still in progress.", kind="concurrent_idempotent_requests")

    def _check(self, mail):
        for name in ("from", "to", "subject"):
            if not isinstance(mail, dict) or not mail.get(name):
                raise Refused(self.error(422, f"Missing `{name}` field.", kind="missing_required_field"))

    def _send(self, request, mail):
        id = stable_uuid(self.next_id("resend"))
        self.mails[id] = mail
        tags = {tag.get("name"): tag.get("value") for tag in mail.get("tags", [])}
        ref = tags.get("ref") or f"{listed(mail['to'])[0]}: {mail['subject']}"
        self.effect(request, "mail", ref, self.key_of(request), id, to=listed(mail["to"]), subject=mail["subject"])
        return {"id": id}

    @route("POST", "/emails", acts=True)
    def send(self, request):
        self._check(request.json())
        return Answer(200, self._send(request, request.json()))

    @route("POST", "/emails/batch", acts=True)
    def send_batch(self, request):
        mails = request.json()
        if not isinstance(mails, list) or not 0 < len(mails) <= 100:
            raise Refused(self.error(422, "A batch has 1 to 100 mails."))
        for mail in mails:  # all or nothing
            self._check(mail)
        return Answer(200, {"data": [self._send(request, mail) for mail in mails]})

    @route("GET", "/emails/(?P<id>[^/]+)", acts=False)
    def get(self, request, id):
        if id not in self.mails:
            raise Refused(self.error(404, "Email not found"))
        return Answer(200, {"object": "email", "id": id, "last_event": "delivered", **self.mails[id]})


class Postmark(WebFake):
    """No keys at all: every POST that is let through is a mail. It can be asked: `GET /messages/outbound` by recipient, tag, subject and
    metadata_<name>. The index may lag (`index_lag`). An `Idempotency-Key` is ignored."""

    name = "postmark"

    def __init__(self, index_lag=0.0, **options):
        self.index_lag = index_lag
        super().__init__(**options)

    def clear(self):
        super().clear()
        self.mails = []

    def credential_of(self, request):
        return request.header("X-Postmark-Server-Token", "")

    def error(self, status, message, headers=(), code=None):
        codes = {401: 10, 404: 701, 422: 300, 400: 402}
        return Answer(status, {"ErrorCode": code if code is not None else codes.get(status, 0), "Message": message}, headers)

    def _when(self, at):
        return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat()

    def _send(self, request, mail):
        for name in ("From", "To"):
            if not isinstance(mail, dict) or not mail.get(name):
                raise Refused(self.error(422, f"Invalid email request: '{name}' is missing.", code=300))
        id = stable_uuid(self.next_id("postmark"))
        people = [address.strip() for field in ("To", "Cc", "Bcc") for address in (mail.get(field) or "").split(",") if address.strip()]
        self.mails.append({"MessageID": id, "at": self.now(), "people": people, "mail": mail})
        ref = (mail.get("Metadata") or {}).get("ref") or f"{people[0]}: {mail.get('Subject', '')}"
        self.effect(request, "mail", ref, None, id, to=people, subject=mail.get("Subject", ""))
        return {"To": mail["To"], "SubmittedAt": self._when(self.now()), "MessageID": id, "ErrorCode": 0, "Message": "OK"}

    @route("POST", "/email", acts=True)
    def send(self, request):
        return Answer(200, self._send(request, request.json()))

    @route("POST", "/email/batch", acts=True)
    def send_batch(self, request):
        """Each mail of a batch is judged alone; the answer is 200 with a code for each."""
        results = []
        for mail in listed(request.json()):
            try:
                results.append(self._send(request, mail))
            except Refused as refused:
                results.append(json.loads(refused.answer.body))
        return Answer(200, results)

    def _listed(self, kept):
        mail = kept["mail"]
        return {
            "MessageID": kept["MessageID"], "Tag": mail.get("Tag", ""), "To": [{"Email": address.strip(), "Name": None} for address in mail["To"].split(",")],
            "Recipients": kept["people"], "From": mail["From"], "Subject": mail.get("Subject", ""), "ReceivedAt": self._when(kept["at"]),
            "Status": "Sent", "Metadata": mail.get("Metadata") or {}, "MessageStream": mail.get("MessageStream", "outbound"), "Attachments": [],
        }

    def _matches(self, kept, query):
        mail = kept["mail"]
        wanted = {name[len("metadata_") :]: value for name, value in query.items() if name.startswith("metadata_")}
        return (
            kept["at"] + self.index_lag <= self.now()
            and ("recipient" not in query or query["recipient"].lower() in (person.lower() for person in kept["people"]))
            and ("tag" not in query or query["tag"] == mail.get("Tag"))
            and ("subject" not in query or query["subject"] in mail.get("Subject", ""))
            and ("fromemail" not in query or query["fromemail"] in mail["From"])
            and all((mail.get("Metadata") or {}).get(name) == value for name, value in wanted.items())
        )

    @route("GET", "/messages/outbound", acts=False)
    def search(self, request):
        query = request.query()
        if not query.get("count", "").isdigit() or not query.get("offset", "").isdigit():
            raise Refused(self.error(422, "The 'count' and 'offset' parameters are required.", code=700))
        found = [self._listed(kept) for kept in reversed(self.mails) if self._matches(kept, query)]
        start = int(query["offset"])
        return Answer(200, {"TotalCount": len(found), "Messages": found[start : start + int(query["count"])]})

    @route("GET", "/messages/outbound/(?P<id>[^/]+)/details", acts=False)
    def details(self, request, id):
        for kept in self.mails:
            if kept["MessageID"] == id:
                return Answer(200, dict(self._listed(kept), TextBody=kept["mail"].get("TextBody", ""), HtmlBody=kept["mail"].get("HtmlBody", "")))
        raise Refused(self.error(404, "This message was not found."))


class SendGrid(WebFake):
    """No key, and nothing to ask: 202 with an empty body and `X-Message-Id`. One mail for each personalization. `custom_args` come back in event
    webhooks only; `delivered_events()` is what such a webhook would say."""

    name = "sendgrid"
    remote_calls = WebFake.remote_calls + ("delivered_events",)

    def clear(self):
        super().clear()
        self.events = []

    def error(self, status, message, headers=()):
        return Answer(status, {"errors": [{"message": message, "field": None, "help": None}]}, headers)

    @route("POST", "/v3/mail/send", acts=True)
    def send(self, request):
        mail = request.json()
        for name in ("personalizations", "from"):
            if not isinstance(mail, dict) or not mail.get(name):
                raise Refused(self.error(400, f"The {name} field is required."))
        if not mail.get("content") and not mail.get("template_id"):
            raise Refused(self.error(400, "The content or template_id is required."))
        if not all(part.get("to") for part in mail["personalizations"]):
            raise Refused(self.error(400, "The to array is required for all personalization objects."))
        id = self.next_id("sg_", 12)
        for part in mail["personalizations"]:
            marks = {**mail.get("custom_args", {}), **part.get("custom_args", {})}
            subject, to = part.get("subject") or mail.get("subject", ""), [person["email"] for person in part["to"]]
            self.effect(request, "mail", marks.get("ref") or f"{to[0]}: {subject}", None, id, to=to, subject=subject, custom_args=marks)
            self.events += [{"email": person, "event": "delivered", "sg_event_id": self.next_id("ev_"), "sg_message_id": f"{id}.0", **marks} for person in to]
        return Answer(202, b"", [("X-Message-Id", id)])

    def delivered_events(self):
        return list(self.events)
