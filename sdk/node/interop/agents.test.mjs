/* Real agent frameworks, with and without semel. Without it there has to be more than one effect, or the test shows nothing. */
import assert from 'node:assert';
import { after, before, test } from 'node:test';
import { AIMessage } from '@langchain/core/messages';
import { RunnableLambda } from '@langchain/core/runnables';
import { DynamicStructuredTool, StructuredTool, tool as langTool } from '@langchain/core/tools';
import { Annotation, MemorySaver, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { generateText, stepCountIs, streamText, tool as aiTool } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { z } from 'zod';
import { OutcomeUnknown, Semel, onceTool } from '@semel/client';
import daemons from '../test/daemon.js';

let daemon, semel;
before(async () => {
    daemon = await new daemons.Daemon().start();
    semel = new Semel({ url: daemon.url });
});
after(() => daemon.end());

/** Runs a story without and with semel; `story(wrap)` returns how many effects there were. */
async function both(story, without) {
    assert.strictEqual(await story(false), without, 'without semel');
    assert.strictEqual(await story(true), 1, 'with semel');
}

/* ---- LangGraph ---- */

const State = Annotation.Root({ lead: Annotation(), message: Annotation() });

function graphOf(node, retryPolicy) {
    return new StateGraph(State).addNode('followup', node, { retryPolicy }).addEdge('__start__', 'followup').addEdge('followup', '__end__').compile();
}

test('LangGraph retries a node three times: one mail', () => both(async (wrap) => {
    let mails = 0, attempts = 0;
    const mail = async ({ lead }) => ({ message: `m-${++mails} to ${lead}` });
    const send = wrap ? semel.once(mail, { key: 'node:{lead}' }) : mail;
    const node = async ({ lead }) => {
        const sent = await send({ lead });
        if (++attempts < 3) throw new Error('the CRM did not answer');
        return sent;
    };
    const { message } = await graphOf(node, { maxAttempts: 3, initialInterval: 1, jitter: false }).invoke({ lead: 'L-1' });
    assert.strictEqual(message, wrap ? 'm-1 to L-1' : 'm-3 to L-1');
    return mails;
}, 3));

test('LangGraph retries a mail whose answer was lost: one mail, and nobody claims to know', () => both(async (wrap) => {
    let mails = 0;
    const mail = async () => {
        mails++;
        throw new Error('socket hang up');
    };
    const send = wrap ? semel.once(mail, { key: 'lost:{lead}' }) : mail;
    const graph = graphOf(({ lead }) => send({ lead }), { maxAttempts: 3, initialInterval: 1, jitter: false });
    await assert.rejects(graph.invoke({ lead: 'L-1' }), wrap ? OutcomeUnknown : /hang up/);
    return mails;
}, 3));

test('LangGraph runs a graph again because a later node failed: one mail', () => both(async (wrap) => {
    let mails = 0;
    const mail = async () => ({ message: `m-${++mails}` });
    const send = wrap ? semel.once(mail, { key: 'thread:{lead}' }) : mail;
    const graph = new StateGraph(State)
        .addNode('followup', ({ lead }) => send({ lead }))
        .addNode('crm', () => { if (mails < 9) throw new Error('down'); })
        .addEdge('__start__', 'followup').addEdge('followup', 'crm').compile({ checkpointer: new MemorySaver() });
    for (let run = 0; run < 3; run++)
        await assert.rejects(graph.invoke({ lead: 'L-1' }, { configurable: { thread_id: `t${run}` } }), /down/);
    return mails;
}, 3));

/* ---- LangChain tools ---- */

const call = (id, args = { to: 'jon@acme.io' }) => ({ id, type: 'tool_call', name: 'send_email', args });
const fields = { name: 'send_email', description: 'Send an e-mail', schema: z.object({ to: z.string() }) };
const twice = () => ({ messages: [new AIMessage({ content: '', tool_calls: [call('c1'), call('c2')] })] });

class MailTool extends StructuredTool {
    name = fields.name;
    description = fields.description;
    schema = fields.schema;
    mails = 0;
    async _call({ to }) {
        return `m-${++this.mails} to ${to}`;
    }
}

const kinds = {
    'tool()': (send) => langTool(send, fields),
    DynamicStructuredTool: (send) => new DynamicStructuredTool({ ...fields, func: send }),
    'a runnable as a tool': (send) => RunnableLambda.from(send).asTool(fields),
};

for (const [kind, make] of Object.entries(kinds))
    test(`ToolNode runs two equal calls at the same time, ${kind}: one mail, an answer for each`, () => both(async (wrap) => {
        let mails = 0;
        const plain = make(async ({ to }) => `m-${++mails} to ${to}`);
        const node = new ToolNode([wrap ? onceTool(plain, { client: semel, key: `${kind}:{to}` }) : plain]);
        const { messages } = await node.invoke(twice());
        assert.deepStrictEqual(messages.map((message) => message.tool_call_id), ['c1', 'c2']);
        assert.deepStrictEqual(messages.map((message) => message.content), ['m-1 to jon@acme.io', wrap ? 'm-1 to jon@acme.io' : 'm-2 to jon@acme.io']);
        return mails;
    }, 2));

test('a StructuredTool of its own class, without a key: one within a thread', () => both(async (wrap) => {
    const plain = new MailTool();
    const sending = wrap ? onceTool(plain, { client: semel, workflow: 'class' }) : plain;
    assert.ok(sending instanceof MailTool);
    await new ToolNode([sending]).invoke(twice(), { configurable: { thread_id: 't1' } });
    const { mails } = plain;
    await new ToolNode([sending]).invoke(twice(), { configurable: { thread_id: 't2' } });
    assert.strictEqual(plain.mails, 2 * mails, 'another thread is another intent');
    return mails;
}, 2));

test('content and artifact are replayed, and bad arguments never reach semel', async () => {
    let mails = 0;
    const plain = langTool(async ({ to }) => [`m-${++mails}`, { to }], { ...fields, responseFormat: 'content_and_artifact' });
    const sending = onceTool(plain, { client: semel, key: 'artifact:{to}' });
    const [first, second] = [await sending.invoke(call('c1')), await sending.invoke(call('c2'))];
    assert.deepStrictEqual([first.content, first.artifact], ['m-1', { to: 'jon@acme.io' }]);
    assert.deepStrictEqual([second.tool_call_id, second.content, second.artifact], ['c2', 'm-1', { to: 'jon@acme.io' }]);
    await assert.rejects(sending.invoke(call('c3', { to: 5 })), /schema/);
});

/* ---- AI SDK ---- */

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const toolCall = (toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'send_email', input: '{"to":"jon@acme.io"}' });
const answer = (content, unified) => ({ content, finishReason: { unified, raw: unified }, usage, warnings: [] });
const done = answer([{ type: 'text', text: 'done' }], 'stop');

