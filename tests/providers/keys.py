"""Idempotency keys as providers keep them: remembered for a time, compared with what they were first used for, in use while the first request works.

The danger is part of it: after its time a key is forgotten, and the same request acts again."""

from .web import WebFake


class Entry:
    def __init__(self, key, print_, at):
        self.key, self.print, self.at, self.answer = key, print_, at, None


class KeyedFake(WebFake):
    """Subclasses say where the key is (`key_of`), what is compared (`print_of`) and how they refuse; see the methods below."""

    key_max = 255

    def __init__(self, key_ttl=86400.0, **options):
        self.key_ttl = key_ttl
        super().__init__(**options)

    def clear(self):
        super().clear()
        self.entries = {}

    def forget_keys(self):
        self.entries = {key: entry for key, entry in self.entries.items() if entry.answer is None}

    # What a provider says in its own way

    def key_of(self, request):
        return request.header("Idempotency-Key") if request.method == "POST" else None

    def print_of(self, request):
        return (request.method, request.path, request.body)

    def replayed(self, entry):
        return entry.answer

    def key_is_bad(self, key):
        raise NotImplementedError

    def key_is_for_something_else(self, entry):
        raise NotImplementedError

    def key_is_in_use(self, entry):
        raise NotImplementedError

    # The work

    def open_key(self, request):
        key = self.key_of(request)
        if key is None:
            return None
        if not 0 < len(key) <= self.key_max:
            return self.key_is_bad(key)
        entry = self.entries.get(key)
        if entry and entry.answer is not None and self.now() - entry.at >= self.key_ttl:
            del self.entries[key]
            entry = None
        if entry is None:
            self.entries[key] = Entry(key, self.print_of(request), self.now())
            return self.entries[key]
        if entry.print != self.print_of(request):
            return self.key_is_for_something_else(entry)
        return self.replayed(entry) if entry.answer is not None else self.key_is_in_use(entry)

    def close_key(self, entry, answer):
        if entry is None:
            return
        if answer is None or not answer.saved:
            if self.entries.get(entry.key) is entry:
                del self.entries[entry.key]
        else:
            entry.answer = answer
