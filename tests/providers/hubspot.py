"""HubSpot. It takes no keys, but a contact's e-mail is unique, upserts name a unique property, and a single-send mail has a sendId.

- Creating a contact whose e-mail exists: 409 with the existing id in the message.
- `batch/upsert` by `idProperty`: repeating it changes nothing. An upsert that changes nothing is no effect.
- Single-send: no more than one mail per sendId; the repeat is accepted and its status says IDEMPOTENT_IGNORE. Without a sendId every call is a mail.
- Search lags (`index_lag`); reads by id or idProperty do not.

The business reference is the contact's e-mail; for a mail, customProperties.ref, else "recipient: emailId"."""

import datetime
import re

from .web import Answer, Refused, WebFake, route

UNIQUE = {"email", "semel_key", "external_id"}  # properties with unique values in this portal
OPERATORS = {
    "EQ": lambda have, want: have == want, "NEQ": lambda have, want: have != want, "HAS_PROPERTY": lambda have, _: have is not None,
    "CONTAINS_TOKEN": lambda have, want: want.strip("*").lower() in (have or "").lower(),
}


class HubSpot(WebFake):
    name = "hubspot"

    def __init__(self, index_lag=0.0, **options):
        self.index_lag = index_lag
        super().__init__(**options)

    def clear(self):
        super().clear()
        self.contacts, self.sends, self.statuses = {}, {}, {}

    def error(self, status, message, headers=(), category=None):
        categories = {400: "VALIDATION_ERROR", 401: "INVALID_AUTHENTICATION", 404: "OBJECT_NOT_FOUND", 409: "CONFLICT", 429: "RATE_LIMITS"}
        body = {"status": "error", "message": message, "correlationId": self.next_id("corr-"), "category": category or categories.get(status, "INTERNAL_ERROR")}
        return Answer(status, body, headers)

    def _when(self, at):
        return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # Contacts

    def _by(self, name, value):
        for contact in self.contacts.values():
            have = contact["id"] if name in ("id", "hs_object_id") else contact["properties"].get(name)
            if have is not None and have.lower() == str(value).lower():
                return contact
        return None

    def _shown(self, contact, **more):
        return {
            "id": contact["id"], "properties": dict(contact["properties"], hs_object_id=contact["id"]), "createdAt": self._when(contact["created"]),
            "updatedAt": self._when(contact["updated"]), "archived": False, **more,
        }

    def _insert(self, request, properties, key=None):
        id = str(50000 + int(self.next_id()))
        self.contacts[id] = {"id": id, "properties": dict(properties), "created": self.now(), "updated": self.now()}
        self.effect(request, "contact.created", properties.get("email") or id, key, id)
        return self.contacts[id]

    def _update(self, request, contact, properties, key=None):
        if any(contact["properties"].get(name) != value for name, value in properties.items()):
            contact["properties"].update(properties)
            contact["updated"] = self.now()
            self.effect(request, "contact.updated", contact["properties"].get("email") or contact["id"], key, contact["id"])
        return contact

    def _properties(self, given):
        properties = given.get("properties") if isinstance(given, dict) else None
        if not isinstance(properties, dict):
            raise Refused(self.error(400, "Invalid input JSON: properties are missing"))
        email = properties.get("email")
        if email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", email):
            raise Refused(self.error(400, f"Property values were not valid: email address {email} is invalid"))
        return properties

    @route("POST", "/crm/v3/objects/contacts", acts=True)
    def create(self, request):
        properties = self._properties(request.json())
        for name in UNIQUE & properties.keys():
            there = self._by(name, properties[name])
            if there:
                raise Refused(self.error(409, f"Contact already exists. Existing ID: {there['id']}"))
        return Answer(201, self._shown(self._insert(request, properties)))

    @route("PATCH", "/crm/v3/objects/contacts/(?P<id>[^/]+)", acts=True)
    def update(self, request, id):
        return Answer(200, self._shown(self._update(request, self._existing(request, id), self._properties(request.json()))))

    def _existing(self, request, id):
        contact = self._by(request.query().get("idProperty", "id"), id.replace("%40", "@"))
        if contact is None:
            raise Refused(self.error(404, "resource not found"))
        return contact

    @route("GET", "/crm/v3/objects/contacts/(?P<id>[^/]+)", acts=False)
    def get(self, request, id):
        return Answer(200, self._shown(self._existing(request, id)))

    @route("POST", "/crm/v3/objects/contacts/batch/upsert", acts=True)
    def upsert(self, request):
        inputs = request.json().get("inputs")
        if not isinstance(inputs, list) or not 0 < len(inputs) <= 100:
            raise Refused(self.error(400, "inputs: 1 to 100"))
        for given in inputs:
            self._properties(given)
            if given.get("idProperty") not in UNIQUE:
                raise Refused(self.error(400, f"idProperty {given.get('idProperty')} is not a unique property"))
        results = [self._upsert_one(request, given) for given in inputs]
        return Answer(200, {"status": "COMPLETE", "results": results, "startedAt": self._when(self.now()), "completedAt": self._when(self.now())})

    def _upsert_one(self, request, given):
        contact, trace = self._by(given["idProperty"], given["id"]), given.get("objectWriteTraceId")
        properties = {given["idProperty"]: given["id"], **given["properties"]}
        new = contact is None
        contact = self._insert(request, properties, trace) if new else self._update(request, contact, properties, trace)
        return self._shown(contact, new=new, objectWriteTraceId=trace)

    @route("POST", "/crm/v3/objects/contacts/search", acts=False)
    def search(self, request):
        asked = request.json()
        found = [contact for contact in self.contacts.values() if contact["updated"] + self.index_lag <= self.now()]
        groups = asked.get("filterGroups", [])
        found = [contact for contact in found if not groups or any(self._passes(contact, group) for group in groups)]
        return Answer(200, {"total": len(found), "results": [self._shown(contact) for contact in found[: int(asked.get("limit", 10))]]})

    def _passes(self, contact, group):
        for condition in group.get("filters", []):
            test = OPERATORS.get(condition.get("operator"))
            if test is None:
                raise Refused(self.error(400, f"operator {condition.get('operator')} is not known here"))
            if not test(contact["properties"].get(condition.get("propertyName")), condition.get("value")):
                return False
        return True

    # Single-send

    @route("POST", "/marketing/v(3/transactional/single-email/send|4/email/single-send)", acts=True)
    def single_send(self, request):
        asked = request.json()
        message = asked.get("message") or {}
        if not asked.get("emailId") or not message.get("to"):
            raise Refused(self.error(400, "emailId and message.to are required"))
        send_id, status_id = message.get("sendId"), self.next_id("status-")
        result = "SENT"
        if send_id is not None and send_id in self.sends:
            result = "IDEMPOTENT_IGNORE"
        else:
            ref = (asked.get("customProperties") or {}).get("ref") or f"{message['to']}: {asked['emailId']}"
            self.sends[send_id if send_id is not None else status_id] = status_id
            self.effect(request, "mail", ref, send_id, status_id, to=message["to"])
        self.statuses[status_id] = {"statusId": status_id, "sendResult": result, "status": "COMPLETE", "requestedAt": self._when(self.now())}
        return Answer(200, {"statusId": status_id, "status": "PENDING", "requestedAt": self._when(self.now())})

    @route("GET", "/marketing/v3/email/send-statuses/(?P<id>[^/]+)", acts=False)
    def send_status(self, request, id):
        if id not in self.statuses:
            raise Refused(self.error(404, "no such send"))
        return Answer(200, self.statuses[id])
