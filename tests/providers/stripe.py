"""Stripe v1. Charges, payment intents and customers; form bodies; idempotency keys; search by metadata.

- A key remembers the first answer for `key_ttl` once execution has begun: also a declined card (402), also a 500. Parameters that fail validation
  and conflicts with a running request are not remembered.
- The same key with other parameters or at another endpoint: 400, type `idempotency_error`. While the first is running: 409.
- After `key_ttl` the same key is a new request: a second charge.
- Search lags (`index_lag`, "under a minute" in real life); lists are immediate.

The business reference is metadata[ref], else the description."""

import re

from .keys import KeyedFake
from .web import Answer, Refused, route

CLAUSE = re.compile(r"""(metadata\[(['"])(?P<field>.+?)\2\]|(?P<name>\w+)):(['"])(?P<value>.*?)\5""")
KINDS = {"charges": "ch_", "payment_intents": "pi_", "customers": "cus_"}
DECLINED = {"tok_chargeDeclined", "pm_card_chargeDeclined", "pm_card_visa_chargeDeclined"}


def unflatten(form):
    """metadata[a]=1 -> {"metadata": {"a": "1"}}; one level is enough here."""
    made = {}
    for name, value in form.items():
        outer, bracket, inner = name.partition("[")
        if bracket:
            made.setdefault(outer, {})[inner.rstrip("]")] = value
        else:
            made[outer] = value
    return made


