// An MCP server (SDK 1.x) that counts its effects in the file COUNT. On stdin and stdout, or with PORT over HTTP.
import fs from 'node:fs';
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const bump = (text) => {
  fs.appendFileSync(process.env.COUNT, `${text}\n`);
  return fs.readFileSync(process.env.COUNT, 'utf8').trim().split('\n').length;
};

function makeServer() {
  const server = new McpServer({ name: 'counter', version: '1' });
  const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
  server.registerTool('bump', { inputSchema: { tag: z.string(), ms: z.number().optional() } }, async ({ tag, ms }, extra) => {
    const count = bump(tag);
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined)
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } });
    await new Promise((done) => setTimeout(done, ms ?? 0));
    return text(count);
  });
  server.registerTool('fails', { inputSchema: { tag: z.string() } }, async ({ tag }) => { bump(tag); throw new Error('as told'); });
  server.registerTool('peek', { annotations: { readOnlyHint: true } }, async () => text(bump('peek')));
  return server;
}

if (process.env.PORT === undefined) {
  await makeServer().connect(new StdioServerTransport());
} else {
  const sessions = {};
  const body = async (request) => { let all = ''; for await (const piece of request) all += piece; return all ? JSON.parse(all) : undefined; };
  http.createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = id && sessions[id];
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: process.env.JSON_ANSWERS === '1',
        onsessioninitialized: (made) => { sessions[made] = transport; },
      });
      await makeServer().connect(transport);
    }
    await transport.handleRequest(request, response, request.method === 'POST' ? await body(request) : undefined);
  }).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'));
}
