"""An OpenAI-like model: every completion is paid for and none is like another. `Idempotency-Key` is ignored. Plain and streamed (SSE).

The business reference is metadata.ref, else the last message of the user. The text names the number of the completion, so that a test can tell a
replay from a second call."""

import json

from .web import Answer, Refused, WebFake, route


class OpenAI(WebFake):
    name = "openai"

    def error(self, status, message, headers=(), code=None):
        kinds = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}
        body = {"message": message, "type": kinds.get(status, "server_error"), "param": None, "code": code or ("rate_limit_exceeded" if status == 429 else None)}
        return Answer(status, {"error": body}, headers)

    def _ref(self, asked):
        said = [message.get("content") for message in asked["messages"] if message.get("role") == "user"]
        last = said[-1] if said else "?"
        return (asked.get("metadata") or {}).get("ref") or (last if isinstance(last, str) else json.dumps(last))

    @route("POST", "(/v1)?/chat/completions", acts=True)
    def complete(self, request):
        asked = request.json()
        if not asked.get("model"):
            raise Refused(self.error(400, "you must provide a model parameter"))
        if not isinstance(asked.get("messages"), list) or not asked["messages"]:
            raise Refused(self.error(400, "'messages' must be a list with at least one message"))
        id, ref = self.next_id("chatcmpl-"), self._ref(asked)
        words = ["Completion", f"{self.last_id}", "about", *str(ref).split()[:12]]
        usage = {"prompt_tokens": len(request.body) // 4, "completion_tokens": len(words), "total_tokens": len(request.body) // 4 + len(words)}
        self.effect(request, "completion", ref, None, id, tokens=usage["total_tokens"], stream=bool(asked.get("stream")))
        shared = {"id": id, "created": int(self.now()), "model": asked["model"]}
        if asked.get("stream"):
            return self._stream(shared, words, usage, bool((asked.get("stream_options") or {}).get("include_usage")))
        message = {"role": "assistant", "content": " ".join(words), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return Answer(200, {**shared, "object": "chat.completion", "choices": [choice], "usage": usage}, [("x-request-id", self.next_id("req_"))])

    def _stream(self, shared, words, usage, with_usage):
        def event(choices, **more):
            return b"data: " + json.dumps({**shared, "object": "chat.completion.chunk", "choices": choices, **more}).encode() + b"\n\n"

        def choice(delta, reason=None):
            return [{"index": 0, "delta": delta, "finish_reason": reason}]

        events = [event(choice({"role": "assistant", "content": ""}))]
        events += [event(choice({"content": word if number == 0 else " " + word})) for number, word in enumerate(words)]
        events.append(event(choice({}, "stop")))
        if with_usage:
            events.append(event([], usage=usage))
        return Answer(200, events + [b"data: [DONE]\n\n"], [("x-request-id", self.next_id("req_"))], content_type="text/event-stream")
