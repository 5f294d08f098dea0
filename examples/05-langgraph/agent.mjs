/* A graph whose node is retried, and a model that calls the same tool twice in one step. */
import assert from 'node:assert';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Annotation, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { current, once, onceTool } from '@semel/client';

const post = async (path, body) => {
    const response = await fetch(process.env.WORLD_URL + path, { method: 'POST', headers: { 'Idempotency-Key': current().key }, body: JSON.stringify(body) });
    return response.json();
};

/* ---- a node with a retry policy: the mail was sent, then something else failed ---- */

const sendFollowup = once(({ lead }) => post('/node', { lead }), { key: 'followup:{lead}:2026-11-16' });

let failures = 2;
async function followup({ lead }) {
    const mail = await sendFollowup({ lead });
    if (failures-- > 0) throw new Error('the CRM did not answer');
    return { mail };
}

const State = Annotation.Root({ lead: Annotation(), mail: Annotation() });
const graph = new StateGraph(State)
    .addNode('followup', followup, { retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false } })
    .addEdge('__start__', 'followup').addEdge('followup', '__end__').compile();
console.log('node, three attempts:', (await graph.invoke({ lead: 'L-1' })).mail);

/* ---- a tool that the model calls twice ---- */

const sendEmail = tool(async ({ to }) => JSON.stringify(await post('/tool', { to })),
    { name: 'send_email', description: 'Send an e-mail', schema: z.object({ to: z.string() }) });
const call = (id) => ({ id, type: 'tool_call', name: 'send_email', args: { to: 'jon@acme.io' } });
const tools = new ToolNode([onceTool(sendEmail, { key: 'email:{to}:2026-11-16' })]);
const { messages } = await tools.invoke({ messages: [new AIMessage({ content: '', tool_calls: [call('c1'), call('c2')] })] });
assert.strictEqual(messages[0].content, messages[1].content);
console.log('tool, two calls:', messages[0].content);
