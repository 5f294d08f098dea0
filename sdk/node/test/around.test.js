'use strict';
/* Modes, tools, the mapping of fetch, and the environment. */
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Semel, once, claim, current, downstreamKey, onceTool, semelFetch } = require('..');
const { Daemon } = require('./daemon.js');

let daemon, semel;
before(async () => {
    daemon = await new Daemon().start();
    semel = new Semel({ url: daemon.url });
});
after(() => daemon.end());

const nowhere = 'http://127.0.0.1:9';

/* ---- modes ---- */

test('off: semel is not asked', async () => {
    let asked = 0, effects = 0;
    const off = new Semel({ url: nowhere, mode: 'off', fetch: () => asked++ });
    const followup = off.once(() => ++effects, { key: 'x:{n}' });
    assert.deepStrictEqual([await followup({ n: 1 }), await followup({ n: 1 })], [1, 2]);
    const own = await off.claim('x');
    assert.ok(own.first && /^sml-/.test(own.key));
    await own.confirm(1);
    assert.strictEqual(asked, 0);
    assert.strictEqual(await off.once(() => current().key, { key: 'x:{n}' })({ n: 1 }), downstreamKey('main', 'default', 'x:1'));
    assert.strictEqual(await off.once(() => current().key, { key: 'x:{n}' })({}), undefined);
});

test('observe: everything is let through, and what would not have been is told', async () => {
    const would = [];
    let effects = 0;
    const observe = new Semel({ url: daemon.url, mode: 'observe', onWould: ({ code, key }) => would.push(`${key} ${code}`) });
    const followup = observe.once(() => ++effects, { key: 'observe:{n}' });
    assert.deepStrictEqual([await followup({ n: 1 }), await followup({ n: 1 }), await followup({ n: 1, other: 1 })], [1, 2, 3]);
    assert.deepStrictEqual(would, ['observe:1 replay', 'observe:1 key_reused']);
    const enforce = semel.once(() => assert.fail('again'), { key: 'observe:{n}' });
    assert.strictEqual(await enforce({ n: 1 }), 1, 'the first was recorded');
});

test('observe: an outage stops nothing', async () => {
    const would = [];
    const observe = new Semel({ url: nowhere, mode: 'observe', onWould: ({ code }) => would.push(code) });
    assert.strictEqual(await observe.once(() => 'sent', { key: 'x:{n}' })({ n: 1 }), 'sent');
    assert.deepStrictEqual(would, ['unreachable']);
});

test('observe: neither does what semel says to the holder', async () => {
    const would = [];
    const deaf = (url, init) => (/claims$/.test(url) ? fetch(url, init) : new Response('{"code":"fenced","status":409}', { status: 409 }));
    const observe = new Semel({ url: daemon.url, mode: 'observe', fetch: deaf, onWould: ({ code }) => would.push(code) });
    assert.strictEqual(await observe.once(() => 'sent', { key: 'quiet:{n}' })({ n: 1 }), 'sent');
    assert.deepStrictEqual(would, ['fenced', 'fenced']);
});

test('the environment makes the client of the plain functions', async () => {
    Object.assign(process.env, { SEMEL_URL: daemon.url, SEMEL_RUN: 'run-7' });
    let effects = 0;
    const followup = once(() => ++effects, { workflow: 'environment' });
    assert.deepStrictEqual([await followup({ n: 1 }), await followup({ n: 1 })], [1, 1]);
    const { data } = await daemon.get('/v1/intents?workflow=environment');
    assert.strictEqual(data[0].run, 'run-7');
    await (await claim('environment:1')).confirm('yes');
    assert.strictEqual((await claim('environment:1', { client: semel })).result, 'yes');
});

test('a token is sent with each call', async () => {
    const seen = [];
    const withToken = new Semel({ url: `${daemon.url}/`, token: 'sml_x', fetch: (url, init) => (seen.push([url, init.headers.authorization]), fetch(url, init)) });
    await (await withToken.claim('token:1')).confirm();
    assert.deepStrictEqual(new Set(seen.map(([, token]) => token)), new Set(['Bearer sml_x']));
    assert.ok(seen.every(([url]) => url.startsWith(`${daemon.url}/v1/claims`)));
});

/* ---- tools; the real frameworks are in ../interop ---- */

test('a tool of the AI SDK keeps everything but its repetitions', async () => {
    let effects = 0;
    const tool = { description: 'Sends a mail', inputSchema: {}, execute: async ({ to }, { toolCallId }) => `${++effects} ${to} ${toolCallId}` };
    const sendOnce = onceTool(tool, { client: semel, key: 'ai:{to}' });
    assert.strictEqual(sendOnce.description, tool.description);
    const results = await Promise.all(['call-1', 'call-2'].map((toolCallId) => sendOnce.execute({ to: 'a@b.c' }, { toolCallId })));
    assert.deepStrictEqual(results, ['1 a@b.c call-1', '1 a@b.c call-1']);
    assert.strictEqual(await tool.execute({ to: 'a@b.c' }, {}), '2 a@b.c undefined', 'the given tool is untouched');
});

