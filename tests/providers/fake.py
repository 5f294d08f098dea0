"""What all fakes share: a thread with an event loop, a port that can go away and come back, the script of faults, a clock that can be moved, and
the record of requests and effects.

A fake counts effects, not calls: `effect()` is called exactly where the real provider would charge a card or send a mail. Everything runs in one
loop, so a fake has no races of its own."""

import asyncio
import collections
import json
import socket
import struct
import threading
import time

from . import ports

# What can be scripted. Steps are consumed in order, one for each request that would act (or, with on="read", one for each that only asks).
FAULTS = {
    "ok": "behave",
    "refuse_connect": "reset the connection before reading anything",
    "drop_before": "read the request, do nothing, close",
    "act_then_drop": "do it, close without an answer",
    "act_then_late": "do it, answer after some seconds (default 1, or when released); a key counts as in use meanwhile",
    "act_then_500": "do it, answer 500",
    "act_then_hang": "do it, never answer",
    "late_act": "read the request, do it after some seconds (default: when released) whether or not the client is still there, then answer",
    "500_before": "answer 500, do nothing",
    "truncate": "do it, cut the answer inside its body",
    "truncate_head": "do it, cut the answer inside its head",
    "429": "refuse with 429 and Retry-After (seconds, default 1), do nothing",
    "503_retry_after": "refuse with 503 and Retry-After (seconds, default 1), do nothing",
    "forget_keys": "forget all idempotency keys as if their time had passed, then behave",
    "bad_request": "refuse the request for good, do nothing",
    "hang": "read the request, do nothing, never answer",
    "slow_stream": "do it, send the answer in pieces over some seconds (default 1), or one half of it and the other when released",
}
WAIT_SECONDS = 120  # generous; nothing is measured


class Step:
    """One step of a script: a name, or `name:number`, or {"do": name, "seconds": …, "at": …}. For the cuts the number is the byte to cut at, for the
    others it is seconds; `release` instead of a number means: until `release()` is called."""

    def __init__(self, given, known):
        if isinstance(given, str):
            name, *rest = given.split(":")
            fields = ("where", "code") if name == "reply" else ("at",) if name.startswith("truncate") else ("seconds",)
            given = {"do": name, **dict(zip(fields, rest))}
        self.name = given["do"]
        if self.name not in known:
            raise ValueError(f"there is no fault {self.name!r}; there are: {', '.join(known)}")
        seconds = given.get("seconds")
        self.released = seconds == "release" or (seconds is None and self.name == "late_act")
        self.given_seconds = None if seconds in (None, "release") else float(seconds)
        self.at = int(given["at"]) if "at" in given else None
        self.where, self.code = given.get("where"), int(given.get("code", 0))  # only for SMTP

    @property
    def seconds(self):
        return 1.0 if self.given_seconds is None else self.given_seconds


OK = Step("ok", FAULTS)


class Effect:
    """Something that happened at the provider. `ref` is the business reference: what the thing is about in the user's words. `key` is the
    idempotency key (or nonce, sendId, Message-ID) that it was asked with."""

    def __init__(self, n, at, kind, ref, key, id, request, detail):
        self.n, self.at, self.kind, self.ref, self.key, self.id, self.request, self.detail = n, at, kind, ref, key, id, request, detail

    def as_json(self):
        return dict(vars(self))

    def __repr__(self):
        return f"<{self.kind} {self.ref} key={self.key} id={self.id} request={self.request}>"


