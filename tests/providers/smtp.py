"""A mail server that keeps what it is given and forgets nothing: the same Message-ID twice is two mails, as for most receivers.

One effect for each recipient that was accepted; its key is the Message-ID. The business reference is the header X-Ref, else "recipient: subject". The script is
consumed per transaction (at MAIL), `refuse_connect` per connection. Beside the common faults: `reply:WHERE:CODE` answers CODE at MAIL, RCPT, DATA or
DOT without an effect (for RCPT: to the first recipient only), `drop_in_data` closes before the final dot was read."""

import asyncio
import base64
import collections
import email.parser
import email.policy

from .fake import FAULTS, OK, Fake

HELD_UNTIL_DOT = {"drop_before", "hang", "500_before"}
REPLIES = {"429": ("MAIL", 451), "503_retry_after": ("MAIL", 421), "bad_request": ("RCPT", 550)}
TEXTS = {
    250: "2.0.0 Ok", 354: "End data with <CR><LF>.<CR><LF>", 421: "4.3.2 Service not available", 450: "4.2.1 Mailbox unavailable, try later",
    451: "4.3.0 Local error, try later", 452: "4.2.2 Mailbox full", 550: "5.1.1 No such user here", 552: "5.3.4 Message too big", 554: "5.3.0 Transaction failed",
}
DATA_MAX = 1 << 25


class Transaction:
    """One mail as it came: `data` is the message without the dots of transparency, `raw` every byte of the conversation from MAIL on."""

    def __init__(self, connection, at, sender):
        self.n, self.connection, self.at, self.sender = None, connection, at, sender
        self.recipients, self.data, self.raw = [], b"", b""
        self.step, self.status, self.sent, self.complete, self.effects = "ok", None, 0, False, []

    @property
    def body(self):
        return self.data

    def headers(self):
        return email.parser.BytesHeaderParser(policy=email.policy.default).parsebytes(self.data)

    def as_json(self):
        kept = {name: value for name, value in vars(self).items() if name not in ("data", "raw")}
        return dict(kept, data_b64=base64.b64encode(self.data).decode(), raw_b64=base64.b64encode(self.raw).decode())

    @classmethod
    def from_json(cls, data):
        made = cls(data["connection"], data["at"], data["sender"])
        made.data, made.raw = base64.b64decode(data["data_b64"]), base64.b64decode(data["raw_b64"])
        for name in ("n", "recipients", "step", "status", "sent", "complete", "effects"):
            setattr(made, name, data[name])
        return made


class Smtp(Fake):
    name = "smtp"
    faults = dict(FAULTS, reply="reply:WHERE:CODE answers CODE at MAIL, RCPT, DATA or DOT, no effect", drop_in_data="close before the final dot was read")
    remote_calls = Fake.remote_calls + ("by_message_id", "by_recipient")

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.port}"

    def by_message_id(self):
        """Message-ID -> how many mails (not recipients) came with it."""
        mails = {(effect.key, effect.request) for effect in self.effects()}
        return dict(collections.Counter(key for key, _ in mails))

    def by_recipient(self):
        return dict(collections.Counter(effect.detail["to"] for effect in self.effects()))

    # The conversation

    async def _connection(self, reader, writer, number):
        session = Session(self, reader, writer, number)
        await session.say(220, "fake ESMTP")
        while await session.command():
            pass

    def next_step(self):
        return self._take("act")

    def record(self, mail, status):
        """A transaction is on record when it is decided: at the final dot, or where it was refused."""
        if mail.n is None:
            mail.n, mail.status = len(self._requests) + 1, status
            self._requests.append(mail)
            self._note({"request": mail.as_json()})

    async def keep(self, mail, step):
        """The effect. A mail that was taken is a mail, whatever is answered."""
        if step.name == "late_act":
            await self._pause(step)
        headers = mail.headers()
        key = str(headers.get("Message-ID", "")).strip() or None
        for recipient in mail.recipients:
            ref = headers.get("X-Ref") or f"{recipient}: {headers.get('Subject', '')}"
            self.effect(mail, "mail", str(ref), key, self.next_id("mail_"), to=recipient, sender=mail.sender)
        if step.name == "act_then_late":
            await self._pause(step)


