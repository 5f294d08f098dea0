"""Three ways to reach people: Slack answers 200 to everything, Twilio takes no key for messages, Discord remembers a nonce for a few minutes.

The business reference is what the sender planted (Slack: metadata.event_payload.ref), else "where: text"."""

import datetime
import email.utils
import json
import re

from .fake import FAULTS
from .web import Answer, Refused, WebFake, route


class Slack(WebFake):
    """`chat.postMessage` posts every time; `client_msg_id` and `Idempotency-Key` are ignored. Errors are HTTP 200 with "ok": false, except 429.
    `conversations.history` shows messages, newest first, with their metadata when `include_all_metadata` is set. `act_then_fatal` is Slack's own trap: the message
    was posted and the answer is 200, ok false, fatal_error ("it's possible some aspect of the operation succeeded")."""

    name = "slack"
    faults = dict(FAULTS, act_then_fatal="do it, answer 200 with ok false and fatal_error")
    missing = "C0MISSING"  # a channel that does not exist

    def clear(self):
        super().clear()
        self.messages = {}
        self.last_ts = 0

    def error(self, status, message, headers=()):
        names = {400: "invalid_arguments", 401: "invalid_auth", 404: "unknown_method", 429: "ratelimited"}
        return Answer(200 if status < 500 and status != 429 else status, {"ok": False, "error": names.get(status, "internal_error")}, headers)

    def credential_of(self, request):
        return request.header("Authorization") or str(self._fields(request).get("token", ""))

    def _fields(self, request):
        fields = request.fields() if request.body else request.query()
        return fields if isinstance(fields, dict) else {}

    def _refuse(self, name):
        raise Refused(Answer(200, {"ok": False, "error": name}))

    def _channel(self, fields):
        channel = fields.get("channel")
        if not channel or channel == self.missing:
            self._refuse("channel_not_found")
        return channel

    def _structured(self, value):
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return self._refuse("invalid_metadata_format")

    def _ts(self):
        """Unique within the workspace, and growing."""
        self.last_ts = max(self.last_ts + 1, int(self.now() * 1000000))
        return f"{self.last_ts // 1000000}.{self.last_ts % 1000000:06d}"

    @route("POST", "/api/chat.postMessage", acts=True)
    def post_message(self, request):
        fields = self._fields(request)
        channel = self._channel(fields)
        if not any(fields.get(name) for name in ("text", "blocks", "attachments")):
            self._refuse("no_text")
        metadata = self._structured(fields.get("metadata"))
        message = {"type": "message", "bot_id": "B0SEMEL", "user": "U0SEMEL", "text": fields.get("text", ""), "ts": self._ts()}
        if metadata:
            message["metadata"] = metadata
        if fields.get("thread_ts"):
            message["thread_ts"] = fields["thread_ts"]
        self.messages.setdefault(channel, []).append(message)
        ref = ((metadata or {}).get("event_payload") or {}).get("ref") or f"{channel}: {message['text']}"
        self.effect(request, "message", ref, None, message["ts"], channel=channel, text=message["text"])
        return Answer(200, {"ok": True, "channel": channel, "ts": message["ts"], "message": message})

    def after_act(self, request, answer, step):
        return Answer(200, {"ok": False, "error": "fatal_error"}) if step.name == "act_then_fatal" else answer

    @route("POST", "/api/chat.update", acts=True)
    def update(self, request):
        fields = self._fields(request)
        for message in self.messages.get(self._channel(fields), []):
            if message["ts"] == fields.get("ts"):
                message["text"] = fields.get("text", message["text"])
                self.effect(request, "update", f"{fields['channel']}: {fields['ts']}", None, message["ts"])
                return Answer(200, {"ok": True, "channel": fields["channel"], "ts": message["ts"], "text": message["text"]})
        return self._refuse("message_not_found")

    @route("*", "/api/conversations.history", acts=False)
    def history(self, request):
        fields = {**request.query(), **self._fields(request)}
        channel, inclusive = self._channel(fields), str(fields.get("inclusive", "")).lower() in ("1", "true")
        oldest, latest = float(fields.get("oldest") or 0), float(fields.get("latest") or "inf")
        found = [message for message in reversed(self.messages.get(channel, [])) if self._within(float(message["ts"]), oldest, latest, inclusive)]
        start, limit = int(fields.get("cursor") or 0), int(fields.get("limit") or 100)
        if str(fields.get("include_all_metadata", "")).lower() not in ("1", "true"):
            found = [{name: value for name, value in message.items() if name != "metadata"} for message in found]
        more = start + limit < len(found)
        page = {"ok": True, "messages": found[start : start + limit], "has_more": more}
        return Answer(200, dict(page, response_metadata={"next_cursor": str(start + limit) if more else ""}))

    def _within(self, ts, oldest, latest, inclusive):
        return oldest <= ts <= latest if inclusive else oldest < ts < latest

    @route("*", "/api/auth.test", acts=False)
    def auth_test(self, request):
        return Answer(200, {"ok": True, "url": self.url, "team": "semel", "user": "semel", "team_id": "T0SEMEL", "user_id": "U0SEMEL", "bot_id": "B0SEMEL"})