function mailTool(wrap, workflow) {
    const count = { mails: 0 };
    const plain = aiTool({
        description: 'Send an e-mail', inputSchema: z.object({ to: z.string() }), execute: async ({ to }) => `m-${++count.mails} to ${to}`,
    });
    return { count, send_email: wrap ? onceTool(plain, { client: semel, workflow, key: 'mail:{to}' }) : plain };
}

test('a model calls a tool twice in one answer: one mail', () => both(async (wrap) => {
    const { count, send_email } = mailTool(wrap, 'ai-parallel');
    const model = new MockLanguageModelV3({ doGenerate: [answer([toolCall('c1'), toolCall('c2')], 'tool-calls'), done] });
    const { steps, text } = await generateText({ model, prompt: 'Write to Jon', tools: { send_email }, stopWhen: stepCountIs(3) });
    assert.strictEqual(text, 'done');
    assert.deepStrictEqual(steps[0].toolResults.map(({ toolCallId }) => toolCallId).sort(), ['c1', 'c2']);
    return count.mails;
}, 2));

test('a model calls a tool again in its next step: one mail', () => both(async (wrap) => {
    const { count, send_email } = mailTool(wrap, 'ai-again');
    const model = new MockLanguageModelV3({ doGenerate: [answer([toolCall('c1')], 'tool-calls'), answer([toolCall('c2')], 'tool-calls'), done] });
    const { steps } = await generateText({ model, prompt: 'Write to Jon', tools: { send_email }, stopWhen: stepCountIs(5) });
    assert.deepStrictEqual(steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)),
        ['m-1 to jon@acme.io', wrap ? 'm-1 to jon@acme.io' : 'm-2 to jon@acme.io']);
    return count.mails;
}, 2));

test('a stream with the call twice: one mail', () => both(async (wrap) => {
    const { count, send_email } = mailTool(wrap, 'ai-stream');
    const chunks = [toolCall('c1'), toolCall('c2'), { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'tool-calls' }, usage }];
    const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
    await streamText({ model, prompt: 'Write to Jon', tools: { send_email }, stopWhen: stepCountIs(1) }).consumeStream();
    return count.mails;
}, 2));

test('a run that is repeated as a whole: one mail', () => both(async (wrap) => {
    const { count, send_email } = mailTool(wrap, 'ai-rerun');
    for (let run = 0; run < 3; run++) {
        const model = new MockLanguageModelV3({ doGenerate: [answer([toolCall(`c${run}`)], 'tool-calls'), done] });
        await generateText({ model, prompt: 'Write to Jon', tools: { send_email }, stopWhen: stepCountIs(2) });
    }
    return count.mails;
}, 3));
