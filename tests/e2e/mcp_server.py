"""A small MCP server on stdin and stdout that counts its effects in a file. Arguments say how it misbehaves."""
import json
import os
import sys
import threading
import time

COUNT = os.environ["COUNT"]
LOCK = threading.Lock()
ANSWERS = {}
TOOLS = [
    {"name": "look", "annotations": {"readOnlyHint": True}},
    {"name": "put", "annotations": {"idempotentHint": True}},
    {"name": "act"},
    {"name": "routed", "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "Region"}}}},
]


def say(message):
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def effects():
    return len(open(COUNT).read().splitlines()) if os.path.exists(COUNT) else 0


def call(message):
    name, given = message["params"]["name"], message["params"].get("arguments", {})
    with LOCK:
        with open(COUNT, "a") as file:
            file.write(f"{name} {given.get('tag', '')}\n")
        number = effects()
    if "progressToken" in message["params"].get("_meta", {}):
        say({"method": "notifications/progress", "params": {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1}})
    if given.get("log"):
        say({"method": "notifications/message", "params": {"level": "info", "data": given["log"]}})
    time.sleep(given.get("sleep", 0))
    if given.get("question"):  # always the same id, as if nobody else asked anything
        say({"id": 1, "method": "elicitation/create", "params": {"message": given["question"]}})
        while 1 not in ANSWERS:
            time.sleep(0.01)
        number = ANSWERS.pop(1)
    if given.get("gate"):
        while not os.path.exists(given["gate"]):
            time.sleep(0.01)
    if given.get("die") and not os.path.exists(COUNT + ".died"):
        open(COUNT + ".died", "w").close()
        os._exit(3)
    if given.get("code"):
        say({"id": message["id"], "error": {"code": given["code"], "message": "as told"}})
        return
    if name == "who":
        number = json.dumps({"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)})
    result = {"content": [{"type": "text", "text": f"{name} {number}"}]}
    if given.get("bad"):
        result["isError"] = True
    if given.get("ask") and "inputResponses" not in message["params"]:
        result = {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}
    if given.get("large"):
        result["content"][0]["text"] = "x" * given["large"]
    say({"id": message["id"], "result": result})


def main():
    print("this line is no message", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            say({"id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}})
        elif method == "tools/list":
            say({"id": message["id"], "result": {"tools": TOOLS}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(message,), daemon=True).start()
        elif method == "notifications/cancelled":
            with open(COUNT + ".cancelled", "a") as file:
                file.write(f"{message['params']['requestId']}\n")
            say({"method": "notifications/seen", "params": {"line": line}})
        elif method is None and "result" in message:
            ANSWERS[message["id"]] = json.dumps(message["result"])
        elif method == "echo":  # what arrived, as bytes
            say({"id": message["id"], "result": {"line": line}})
        elif "id" in message and method:
            say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        elif method:
            say({"method": "notifications/seen", "params": {"line": line}})


main()