class Twilio(WebFake):
    """Programmable Messaging: form bodies, no idempotency key for messages, 201. It can be asked: the list by To, From and DateSent (a day)."""

    name = "twilio"
    place = "/2010-04-01/Accounts/(?P<account>[^/]+)/Messages"

    def clear(self):
        super().clear()
        self.sent = []

    def error(self, status, message, headers=(), code=None):
        codes = {401: 20003, 404: 20404, 429: 20429, 500: 20500, 503: 20503}
        code = code or codes.get(status, 21211)
        return Answer(status, {"code": code, "message": message, "more_info": f"errors/{code}", "status": status}, headers)

    @route("POST", place + r"\.json", acts=True)
    def create(self, request, account):
        form = request.form()
        if not form.get("To"):
            raise Refused(self.error(400, "A 'To' phone number is required.", code=21604))
        if not re.fullmatch(r"(whatsapp:)?\+[1-9][0-9]{6,14}", form["To"]):
            raise Refused(self.error(400, f"Invalid 'To' Phone Number: {form['To']}", code=21211))
        if not form.get("From") and not form.get("MessagingServiceSid"):
            raise Refused(self.error(400, "A 'From' phone number is required.", code=21603))
        if not form.get("Body"):
            raise Refused(self.error(400, "Message body is required.", code=21602))
        sid, day = f"SM{int(self.next_id()):032x}", datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc)
        made = {
            "sid": sid, "account_sid": account, "to": form["To"], "from": form.get("From"), "messaging_service_sid": form.get("MessagingServiceSid"),
            "body": form["Body"], "status": "queued", "direction": "outbound-api", "num_segments": "1", "error_code": None, "error_message": None,
            "date_created": email.utils.format_datetime(day), "date_sent": email.utils.format_datetime(day),
            "uri": f"/2010-04-01/Accounts/{account}/Messages/{sid}.json",
        }
        self.sent.append((day, made))
        self.effect(request, "sms", f"{made['to']}: {made['body']}", None, sid, to=made["to"])
        return Answer(201, made)

    @route("GET", place + r"\.json", acts=False)
    def list(self, request, account):
        query = request.query()
        found = [made for day, made in reversed(self.sent) if self._matches(day.date().isoformat(), made, query)]
        size, page = int(query.get("PageSize", "50")), int(query.get("Page", "0"))
        part, more = found[page * size : (page + 1) * size], len(found) > (page + 1) * size
        following = f"{request.path}?PageSize={size}&Page={page + 1}" if more else None
        return Answer(200, {"messages": part, "page": page, "page_size": size, "uri": request.target, "next_page_uri": following})

    def _matches(self, day, made, query):
        return (
            query.get("To", made["to"]) == made["to"] and query.get("From", made["from"]) == made["from"]
            and query.get("DateSent", day) == day and query.get("DateSent>", "") <= day <= query.get("DateSent<", "9")
        )

    @route("GET", place + r"/(?P<sid>SM[0-9a-f]+)\.json", acts=False)
    def get(self, request, account, sid):
        for _, made in self.sent:
            if made["sid"] == sid:
                return Answer(200, dict(made, status="delivered"))
        raise Refused(self.error(404, "The requested resource was not found"))


class Discord(WebFake):
    """Messages in a channel. With `enforce_nonce` a nonce that the same author used in the past `nonce_ttl` seconds ("a few minutes") gives back that
    message, whatever the new content says. A nonce alone does nothing. The business reference is "channel: content"."""

    name = "discord"
    place = r"/api(/v\d+)?/channels/(?P<channel>\d+)/messages"

    def __init__(self, nonce_ttl=180.0, **options):
        self.nonce_ttl = nonce_ttl
        super().__init__(**options)

    def clear(self):
        super().clear()
        self.messages, self.nonces = {}, {}

    def forget_keys(self):
        self.nonces = {}

    def error(self, status, message, headers=(), code=None):
        body = {"message": message, "code": code or {401: 0, 404: 10003, 400: 50035}.get(status, 0)}
        if status == 429:
            body = {"message": "You are being rate limited.", "retry_after": float(dict(headers).get("Retry-After", 1)), "global": False}
        return Answer(status, body, headers)

    @route("POST", place, acts=True)
    def create(self, request, channel):
        fields = request.json()
        if not any(fields.get(name) for name in ("content", "embeds", "sticker_ids", "components", "poll")):
            raise Refused(self.error(400, "Cannot send an empty message", code=50006))
        nonce = fields.get("nonce")
        if nonce is not None and len(str(nonce)) > 25:
            raise Refused(self.error(400, "Invalid Form Body: nonce must be 25 or fewer in length.", code=50035))
        name = (self.credential_of(request), str(nonce))
        if nonce is not None and fields.get("enforce_nonce") and name in self.nonces:
            at, there = self.nonces[name]
            if self.now() - at < self.nonce_ttl:
                return Answer(200, there)
        made = self._post(request, channel, fields.get("content", ""), nonce)
        if nonce is not None:
            self.nonces[name] = (self.now(), made)
        return Answer(200, made)

    def _post(self, request, channel, content, nonce):
        id = str(1300000000000000000 + int(self.next_id()))
        when = datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc).isoformat()
        made = {"id": id, "channel_id": channel, "content": content, "timestamp": when, "author": {"id": "1", "username": "semel", "bot": True}, "type": 0}
        if nonce is not None:
            made["nonce"] = nonce
        self.messages.setdefault(channel, []).append(made)
        self.effect(request, "message", f"{channel}: {content}", nonce if nonce is None else str(nonce), id, channel=channel)
        return made

    @route("GET", place, acts=False)
    def history(self, request, channel):
        query = request.query()
        found = [made for made in reversed(self.messages.get(channel, [])) if int(query.get("after", 0)) < int(made["id"]) < int(query.get("before", 1 << 63))]
        return Answer(200, found[: int(query.get("limit", "50"))])
