"""A worker as a process of its own, which can be stopped and resumed: it claims, says `sent`, calls a provider, confirms, and obeys
the rules for holders: no act without an answer, no act after its own deadline, no time-out taken for a failure.

It writes one JSON line for each thing that it was told or did. Given the name of a step it stops itself there, as if the machine had
put it to sleep at that very moment. `trust_ms` is how long it relies on its lease, when that is not all of it.

    holder.py SEMEL_PORT PROVIDER_PORT '{"keys":[…],"workflow":"w","lease_ms":300,"trust_ms":300,"until":"FILE","seed":1,"stop_at":null}'

Until that file is there it works on whatever its colleagues work on: keys that come and go with the machine's clock."""

import http.client
import json
import os
import random
import signal
import sys
import time

KEYS_PER_SECOND = 60
CALM = 0.8  # of the lease, counted from before the claim was asked for


class Unanswered(Exception):
    """Nobody can tell whether it was carried out."""


def call(port, method, path, body, seconds):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    except (OSError, http.client.HTTPException) as problem:
        raise Unanswered(str(problem)) from problem
    finally:
        connection.close()


class Holder:
    def __init__(self, semel, provider, orders):
        self.semel, self.provider, self.orders = semel, provider, orders
        self.lease = orders.get("trust_ms", orders["lease_ms"]) / 1000
        self.random = random.Random(orders.get("seed", 0))

    def note(self, what, key, **more):
        print(json.dumps({"what": what, "key": key, "pid": os.getpid(), **more}), flush=True)

    def reach(self, step):
        if self.orders.get("stop_at") == step:
            os.kill(os.getpid(), signal.SIGSTOP)

    def say(self, what, key, held, **fields):
        """Repeats until there is an answer: every call is safe to repeat."""
        while True:
            try:
                status, answer = call(self.semel, "POST", f"/v1/claims/{held['intent']}/{what}", {"fence": held["fence"], **fields}, 5)
            except Unanswered:
                continue
            if status != 503:
                self.note(what, key, status=status, code=answer.get("code"), state=answer.get("state"), intent=held["intent"], fence=held["fence"])
                return status

    def one(self, key):
        asked = time.monotonic()
        two_phase = self.orders.get("two_phase", self.random.random() < 0.5)
        try:
            status, held = call(self.semel, "POST", "/v1/claims", {"workflow": self.orders["workflow"], "key": key, "two_phase": two_phase,
                                                                   "lease_ms": self.orders["lease_ms"]}, 5)
        except Unanswered:
            return
        self.note("claim", key, status=status, code=held.get("code"), intent=held.get("intent"), fence=held.get("fence"), result=held.get("result"))
        if status != 201:
            return
        self.reach("claimed")
        if two_phase and self.say("sent", key, held) != 200:
            return
        self.reach("sent")
        if time.monotonic() - asked > CALM * self.lease:
            self.note("too_late", key, fence=held["fence"])
            self.say("fail", key, held, effect="none", error="my lease was over before I acted")
            return
        self.reach("checked")
        self.act(key, held)

    def act(self, key, held):
        effect = {"key": held["downstream_key"], "name": key, "fence": held["fence"], "pid": os.getpid()}
        try:
            status, answer = call(self.provider, "POST", "/", effect, self.lease / 2)
        except Unanswered:
            self.say("fail", key, held, effect="unknown")
            return
        self.note("effect", key, status=status, number=answer["number"], fence=held["fence"])
        self.reach("acted")
        self.say("confirm", key, held, result=answer)

    def common_key(self):
        return f"k{int(time.monotonic() * KEYS_PER_SECOND) - self.random.randrange(KEYS_PER_SECOND)}"

    def run(self):
        for key in self.orders.get("keys", ()):
            self.one(key)
        while "until" in self.orders and not os.path.exists(self.orders["until"]):
            self.one(self.common_key())
        self.note("end", None)


if __name__ == "__main__":
    Holder(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])).run()