class Stripe(KeyedFake):
    name = "stripe"
    saves_errors = True

    def __init__(self, index_lag=0.0, **options):
        self.index_lag = index_lag
        super().__init__(**options)

    def clear(self):
        super().clear()
        self.objects = {kind: [] for kind in KINDS}

    # Errors and keys

    def error(self, status, message, headers=(), kind=None, code=None, param=None, **more):
        kinds = {400: "invalid_request_error", 401: "invalid_request_error", 402: "card_error", 404: "invalid_request_error", 429: "rate_limit_error"}
        body = {"type": kind or kinds.get(status, "api_error"), "message": message, **more}
        body.update({name: value for name, value in (("code", code), ("param", param)) if value})
        # Retrying an error that was saved would be a no-op, so the client is told not to.
        advice = [("Stripe-Should-Retry", "false")] if status == 500 else []
        return Answer(status, {"error": body}, self.own_headers() + advice + list(headers))

    def own_headers(self):
        return [("Request-Id", self.next_id("req_")), ("Stripe-Version", "2026-09-30")]

    def print_of(self, request):
        return (request.method, request.path, tuple(sorted(request.form().items())))

    def key_is_bad(self, key):
        return self.error(400, f"an idempotency key has 1 to {self.key_max} characters", kind="idempotency_error")

    def key_is_for_something_else(self, entry):
        text = f"Keys for idempotent requests can only be used with the same parameters they were first used with. Key: {entry.key}"
        return self.error(400, text, kind="idempotency_error")

    def key_is_in_use(self, entry):
        text = f"There is currently another in-progress request using this Idempotent Key: {entry.key}"
        return self.error(409, text, [("Stripe-Should-Retry", "true")], kind="idempotency_error", code="idempotency_key_in_use")

    def replayed(self, entry):
        original = dict(entry.answer.headers).get("Request-Id")
        kept = [(name, value) for name, value in entry.answer.headers if name != "Request-Id"]
        marks = [("Request-Id", self.next_id("req_")), ("Original-Request", original), ("Idempotent-Replayed", "true")]
        return Answer(entry.answer.status, entry.answer.body, kept + marks)

    # Making things

    def _make(self, request, kind, fields):
        made = {"id": self.next_id(KINDS[kind]), "object": kind[:-1], "created": int(self.now()), "livemode": False, **fields}
        made.setdefault("metadata", {})
        self.objects[kind].append((self.now(), made))
        return made

    def _answer(self, request, made):
        key = self.key_of(request)
        return Answer(200, made, self.own_headers() + ([("Idempotency-Key", key)] if key else []))

    def _ref(self, fields):
        return fields.get("metadata", {}).get("ref") or fields.get("description") or "?"

    def _money(self, fields):
        for name in ("amount", "currency"):
            if not fields.get(name):
                raise Refused(self.error(400, f"Missing required param: {name}.", code="parameter_missing", param=name))
        if not re.fullmatch(r"[1-9][0-9]{0,7}", fields["amount"]):
            raise Refused(self.error(400, f"Invalid integer: {fields['amount']}", code="parameter_invalid_integer", param="amount"))
        return dict(fields, amount=int(fields["amount"]))

    def _charge(self, request, fields, source, **more):
        if source in DECLINED:  # execution has begun: this answer is remembered
            raise Refused(self.error(402, "Your card was declined.", code="card_declined", decline_code="generic_decline"), saved=True)
        made = self._make(request, "charges", {**fields, "status": "succeeded", "paid": True, **more})
        self.effect(request, "charge", self._ref(fields), self.key_of(request), made["id"], amount=fields["amount"], currency=fields["currency"])
        return made

    @route("POST", "/v1/charges", acts=True)
    def create_charge(self, request):
        fields = self._money(unflatten(request.form()))
        if not fields.get("source") and not fields.get("customer"):
            raise Refused(self.error(400, "Must provide source or customer.", code="parameter_missing", param="source"))
        return self._answer(request, self._charge(request, fields, fields.get("source")))

    @route("POST", "/v1/payment_intents", acts=True)
    def create_payment_intent(self, request):
        fields = self._money(unflatten(request.form()))
        confirm = fields.pop("confirm", "false") == "true"
        if confirm and fields.get("payment_method") in DECLINED:
            self._charge(request, fields, fields["payment_method"])
        made = self._make(request, "payment_intents", {**fields, "status": "requires_confirmation", "latest_charge": None})
        self.effect(request, "payment_intent", self._ref(fields), self.key_of(request), made["id"])
        if confirm:
            self._confirm(request, made)
        return self._answer(request, made)

    def _confirm(self, request, intent):
        fields = {name: intent[name] for name in ("amount", "currency", "metadata", "description") if name in intent}
        charge = self._charge(request, fields, intent.get("payment_method"), payment_intent=intent["id"])
        intent.update(status="succeeded", latest_charge=charge["id"])

    @route("POST", "/v1/payment_intents/(?P<id>[^/]+)/confirm", acts=True)
    def confirm_payment_intent(self, request, id):
        intent = self._find_object("payment_intents", id)
        if intent["status"] == "succeeded":  # confirming is naturally done once
            text = "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed."
            raise Refused(self.error(400, text, code="payment_intent_unexpected_state"))
        intent.update(unflatten(request.form()))
        self._confirm(request, intent)
        return self._answer(request, intent)

    @route("POST", "/v1/customers", acts=True)
    def create_customer(self, request):
        fields = unflatten(request.form())
        made = self._make(request, "customers", fields)
        ref = fields.get("metadata", {}).get("ref") or fields.get("email") or fields.get("description") or "?"
        self.effect(request, "customer", ref, self.key_of(request), made["id"])
        return self._answer(request, made)

    # Asking

    def _find_object(self, kind, id):
        for _, made in self.objects[kind]:
            if made["id"] == id:
                return made
        raise Refused(self.error(404, f"No such {kind[:-1]}: '{id}'", code="resource_missing", param="id"))

    def _page(self, request, found):
        limit = int(request.query().get("limit", "10"))
        return Answer(200, {"object": "list", "url": request.path, "has_more": len(found) > limit, "data": found[:limit]}, self.own_headers())

    @route("GET", "/v1/(?P<kind>charges|payment_intents|customers)", acts=False)
    def list_objects(self, request, kind):
        query = request.query()
        found = [made for _, made in reversed(self.objects[kind])]
        for name in ("customer", "email", "payment_intent"):
            if name in query:
                found = [made for made in found if made.get(name) == query[name]]
        found = [made for made in found if made["created"] >= int(query.get("created[gte]", "0"))]
        if "starting_after" in query:
            ids = [made["id"] for made in found]
            found = found[ids.index(query["starting_after"]) + 1 :] if query["starting_after"] in ids else []
        return self._page(request, found)

    @route("GET", "/v1/(?P<kind>charges|payment_intents|customers)/search", acts=False)
    def search(self, request, kind):
        clauses = list(CLAUSE.finditer(request.query().get("query", "")))
        if not clauses:
            raise Refused(self.error(400, "We were unable to parse your search query.", param="query"))
        found = [made for at, made in reversed(self.objects[kind]) if at + self.index_lag <= self.now()]
        for clause in clauses:
            found = [made for made in found if self._field(made, clause) == clause["value"]]
        return self._page(request, found)

    def _field(self, made, clause):
        return made["metadata"].get(clause["field"]) if clause["field"] else made.get(clause["name"])

    @route("GET", "/v1/(?P<kind>charges|payment_intents|customers)/(?P<id>[^/]+)", acts=False)
    def get_object(self, request, kind, id):
        return Answer(200, self._find_object(kind, id), self.own_headers())