def reset_on_close(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Records:
    """What a test asks a fake about. `remote.py` has the same over the control port, so that tests need not know where a fake runs."""

    def effects_by_ref(self, kind=None):
        """ref -> how often it happened."""
        return dict(collections.Counter(effect.ref for effect in self.effects(kind)))

    def wait(self, what, count, seconds=WAIT_SECONDS):
        """Waits until `what` (connections, requests, effects, answered, …: see counts()) has reached `count`."""
        end = time.monotonic() + seconds
        while self.counts()[what] < count:
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: waited {seconds} s in vain for {count} {what}: {self.counts()}")
            time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Fake(Records):
    """One provider. Subclasses give `name` and `_connection(reader, writer)`. In a test: `with Stripe().start() as stripe: …stripe.port…`."""

    name = None
    faults = FAULTS
    # What the control port lets others call.
    remote_calls = ("script", "pending", "effects", "requests", "counts", "forget_keys", "advance", "down", "up", "cut", "release", "reset")

    def __init__(self, token=None, journal=None):
        """`token`: when given, requests without this credential are refused. `journal`: a file to append every request and effect to."""
        self.token, self.port, self.control_port = token, None, None
        self.offset = 0.0
        self.journal = open(journal, "a", encoding="utf-8") if journal else None
        self.loop = self.server = self.control = self.thread = self.place = None
        self.open_writers = set()
        self.idle_writers = set()  # kept alive, no request under way
        self.reset()

    # Life

    def start(self, port=0, control_port=None):
        """Listens. `control_port` 0 or more opens the control port too."""
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), name=f"fake {self.name}", daemon=True)
        self.thread.start()
        ready.wait(WAIT_SECONDS)
        self.place = ports.reserve(port)  # so that nobody takes it while the fake is down
        self._call(self._listen(ports.number(self.place)))
        if control_port is not None:
            from .control import serve_control

            self.control = self._call(serve_control(self, control_port))
            self.control_port = self.control.sockets[0].getsockname()[1]
        return self

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(ready.set)
        self.loop.run_forever()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_SECONDS)

    async def _listen(self, port):
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=1 << 20, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        async def end():
            for server in (self.server, self.control):
                if server:
                    server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self.loop.call_soon(self.loop.stop)

        if self.thread and self.thread.is_alive():
            asyncio.run_coroutine_threadsafe(end(), self.loop)
            self.thread.join(WAIT_SECONDS)
            self.loop.close()
            self.place.close()
        if self.journal:
            self.journal.close()

    async def cut_(self):
        for writer in list(self.open_writers):
            writer.transport.abort()

    def cut(self):
        """Breaks the connections that there are. New ones are taken."""
        self._call(self.cut_())

    async def down_(self):
        self.server.close()
        await self.cut_()

    def down(self):
        """Goes away: connections break, new ones are really refused (ECONNREFUSED) until up()."""
        self._call(self.down_())

    async def up_(self):
        await self._listen(self.port)

    def up(self):
        self._call(self.up_())

    # Connections

    async def _accept(self, reader, writer):
        self.connections += 1
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._refuses_next():
            self._take("act")
            self.refused += 1
            self._note({"refused": self.connections})
            reset_on_close(writer)
            writer.transport.abort()
            return
        self.open_writers.add(writer)
        try:
            await self._connection(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open_writers.discard(writer)
            self.idle_writers.discard(writer)
            writer.close()

    async def _connection(self, reader, writer, number):
        raise NotImplementedError

    # The script

    def script(self, steps, on="act"):
        """Adds faults, consumed in order; afterwards the fake behaves. Raises ValueError on a name that does not exist."""
        self.scripts[on].extend([Step(step, self.faults) for step in steps])
        if self._refuses_next() and self.loop:
            self.loop.call_soon_threadsafe(self._close_idle)

    def pending(self, on="act"):
        """The steps that no request has consumed yet."""
        return [step.name for step in list(self.scripts[on])]

    def _take(self, on):
        return self.scripts[on].popleft() if self.scripts[on] else OK

    def _refuses_next(self):
        return bool(self.scripts["act"]) and self.scripts["act"][0].name == "refuse_connect"

    def _close_idle(self):
        """A kept connection would hide that new ones are refused."""
        for writer in list(self.idle_writers):
            writer.close()

    def release(self):
        """Lets everything go on that waits for it (`late_act`, `act_then_late:release`, `slow_stream:release`)."""
        self.loop.call_soon_threadsafe(self._release)

    def _release(self):
        waiting, self.held = self.held, []
        for event in waiting:
            event.set()

    async def _pause(self, step):
        if step.released:
            event = asyncio.Event()
            self.held.append(event)
            await event.wait()
        else:
            await asyncio.sleep(step.seconds)

    # Time

    def now(self):
        return time.time() + self.offset

    def advance(self, seconds):
        """Moves this provider's clock: keys age, indexes catch up. Nobody needs to sleep."""
        self.offset += seconds

    def forget_keys(self):
        """All keys are gone, as after their time. Fakes without keys have nothing to forget."""

    # The record

    def effect(self, request, kind, ref, key=None, id=None, **detail):
        made = Effect(len(self._effects) + 1, self.now(), kind, ref, key, id, request.n, detail)
        self._effects.append(made)
        request.effects.append(made.n)
        self._note({"effect": made.as_json()})
        return made

    def _note(self, entry):
        if self.journal and not self.journal.closed:
            self.journal.write(json.dumps(entry) + "\n")
            self.journal.flush()

    def effects(self, kind=None):
        return [effect for effect in list(self._effects) if kind is None or effect.kind == kind]

    def requests(self, since=0):
        return list(self._requests[since:])

    def counts(self):
        return {
            "connections": self.connections, "refused": self.refused, "broken": self.broken, "requests": len(self._requests),
            "answered": self.answered, "effects": len(self._effects), "held": len(self.held),
        }

    def reset(self):
        """Forgets everything that was recorded and scripted, and all objects. Not meant for while requests are under way."""
        self._requests, self._effects = [], []
        self.scripts = {"act": collections.deque(), "read": collections.deque()}
        self.connections = self.refused = self.broken = self.answered = 0
        self.held = []
        self.last_id = 0
        self.clear()

    def clear(self):
        """Subclasses empty their objects here."""

    def next_id(self, prefix="", width=6):
        self.last_id += 1
        return f"{prefix}{self.last_id:0{width}d}"
