"""A sink that takes anything: every POST, PUT, PATCH or DELETE at any path is an effect. With `keys` it deduplicates, and how is a choice.

- `carrier`: the header that has the key (default Idempotency-Key), or `body:<field>` of a JSON body.
- `compare`: what must be equal under one key: `bytes` (Telnyx), `json`, or `none` (Emailit). A difference is 422, a request that still runs 409.
- `saves`: which answers are remembered: `all`, or `success`.
- It can be asked: GET /seen?ref=… or ?key=… lists what happened, unless `askable` is false.

The business reference is the JSON field `ref`, else the header X-Ref, else the path."""

import json

from .keys import KeyedFake
from .web import Answer, route


class Generic(KeyedFake):
    name = "generic"

    def __init__(self, keys=False, carrier="Idempotency-Key", compare="bytes", saves="success", askable=True, index_lag=0.0, **options):
        self.keys, self.carrier, self.compare, self.askable, self.index_lag = keys, carrier, compare, askable, index_lag
        self.saves_errors = saves == "all"
        super().__init__(**options)

    def error(self, status, message, headers=()):
        return Answer(status, {"ok": False, "message": message}, headers)

    def presented_key(self, request):
        place, _, field = self.carrier.partition(":")
        found = self._object(request).get(field) if place == "body" and field else request.header(self.carrier)
        return found if isinstance(found, str) else None

    def key_of(self, request):
        return self.presented_key(request) if self.keys and request.method != "GET" else None

    def print_of(self, request):
        content = {"bytes": request.body, "json": json.dumps(request.json(), sort_keys=True), "none": b""}[self.compare]
        return (request.method, request.target, content)

    def key_is_bad(self, key):
        return self.error(400, f"a key has 1 to {self.key_max} characters")

    def key_is_for_something_else(self, entry):
        return self.error(422, "this key was used for something else")

    def key_is_in_use(self, entry):
        return self.error(409, "a request with this key is still running", [("Retry-After", "1")])

    def replayed(self, entry):
        return entry.answer.with_headers(("Idempotent-Replayed", "true"))

    def _object(self, request):
        return request.json() if isinstance(request.json(), dict) else {}

    @route("GET", "/seen", acts=False)
    def seen(self, request):
        if not self.askable:
            return self.error(404, "this one cannot be asked")
        query = request.query()
        found = [effect for effect in self.effects() if effect.at + self.index_lag <= self.now()]
        found = [effect for effect in found if query.get("ref", effect.ref) == effect.ref and query.get("key", effect.key) == effect.key]
        return Answer(200, {"total": len(found), "results": [{"id": effect.id, "ref": effect.ref, "key": effect.key} for effect in found]})

    @route("GET", "/.*", acts=False)
    def get(self, request):
        return Answer(200, {"ok": True})

    @route("*", "/.*", acts=True)
    def act(self, request):
        ref = self._object(request).get("ref") or request.header("X-Ref") or request.path
        id = self.next_id("gen_")
        self.effect(request, "call", ref, self.presented_key(request), id, method=request.method, path=request.path)
        return Answer(200, {"ok": True, "id": id, "ref": ref})


class GenericKeys(Generic):
    """The same with keys."""

    name = "generic-keys"

    def __init__(self, keys=True, **options):
        super().__init__(keys=keys, **options)
