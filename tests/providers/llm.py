"""Models as OpenAI, Anthropic and Gemini offer them: every completion is paid for and none is like another. `Idempotency-Key` is ignored. Plain and
streamed (SSE). With `odd` a stream is cut into pieces that have nothing to do with its events, not even with its characters.

The business reference is metadata.ref, else the last message of the user. The text names the number of the completion, so that a test can tell a
replay from a second call."""

import itertools
import json

from .web import Answer, Refused, WebFake, route


def oddly(events, sizes=(1, 7, 3, 64, 2, 41)):
    """The same bytes in other pieces."""
    body, at, pieces = b"".join(events), 0, []
    for size in itertools.cycle(sizes):
        if at >= len(body):
            return pieces
        pieces.append(body[at : at + size])
        at += size


def named(kind, **fields):
    """An event that says its name twice, as Anthropic's and those of OpenAI's responses do."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


class Model(WebFake):
    def __init__(self, odd=False, **options):
        super().__init__(**options)
        self.odd = odd

    def sell(self, request, ref, asked, prefix):
        """One paid completion: its id, its words and its tokens."""
        id = self.next_id(prefix)
        words = ["Completion", f"{self.last_id}", "about", *str(ref).split()[:12], "é☃"]
        tokens = len(request.body) // 4, len(words)
        self.effect(request, "completion", ref, None, id, tokens=sum(tokens), stream=bool(asked.get("stream")))
        return id, words, tokens

    def stream(self, events):
        headers = [("x-request-id", self.next_id("req_"))]
        return Answer(200, oddly(events) if self.odd else events, headers, content_type="text/event-stream")


class OpenAI(Model):
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
        id, words, (went_in, came_out) = self.sell(request, self._ref(asked), asked, "chatcmpl-")
        usage = {"prompt_tokens": went_in, "completion_tokens": came_out, "total_tokens": went_in + came_out}
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
        return self.stream(events + [b"data: [DONE]\n\n"])

    @route("POST", "(/v1)?/responses", acts=True)
    def respond(self, request):
        asked = request.json()
        said = asked.get("input")
        last = said if isinstance(said, str) else said[-1]["content"]
        ref = (asked.get("metadata") or {}).get("ref") or (last if isinstance(last, str) else last[-1]["text"])
        id, words, (went_in, came_out) = self.sell(request, ref, asked, "resp_")
        part = {"type": "output_text", "text": " ".join(words), "annotations": []}
        item = {"type": "message", "id": f"msg_{id}", "status": "completed", "role": "assistant", "content": [part]}
        whole = {"id": id, "object": "response", "created_at": int(self.now()), "status": "completed", "model": asked.get("model"), "error": None,
                 "incomplete_details": None, "output": [item], "usage": {"input_tokens": went_in, "output_tokens": came_out, "total_tokens": went_in + came_out}}
        if not asked.get("stream"):
            return Answer(200, whole, [("x-request-id", self.next_id("req_"))])
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events = [named("response.created", response=begun),
                  named("response.output_item.added", output_index=0, item={**item, "status": "in_progress", "content": []}),
                  named("response.content_part.added", output_index=0, item_id=item["id"], content_index=0, part={**part, "text": ""})]
        events += [named("response.output_text.delta", output_index=0, item_id=item["id"], content_index=0, delta=("" if n == 0 else " ") + word) for n, word in enumerate(words)]
        events += [named("response.output_item.done", output_index=0, item=item), named("response.completed", response=whole)]
        return self.stream(events)

    @route("POST", "(/v1)?/embeddings", acts=True)
    def embed(self, request):
        asked = request.json()
        id, _, (went_in, _) = self.sell(request, asked["input"], asked, "emb_")
        vector = {"object": "embedding", "index": 0, "embedding": [0.25, self.last_id + 0.5]}
        return Answer(200, {"object": "list", "data": [vector], "model": asked.get("model"), "usage": {"prompt_tokens": went_in, "total_tokens": went_in}})

    @route("GET", "(/v1)?/models", acts=False)
    def models(self, request):
        return Answer(200, {"object": "list", "data": [{"id": "gpt-test", "object": "model"}]})


class Anthropic(Model):
    name = "anthropic"

    def error(self, status, message, headers=()):
        kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return Answer(status, {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}, headers)

    def credential_of(self, request):
        return request.header("x-api-key") or request.header("Authorization", "")

    @route("POST", "/v1/messages", acts=True)
    def message(self, request):
        asked = request.json()
        if not asked.get("max_tokens") or not asked.get("messages"):
            raise Refused(self.error(400, "messages and max_tokens: field required"))
        last = asked["messages"][-1]["content"]
        id, words, (went_in, came_out) = self.sell(request, last if isinstance(last, str) else last[-1]["text"], asked, "msg_")
        shared = {"id": id, "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
        if not asked.get("stream"):
            content = [{"type": "text", "text": " ".join(words)}]
            return Answer(200, {**shared, "content": content, "stop_reason": "end_turn", "usage": {"input_tokens": went_in, "output_tokens": came_out}})
        events = [named("message_start", message={**shared, "content": [], "stop_reason": None, "usage": {"input_tokens": went_in, "output_tokens": 1}}),
                  named("content_block_start", index=0, content_block={"type": "text", "text": ""}), named("ping")]
        events += [named("content_block_delta", index=0, delta={"type": "text_delta", "text": ("" if n == 0 else " ") + word}) for n, word in enumerate(words)]
        events += [named("content_block_stop", index=0), named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": came_out})]
        return self.stream(events + [named("message_stop")])


class Gemini(Model):
    name = "gemini"

    def credential_of(self, request):
        return request.header("x-goog-api-key") or request.query().get("key", "")

    @route("POST", "/v1(beta)?/models/[^/]+:generateContent", acts=True)
    def generate(self, request):
        return Answer(200, self._parts(request)[-1])

    @route("POST", "/v1(beta)?/models/[^/]+:streamGenerateContent", acts=True)
    def generate_stream(self, request):
        parts = [json.dumps(part, ensure_ascii=False) for part in self._parts(request)]
        if request.query().get("alt") == "sse":
            return self.stream([f"data: {part}\r\n\r\n".encode() for part in parts])
        pieces = [("[" if n == 0 else ",\r\n").encode() + part.encode() for n, part in enumerate(parts)] + [b"]"]
        return Answer(200, oddly(pieces) if self.odd else pieces)

    def _parts(self, request):
        asked = request.json()
        id, words, (went_in, came_out) = self.sell(request, asked["contents"][-1]["parts"][0]["text"], asked, "g")
        made = [{"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}, "index": 0}], "responseId": id} for word in words]
        made[-1]["candidates"][0]["finishReason"] = "STOP"
        made[-1]["usageMetadata"] = {"promptTokenCount": went_in, "candidatesTokenCount": came_out}
        return made
