"""An agent that speaks MCP over HTTP, without an SDK."""
import http.client
import json


class Agent:
    """Posts one message at a time. The number of a request is its id."""

    def __init__(self, port, server="s", **headers):
        self.port, self.path, self.number = port, f"/mcp/{server}", 0
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}

    def post(self, body, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", self.path, body, {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}})
        self.answer = connection.getresponse()
        self.raw = self.answer.read()
        connection.close()
        if self.answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            return [json.loads(line[6:]) for line in self.raw.decode().splitlines() if line.startswith("data: ")][-1]
        return json.loads(self.raw) if self.raw else None

    def ask(self, method, params=None, **headers):
        self.number += 1
        found = self.post(json.dumps({"jsonrpc": "2.0", "id": f"{id(self)}-{self.number}", "method": method, **({"params": params} if params else {})}), **headers)
        if found and "jsonrpc" in found:
            assert found["id"] == f"{id(self)}-{self.number}", found
        return found

    def call(self, tool, arguments=None, headers=None, **params):
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **params}, **(headers or {}))


def text(answer):
    return answer["result"]["content"][0]["text"]


def replayed(answer):
    return answer["result"].get("_meta", {}).get("dev.semel/replayed", False)
