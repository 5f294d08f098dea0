"""A small MCP server over HTTP that counts its effects and misbehaves as its tool's arguments say. Answers as JSON or as events."""

import http.server
import json
import threading
import time


class McpServer:
    def __init__(self, events=False):
        self.events, self.calls, self.requests, self.gate = events, [], [], threading.Event()
        self.session, self.ended, self.hung_up, self.answers, self.listens, self.taken = None, [], threading.Event(), {}, True, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((dict(self.headers), body))
                server.answer(self, json.loads(body))

            def do_DELETE(self):
                server.ended.append(self.headers["Mcp-Session-Id"])
                server.reply(self, 200, None)

            def do_GET(self):
                server.requests.append((dict(self.headers), b""))
                if not server.listens:
                    return server.reply(self, 404, None)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
                self.wfile.flush()
                server.gate.wait(120)
                self.close_connection = True

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def forget_sessions(self):
        """From now on a session has to be begun with initialize, and the one before is not known."""
        self.session = f"session-{len(self.requests)}"

    def sample(self, handler):
        """Asks the client something in the middle of a call; an answer is posted while the stream is open."""
        handler.wfile.write(b"data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"sampling/createMessage\",\"params\":{}}\n\n")
        handler.wfile.flush()
        until = time.monotonic() + 120
        while "s1" not in self.answers and time.monotonic() < until:
            time.sleep(0.01)
        return self.answers["s1"]

    def answer(self, handler, message):
        if self.session and message.get("method") != "initialize" and handler.headers["Mcp-Session-Id"] != self.session:
            return self.reply(handler, 404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
        if "method" not in message:
            self.answers[message["id"]] = message["result"]
            return self.reply(handler, 202, None)
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}
            return self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
        if "id" not in message:
            time.sleep(message.get("params", {}).get("sleep", 0))
            self.taken.append(message["method"])
            return self.reply(handler, 202, None)
        if message["method"] == "tools/list":
            tools = [{"name": "look", "annotations": {"readOnlyHint": True}}, {"name": "act"},
                     {"name": "routed", "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "Region"}}}}]
            return self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
        if message["method"] != "tools/call":
            return self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {}})
        given = message["params"].get("arguments", {})
        if given.get("status"):
            return self.reply(handler, given["status"], {"error": "as told"})
        self.calls.append(message["params"]["name"])
        number = len(self.calls)
        time.sleep(given.get("sleep", 0))
        if given.get("gate"):
            self.gate.wait(120)
        if given.get("watch"):
            handler.connection.settimeout(120)
            if handler.connection.recv(1) == b"":
                self.hung_up.set()
            handler.close_connection = True
            return None
        if given.get("half"):  # a stream that ends before the answer
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
            handler.close_connection = True
            return None
        if given.get("sample"):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            result = {"content": [{"type": "text", "text": self.sample(handler)["said"]}]}
            handler.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n\n")
            handler.close_connection = True
            return None
        if given.get("drop"):
            handler.close_connection = True
            handler.connection.close()
            return None
        result = {"content": [{"type": "text", "text": str(number)}], "isError": bool(given.get("bad"))}
        return self.reply(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def reply(self, handler, status, message):
        events = self.events and status == 200
        body = json.dumps(message, indent=None if self.events else 1).encode() if message is not None else b""
        if events:
            body = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\nid: 7\nevent: message\ndata: " + body + b"\n\n"
        handler.send_response(status)
        handler.send_header("Content-Type", "text/event-stream" if events else "application/json")
        handler.send_header("Mcp-Session-Id", self.session or "from-the-server")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stop(self):
        self.gate.set()
        self.http.shutdown()
        self.http.server_close()