class Session:
    def __init__(self, fake, reader, writer, number):
        self.fake, self.reader, self.writer, self.number = fake, reader, writer, number
        self.mail = self.step = None
        self.authorised = fake.token is None

    async def say(self, code, text=None):
        self.writer.write(f"{code} {text or TEXTS.get(code, 'Ok')}\r\n".encode())
        await self.writer.drain()
        return True

    async def line(self):
        line = await self.reader.readuntil(b"\r\n")
        if self.mail:
            self.mail.raw += line
        return line

    async def command(self):
        """One command; False at the end of the connection."""
        line = await self.line()
        verb, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
        handler = getattr(self, "do_" + verb.lower(), None) if verb.isalpha() else None
        if handler is None:
            return await self.say(502, "5.5.2 Command not recognized")
        return await handler(rest, line)

    async def do_ehlo(self, rest, line):
        words = ["fake", "PIPELINING", f"SIZE {DATA_MAX}", "8BITMIME", "ENHANCEDSTATUSCODES", "SMTPUTF8", "AUTH PLAIN LOGIN"]
        self.writer.write("".join(f"250{' ' if word is words[-1] else '-'}{word}\r\n" for word in words).encode())
        return True

    async def do_helo(self, rest, line):
        return await self.say(250, "fake")

    async def do_noop(self, rest, line):
        return await self.say(250)

    async def do_rset(self, rest, line):
        self.mail = None
        return await self.say(250)

    async def do_quit(self, rest, line):
        await self.say(221, "2.0.0 Bye")
        return False

    async def do_auth(self, rest, line):
        kind, _, given = rest.partition(" ")
        answers = [given] if given else []
        while len(answers) < (1 if kind.upper() == "PLAIN" else 2):
            await self.say(334, "VXNlcm5hbWU6" if kind.upper() == "LOGIN" and not answers else "UGFzc3dvcmQ6")
            answers.append((await self.line()).decode().strip())
        presented = base64.b64decode(answers[-1]).decode("utf-8", "replace").split("\0")[-1]
        self.authorised = self.fake.token in (None, presented)
        return await self.say(235, "2.7.0 Authentication successful") if self.authorised else await self.say(535, "5.7.8 Authentication failed")

    async def do_mail(self, rest, line):
        if not self.authorised:
            return await self.say(530, "5.7.0 Authentication required")
        self.step = self.fake.next_step()
        if self.step.name == "forget_keys":
            self.fake.forget_keys()
        sender = rest.partition(":")[2].strip().split(" ")[0].strip("<>")
        self.mail = Transaction(self.number, self.fake.now(), sender)
        self.mail.step, self.mail.raw = self.step.name, line
        if await self.refused("MAIL"):
            self.mail = None
            return True
        return await self.say(250)

    async def refused(self, where):
        """Answers as the script says for this place, once; False when it says nothing here."""
        place, code = (self.step.where, self.step.code) if self.step.name == "reply" else REPLIES.get(self.step.name, (None, None))
        if place != where:
            return False
        self.step = OK
        self.fake.record(self.mail, code)
        await self.say(code)
        if code == 421:
            raise ConnectionAbortedError("421 ends the connection")
        return True

    async def do_rcpt(self, rest, line):
        if not self.mail:
            return await self.say(503, "5.5.1 MAIL first")
        if await self.refused("RCPT"):
            return True
        self.mail.recipients.append(rest.partition(":")[2].strip().split(" ")[0].strip("<>"))
        return await self.say(250)

    async def do_data(self, rest, line):
        if not self.mail or not self.mail.recipients:
            return await self.say(503 if not self.mail else 554, "5.5.1 No valid recipients")
        if await self.refused("DATA"):
            return True
        await self.say(354)
        lines = []
        while True:
            line = await self.line()
            if self.step.name == "drop_in_data":
                self.fake.record(self.mail, None)
                return False
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b".") else line)
        self.mail.data = b"".join(lines)
        return await self.dot()

    async def dot(self):
        if await self.refused("DOT"):
            self.mail = None
            return True
        mail, step, fake = self.mail, self.step, self.fake
        self.mail = None
        fake.record(mail, None)
        if step.name not in HELD_UNTIL_DOT:
            await fake.keep(mail, step)
        if step.name in ("hang", "act_then_hang"):
            while await self.reader.read(65536):
                pass
            return False
        if step.name in ("drop_before", "act_then_drop"):
            return False
        return await self.answer(mail, step)

    async def answer(self, mail, step):
        mail.status = 451 if step.name in ("500_before", "act_then_500") else 250
        reply = f"{mail.status} {TEXTS[mail.status]}\r\n".encode()
        if step.name.startswith("truncate"):
            self.writer.write(reply[: step.at or (1 if step.name == "truncate_head" else 6)])
            await self.writer.drain()
            return False
        for byte in reply if step.name == "slow_stream" else ():
            await asyncio.sleep(step.seconds / len(reply))
            self.writer.write(bytes([byte]))
            await self.writer.drain()
        if step.name != "slow_stream":
            self.writer.write(reply)
            await self.writer.drain()
        mail.sent, mail.complete = len(reply), True
        self.fake.answered += 1
        return True
