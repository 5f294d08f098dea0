// An MCP server (2.x, both protocol eras) that counts its effects in the file COUNT. On stdin and stdout, or with PORT over HTTP.
import fs from 'node:fs';
import http from 'node:http';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { z } from 'zod';

const bump = (text) => {
  fs.appendFileSync(process.env.COUNT, `${text}\n`);
  return fs.readFileSync(process.env.COUNT, 'utf8').trim().split('\n').length;
};

function makeServer() {
  const server = new McpServer({ name: 'counter', version: '1' });
  const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
  server.registerTool('bump', { inputSchema: z.object({ tag: z.string(), ms: z.number().optional() }) }, async ({ tag, ms }) => {
    const count = bump(tag);
    await new Promise((done) => setTimeout(done, ms ?? 0));
    return text(count);
  });
  server.registerTool('fails', { inputSchema: z.object({ tag: z.string() }) }, async ({ tag }) => { bump(tag); throw new Error('as told'); });
  server.registerTool('peek', { inputSchema: z.object({}), annotations: { readOnlyHint: true } }, async () => text(bump('peek')));
  return server;
}

if (process.env.PORT === undefined)
  serveStdio(makeServer);
else
  http.createServer(toNodeHandler(createMcpHandler(makeServer))).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'));
