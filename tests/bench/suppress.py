#!/usr/bin/env python3
"""./dev bench suppress: how often a message that is new is taken for an old one, and how often an old one is missed.

A stream of messages whose truth is known: people who write distinct but similar things (the same template with another date or number, "Hi", "yes", the same
words as somebody else, questions that differ by one word), and real repetitions among them (delivered again, the same by another channel, a notification mail
that quotes a form). Everything goes through a real daemon; its verdicts are compared with the truth. Weeks of mail come within seconds, so the guard against
loops, which holds conversations that run away, is set aside.

  false suppression  a new message that was suppressed: nobody would have answered it
  held               a person has to look: new ones (needless work) and old ones (rightly doubted)
  missed             a repetition that was accepted: it would have been answered twice"""

import argparse
import collections
import json
import os
import random
import sys
import tempfile
import urllib.request
from email.message import EmailMessage

from servers import Semel

POLICY = """version: 1
sources:
  chat: {preset: json, verify: none, loop: 100000/10m, events: [{kind: message, delivery: "{id}", text: "{text}", identities: [{email: "{email}"}]}]}
  form: {preset: json, verify: none, loop: 100000/10m}
  mail: {preset: mail, verify: none, loop: 100000/10m}
"""
SHORT = ["Hi", "Hello", "yes", "ok", "Thanks!", "no thank you", "Tomorrow works", "👍", "call me", "any news?"]
TEMPLATES = [
    "Hello, I would like to book a table for {n} people on {day} at {hour} o'clock.",
    "Could you send me an offer for {n} square metres of {thing}, please?",
    "My order number is {big}. When will it arrive?",
    "Is the {thing} still available in size {n}?",
    "I cannot log in since {day}, the error code is {big}.",
    "Please cancel my appointment on {day} at {hour} and give me one on another day.",
]
THINGS = ["oak floor", "marble", "carpet", "linen", "slate", "cork"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def sentence(dice):
    return dice.choice(TEMPLATES).format(n=dice.randint(2, 90), day=dice.choice(DAYS), hour=dice.randint(8, 20), thing=dice.choice(THINGS), big=dice.randint(10000, 99999))


class Stream:
    """Deliveries (source, id, sender, text, what it repeats) in the order in which they come."""

    def __init__(self, seed, people):
        self.dice, self.said, self.next_id = random.Random(seed), collections.defaultdict(set), 0
        self.people = [f"person{i}@example.com" for i in range(people)]

    def new_text(self, person):
        """Something that this person has not said: a repetition by chance would be true."""
        for _ in range(50):
            kind = self.dice.random()
            if kind < 0.3:
                return "short", self.dice.choice(SHORT)
            text = sentence(self.dice)
            if kind < 0.5:
                text = "Hello, I would like to book a table for four people on Friday evening."  # as many others do
            if text not in self.said[person]:
                self.said[person].add(text)
                return "template" if kind >= 0.5 else "as others", text
        return "short", "Hi"

    def deliver(self, source, person, text, what, repeats=None, delivery=None):
        self.next_id += 1
        return {"source": source, "id": delivery or f"d{self.next_id}", "from": person, "text": text, "what": what, "repeats": repeats}

    def repetitions(self, first):
        kind = self.dice.random()
        if kind < 0.5:
            return self.deliver(first["source"], first["from"], first["text"], "delivered again", first["id"], first["id"])
        if len(first["text"].split()) < 5:
            return None
        if kind < 0.75:
            other = "form" if first["source"] == "chat" else "chat"
            return self.deliver(other, first["from"], first["text"], "by another channel", first["id"])
        return self.deliver("mail", first["from"], first["text"], "notification mail", first["id"])

    def make(self, count, share):
        out = []
        while len(out) < count:
            person = self.dice.choice(self.people)
            what, text = self.new_text(person)
            source = "chat" if what == "short" else self.dice.choice(["chat", "form"])  # a form gives no ids: the same few words twice are a double click
            first = self.deliver(source, person, text, what)
            out.append(first)
            if self.dice.random() < share and (again := self.repetitions(first)):
                out.append(again)
        return out


def notification(item):
    mail = EmailMessage()
    mail["From"] = "forms@builder.example"
    mail["Reply-To"] = item["from"]
    mail["To"] = "us@example.com"
    mail["Subject"] = "New submission"
    mail["Message-ID"] = f"<{item['id']}@builder.example>"
    mail.set_content(f"You have a new submission from your site.\n\nE-mail: {item['from']}\nMessage: {item['text']}\n\nAnswer this mail to reply.\n")
    return mail.as_bytes()


def post(semel, item):
    if item["source"] == "mail":
        body, kind = notification(item), "message/rfc822"
    else:
        body, kind = json.dumps({"id": item["id"], "email": item["from"], "text": item["text"]}).encode(), "application/json"
    request = urllib.request.Request(f"http://127.0.0.1:{semel.port}/in/{item['source']}", body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["events"][0]


def verdict_of(semel, event):
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{semel.port}/v1/events/{event}", timeout=30) as answer:
            got = json.load(answer)
        if got["verdict"] != "waiting":
            return got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10000)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--repeated", type=float, default=0.2, help="how many of them come again")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts, examples = collections.Counter(), []
    with tempfile.TemporaryDirectory() as directory:
        policy = os.path.join(directory, "semel.yaml")
        with open(policy, "w", encoding="utf-8") as f:
            f.write(POLICY)
        semel = Semel(os.environ["SEMEL_BINARY"], os.path.join(directory, "semel"))
        semel.policy = policy
        semel.start()
        try:
            for item in Stream(options.seed, options.people).make(options.messages, options.repeated):
                got = verdict_of(semel, post(semel, item))
                counts[(item["what"], item["repeats"] is not None, got["verdict"])] += 1
                if item["repeats"] is None and got["verdict"] == "suppressed" and len(examples) < 5:
                    examples.append((item, got["reason"]))
        finally:
            semel.stop()
    print(f"{'what':24}{'truth':>8}{'accepted':>10}{'suppressed':>12}{'held':>8}")
    for what, repeated in sorted({(what, repeated) for what, repeated, _ in counts}, key=lambda k: (k[1], k[0])):
        by = {v: counts[(what, repeated, v)] for v in ("accepted", "suppressed", "held")}
        print(f"{what:24}{'old' if repeated else 'new':>8}{by['accepted']:>10,}{by['suppressed']:>12,}{by['held']:>8,}")
    total = {(r, v): sum(n for (_, rr, vv), n in counts.items() if rr == r and vv == v) for r in (False, True) for v in ("accepted", "suppressed", "held")}
    new, old = sum(total[(False, v)] for v in ("accepted", "suppressed", "held")), sum(total[(True, v)] for v in ("accepted", "suppressed", "held"))
    print(f"\nfalse suppression {total[(False, 'suppressed')]} of {new:,} new ({100 * total[(False, 'suppressed')] / max(new, 1):.3f} %), held {total[(False, 'held')]};"
          f" missed {total[(True, 'accepted')]} of {old:,} repetitions ({100 * total[(True, 'accepted')] / max(old, 1):.3f} %), held {total[(True, 'held')]}")
    for item, reason in examples:
        print(f"  suppressed ({reason}): {item}", file=sys.stderr)


main()
