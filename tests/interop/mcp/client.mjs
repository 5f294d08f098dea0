// A real MCP client (SDK 1.x) that does what it is told: `node client.mjs '{"stdio":{…}|"url":…,"steps":[…]}'` prints one JSON list of outcomes.
//   {"list":true}                          listTools()
//   {"call":{name,arguments},"timeout":ms} callTool(); with "drop":true the connection is closed in the middle and opened again
//   {"together":[{call},{call}]}           both at once
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const plan = JSON.parse(process.argv[2]);

async function connect() {
  const client = new Client({ name: 'semel-test', version: '1' }, { capabilities: { sampling: {} } });
  const requestInit = { headers: plan.headers ?? {} };
  const transport = plan.url
    ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit, sessionId: plan.session })
    : new StdioClientTransport({ ...plan.stdio, env: { ...process.env, ...plan.stdio.env }, stderr: 'inherit' });
  await client.connect(transport);
  return client;
}

let client = await connect();

async function once(step) {
  try {
    return { ok: true, result: await client.callTool(step.call, undefined, { timeout: step.timeout ?? 60000 }) };
  } catch (error) {
    return { ok: false, code: error.code, message: error.message, data: error.data };
  }
}

const outcomes = [];
for (const step of plan.steps) {
  if (step.list) outcomes.push({ ok: true, tools: (await client.listTools()).tools.map((tool) => tool.name) });
  else if (step.together) outcomes.push(await Promise.all(step.together.map(once)));
  else outcomes.push(await once(step));
}
await client.close();
console.log(JSON.stringify(outcomes));
process.exit(0);