test('of a tool that streams the last value is the result', async () => {
    const tool = { execute: async function* () { yield 'working'; yield 'done'; } };
    const once = onceTool(tool, { client: semel, key: 'stream:{n}' });
    assert.deepStrictEqual([await once.execute({ n: 1 }), await once.execute({ n: 1 })], ['done', 'done']);
});

test('a tool of LangChain stays an instance of its class, and its thread is the run', async () => {
    class Tool {
        name = 'send_email';
        effects = 0;
        async _call({ to }) {
            return `${++this.effects} ${to}`;
        }
        async invoke(call, config) {
            return { tool_call_id: call.id, content: await this._call(call.args, undefined, config) };
        }
    }
    const sendOnce = onceTool(new Tool(), { client: semel });
    assert.ok(sendOnce instanceof Tool);
    const config = (thread_id) => ({ configurable: { thread_id } });
    const call = (id) => ({ id, type: 'tool_call', args: { to: 'a@b.c' } });
    assert.deepStrictEqual(await sendOnce.invoke(call('c1'), config('t1')), { tool_call_id: 'c1', content: '1 a@b.c' });
    assert.deepStrictEqual(await sendOnce.invoke(call('c2'), config('t1')), { tool_call_id: 'c2', content: '1 a@b.c' });
    assert.deepStrictEqual(await sendOnce.invoke(call('c3'), config('t2')), { tool_call_id: 'c3', content: '2 a@b.c' });
    const { data } = await daemon.get('/v1/intents?workflow=send_email');
    assert.deepStrictEqual(data.map(({ thread }) => thread).sort(), ['t1', 't2']);
});

test('anything with invoke is a tool', async () => {
    let effects = 0;
    const sendOnce = onceTool({ name: 'plain', invoke: async ({ to }) => `${++effects} ${to}` }, { client: semel, key: 'plain:{to}' });
    assert.strictEqual(await sendOnce.invoke({ to: 'x' }), '1 x');
    assert.strictEqual(await sendOnce.invoke({ id: 'c1', type: 'tool_call', args: { to: 'x' } }), '1 x');
    assert.throws(() => onceTool({ name: 'nothing' }, { client: semel, key: '{to}' }), TypeError);
    assert.throws(() => onceTool({ execute() {} }, { client: semel }), /workflow/);
});

/* ---- fetch ---- */

const recorder = () => {
    const calls = [];
    return { calls, fetch: async (input, init) => (calls.push(new Request(input, init)), new Response('ok')) };
};

test('fetch goes to the destination behind semel, path and query as they are', async () => {
    const { calls, fetch } = recorder();
    const stripe = semelFetch(fetch, { client: new Semel({ url: 'http://semel:7363/', run: 'r1', token: 'sml_x' }), destination: 'stripe' });
    await stripe('https://api.stripe.com/v1/charges?expand[]=a%20b', { method: 'POST', body: 'amount=5', headers: { authorization: 'Bearer sk', 'Idempotency-Key': 'k1' } });
    const [call] = calls;
    assert.strictEqual(call.url, 'http://semel:7363/to/stripe/v1/charges?expand[]=a%20b');
    assert.strictEqual(call.method, 'POST');
    assert.strictEqual(await call.text(), 'amount=5');
    assert.deepStrictEqual(
        ['authorization', 'idempotency-key', 'semel-run', 'semel-token'].map((name) => call.headers.get(name)),
        ['Bearer sk', 'k1', 'r1', 'sml_x'],
    );
});

test('fetch takes a URL, a Request and the key of the caller', async () => {
    const { calls, fetch } = recorder();
    const slack = semelFetch(fetch, { client: semel, destination: 'slack', key: (url) => `post:${new URL(url).pathname}` });
    await slack(new URL('https://slack.com/api/chat.postMessage'));
    await slack(new Request('https://slack.com/api/x', { method: 'PUT', body: 'b', headers: { 'x-a': '1', 'idempotency-key': 'own' } }));
    assert.deepStrictEqual(calls.map((call) => call.url), [`${daemon.url}/to/slack/api/chat.postMessage`, `${daemon.url}/to/slack/api/x`]);
    assert.deepStrictEqual(calls.map((call) => call.headers.get('idempotency-key')), ['post:/api/chat.postMessage', 'own']);
    assert.deepStrictEqual([calls[1].method, await calls[1].text(), calls[1].headers.get('x-a')], ['PUT', 'b', '1']);
    assert.throws(() => semelFetch(fetch, { client: semel }), TypeError);
    for (const mode of ['off', 'observe']) assert.strictEqual(semelFetch(fetch, { client: new Semel({ mode }), destination: 'x' }), fetch);
});
