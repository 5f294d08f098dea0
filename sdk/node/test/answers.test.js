'use strict';
/* One answer to a question, whoever gives it. */
const assert = require('node:assert');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { Semel, InProgress } = require('..');
const { Daemon } = require('./daemon.js');

const { cases } = JSON.parse(readFileSync(join(__dirname, '../../conformance/answers.json'), 'utf8'));

let daemon, semel;
before(async () => {
    daemon = await new Daemon().policy('sources:\n  chat: {preset: json, verify: none}\n').start();
    semel = new Semel({ url: daemon.url });
});
after(() => daemon.end());

const get = async (path) => (await fetch(daemon.url + path)).json();

/** The headers that come with what somebody wrote, as Node's http has them. */
async function forwarded(message, epoch) {
    await fetch(`${daemon.url}/in/chat`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ email: 'jon@acme.io', message }) });
    for (let tries = 0; tries < 1000; tries++) {
        const { data } = await get('/v1/threads?identity=jon@acme.io');
        if (data[0]?.epoch === epoch) return { 'semel-thread': data[0].thread, 'semel-epoch': String(epoch) };
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('the message was not decided');
}

async function answer(headers, text, options) {
    const claim = await semel.answerOnce(headers, options);
    if (claim.first) await claim.confirm(text);
    return claim.first ? text : claim.result;
}

test('a question is answered once, and the next one again', async () => {
    const first = await forwarded('What does a weekly session cost?', 1);
    assert.strictEqual(await answer(first, '50'), '50');
    assert.strictEqual(await answer(new Headers(first), '60'), '50');
    assert.strictEqual(await answer(first, 'noted', { action: 'note' }), 'noted');
    const second = await forwarded('And would you also take my brother along on Fridays?', 2);
    assert.strictEqual(second['semel-thread'], first['semel-thread']);
    assert.strictEqual(await answer(second, 'yes'), 'yes');
    assert.strictEqual(await answer(first, '70'), '50');
});

test('headers without a question are refused', () => {
    for (const headers of [{}, { 'semel-thread': 'thr_1' }, { 'semel-thread': 'thr_1', 'semel-epoch': 'x' }, undefined])
        assert.throws(() => semel.answerOnce(headers), TypeError);
});

test('semel makes the same keys', async () => {
    for (const { thread, question, action, key } of cases.filter((c) => c.question)) {
        const claim = await semel.claim(undefined, { thread, question, action });
        const intent = await get(`/v1/intents/${claim.intent}`);
        assert.deepStrictEqual([intent.workflow, intent.key], ['answers', key]);
        await claim.confirm(null);
    }
});

test('an answer waits for the one before', async () => {
    const first = await semel.claim(undefined, { thread: 'ticket', question: 'm1', action: 'reply' });
    const second = { thread: 'ticket', question: 'm2', action: 'reply' };
    await assert.rejects(semel.claim(undefined, { ...second, waitMs: 0 }), (error) => error instanceof InProgress && error.waits_for === first.intent);
    await first.confirm(1);
    assert.ok((await semel.claim(undefined, second)).first);
});
