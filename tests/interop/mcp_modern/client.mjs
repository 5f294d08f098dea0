// A real MCP client (2.x, protocol 2026-07-28) that does what it is told, as tests/interop/mcp/client.mjs; "mode" is its versionNegotiation mode.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const plan = JSON.parse(process.argv[2]);
const client = new Client({ name: 'semel-test', version: '1' }, { versionNegotiation: { mode: plan.mode ?? 'auto' } });
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: plan.headers ?? {} } })
  : new StdioClientTransport({ ...plan.stdio, env: { ...process.env, ...plan.stdio.env }, stderr: 'inherit' });
await client.connect(transport);

async function once(step) {
  try {
    return { ok: true, result: await client.callTool(step.call, { timeout: step.timeout ?? 60000 }) };
  } catch (error) {
    return { ok: false, code: error.code, message: error.message, data: error.data };
  }
}

const outcomes = [{ ok: true, protocol: client.getNegotiatedProtocolVersion?.() }];
for (const step of plan.steps) {
  if (step.list) outcomes.push({ ok: true, tools: (await client.listTools()).tools.map((tool) => tool.name) });
  else if (step.together) outcomes.push(await Promise.all(step.together.map(once)));
  else outcomes.push(await once(step));
}
await client.close();
console.log(JSON.stringify(outcomes));
process.exit(0);
