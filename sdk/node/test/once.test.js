'use strict';
/* What `once` and `claim` promise, against a real semel. */
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const client = require('..');
const { Daemon } = require('./daemon.js');

const { Semel, current, NoEffect, InProgress, OutcomeUnknown, KeyReused, Refused, Fenced, InvalidKey, SemelError } = client;
const gate = () => {
    let open;
    const opened = new Promise((resolve) => (open = resolve));
    return { open, opened };
};

let daemon, semel;
before(async () => {
    daemon = await new Daemon().policy('workflows:\n  digest:\n    key: "digest:{user}:{day}"\n    time: at\n').start();
    semel = new Semel({ url: daemon.url });
});
after(() => daemon.end());

/** A function that counts its effects. */
function mailer(answer = (input) => ({ message_id: `m-${JSON.stringify(input)}` })) {
    const send = async (...args) => {
        send.sent.push(args);
        return answer(...args);
    };
    send.sent = [];
    return send;
}

test('three calls send one mail and get one result', async () => {
    const send = mailer();
    const followup = semel.once(send, { key: 'followup:{lead_id}:{template}:{day}' });
    const payload = { lead_id: 'lead_8821', template: 'followup_v2', day: '2025-01-15' };
    const results = [await followup(payload), await followup(payload), await followup(payload)];
    assert.strictEqual(send.sent.length, 1);
    assert.deepStrictEqual(results[2], results[0]);
    await followup({ ...payload, day: '2025-01-16' });
    assert.strictEqual(send.sent.length, 2);
});

test('another client gets the result of the first', async () => {
    const [first, second] = [mailer(), mailer(() => 'another')];
    const options = { key: 'handoff:{task}' };
    const result = await semel.once(first, options)({ task: 1 });
    assert.deepStrictEqual(await new Semel({ url: daemon.url }).once(second, options)({ task: 1 }), result);
    assert.strictEqual(second.sent.length, 0);
});

test('calls at the same time are one, and ask semel once', async () => {
    let asked = 0;
    const counting = new Semel({ url: daemon.url, fetch: (...args) => (asked++, fetch(...args)) });
    const send = mailer();
    const followup = counting.once(send, { key: 'parallel:{n}' });
    const results = await Promise.all(Array.from({ length: 20 }, () => followup({ n: 1 })));
    assert.strictEqual(send.sent.length, 1);
    assert.strictEqual(new Set(results).size, 1);
    assert.strictEqual(asked, 3, 'claim, sent, confirm');
});

test('a caller of another process waits for the holder', async () => {
    const [working, go] = [gate(), gate()];
    const options = { key: 'slow:{n}' };
    const slow = semel.once(async () => (working.open(), await go.opened, 'done'), options);
    const other = new Semel({ url: daemon.url }).once(() => assert.fail('a second effect'), options);
    const first = slow({ n: 1 });
    await working.opened;
    const second = other({ n: 1 });
    go.open();
    assert.deepStrictEqual(await Promise.all([first, second]), ['done', 'done']);
});

test('who does not wait is told that it is in progress', async () => {
    const claim = await semel.claim('busy:1');
    await assert.rejects(semel.claim('busy:1', { waitMs: 0 }), (error) => error instanceof InProgress && error.code === 'in_progress');
    await claim.confirm();
});

test('the same key with another input is refused and names the field', async () => {
    const followup = semel.once(mailer(), { key: 'reuse:{lead_id}' });
    await followup({ lead_id: 1, to: 'a@b.c' });
    await assert.rejects(followup({ lead_id: 1, to: 'x@y.z' }), (error) => error instanceof KeyReused && error.differs.join() === 'to');
});

test('also when both are called at the same time', async () => {
    const send = mailer();
    const followup = semel.once(send, { key: 'reuse-now:{lead_id}' });
    const both = await Promise.allSettled([followup({ lead_id: 1, to: 'a' }), followup({ lead_id: 1, to: 'b' })]);
    assert.deepStrictEqual(both.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
    assert.strictEqual(send.sent.length, 1);
});

test('ignored fields may differ', async () => {
    const send = mailer();
    const followup = semel.once(send, { key: 'ignore:{lead_id}', ignore: ['trace_id'] });
    await followup({ lead_id: 1, trace_id: 'a' });
    await followup({ lead_id: 1, trace_id: 'b' });
    assert.strictEqual(send.sent.length, 1);
});

test('fields alone make the key', async () => {
    const send = mailer();
    const refund = semel.once(send, { fields: ['order.id', 'amount'], workflow: 'refund' });
    await refund({ order: { id: 1 }, amount: 5, trace_id: 'a' });
    await refund({ amount: 5, order: { id: 1, note: 'again' } });
    assert.strictEqual(send.sent.length, 1);
    await refund({ order: { id: 1 }, amount: 6 });
    assert.strictEqual(send.sent.length, 2);
    await assert.rejects(refund({ amount: 5 }), InvalidKey);
});

test('a function makes the key from the arguments', async () => {
    const send = mailer();
    const invoice = semel.once(send, { key: (customer, period) => `invoice:${customer}:${period}`, workflow: 'invoice' });
    await invoice('c1', '2026-11');
    await invoice('c1', '2026-11');
    await invoice('c1', '2026-12');
    assert.strictEqual(send.sent.length, 2);
    assert.deepStrictEqual(send.sent[0], ['c1', '2026-11']);
});

test('several arguments are a list', async () => {
    const send = mailer();
    const move = semel.once(send, { key: 'move:{0.id}:{1}' });
    await move({ id: 1 }, 'inbox');
    await move({ id: 1 }, 'inbox');
    assert.strictEqual(send.sent.length, 1);
    await assert.rejects(semel.once(send, { key: 'move:{id}' })({ id: 1 }, 'inbox'), InvalidKey);
});

test('the policy makes the key', async () => {
    const send = mailer();
    const digest = semel.once(send, { workflow: 'digest', policy: true });
    await digest({ user: 7, at: '2026-11-16T09:00:00Z' });
    await digest({ user: 7, at: '2026-11-16T09:00:00Z' });
    assert.strictEqual(send.sent.length, 1);
    const { data } = await daemon.get('/v1/intents?workflow=digest&key=digest:7:2026-11-16');
    assert.strictEqual(data[0].state, 'confirmed');
});

test('without a key equal calls are one within a run, and only there', async () => {
    const send = mailer();
    const options = { workflow: 'in-run' };
    const inRun = (run) => new Semel({ url: daemon.url, run }).once(send, options);
    await inRun('r1')({ a: 1 });
    await inRun('r1')({ a: 1 });
    assert.strictEqual(send.sent.length, 1);
    await inRun('r2')({ a: 1 });
    assert.strictEqual(send.sent.length, 2);
    await assert.rejects(semel.once(send, options)({ a: 1 }), InvalidKey);
});

test('mistakes show when a function is wrapped', () => {
    assert.throws(() => semel.once(mailer(), { key: 'always-the-same' }), InvalidKey);
    assert.throws(() => semel.once(mailer(), { key: 'x:{uuid}' }), InvalidKey);
    assert.throws(() => semel.once(mailer(), { fields: ['a'] }), /workflow/);
    assert.throws(() => new Semel({ mode: 'enfroce' }), /enforce, observe, off/);
});

test('big whole numbers make keys by their digits', async () => {
    const send = mailer(() => 1);
    const followup = semel.once(send, { key: 'big:{id}' });
    await followup({ id: 9007199254740993n });
    await followup({ id: 9007199254740993n });
    await followup({ id: 9007199254740992n });
    assert.strictEqual(send.sent.length, 2);
    await assert.rejects(followup({ id: 2 ** 53 }), InvalidKey);
});

/* ---- errors of the function ---- */

test('an error may have had an effect: nobody does it again', async () => {
    const boom = new Error('timed out after sending');
    const followup = semel.once(() => Promise.reject(boom), { key: 'boom:{n}' });
    await assert.rejects(followup({ n: 1 }), (error) => error === boom);
    await assert.rejects(followup({ n: 1 }), (error) => error instanceof OutcomeUnknown && error.fence === 1 && /^int_/.test(error.intent));
});

test('NoEffect gives it to the next call', async () => {
    let tries = 0;
    const followup = semel.once(() => (++tries === 1 ? Promise.reject(new NoEffect('connection refused')) : 'sent'), { key: 'none:{n}' });
    await assert.rejects(followup({ n: 1 }), NoEffect);
    assert.strictEqual(await followup({ n: 1 }), 'sent');
});

test('a final NoEffect refuses for good', async () => {
    const followup = semel.once(() => Promise.reject(new NoEffect('no such customer', { final: true })), { key: 'final:{n}' });
    await assert.rejects(followup({ n: 1 }), NoEffect);
    await assert.rejects(followup({ n: 1 }), (error) => error instanceof Refused && error.error === 'no such customer');
});

test('onError says what an error means', async () => {
    let tries = 0;
    const followup = semel.once(() => (++tries < 2 ? Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })) : 'sent'), {
        key: 'mapped:{n}', onError: (error) => (error.code === 'ECONNREFUSED' ? { effect: 'none' } : undefined),
    });
    await assert.rejects(followup({ n: 1 }), { code: 'ECONNREFUSED' });
    assert.strictEqual(await followup({ n: 1 }), 'sent');
});

test("onCrash 'retry' does it again when nobody can tell", async () => {
    let tries = 0;
    const followup = semel.once(() => (++tries === 1 ? Promise.reject(new Error('timed out')) : `try ${tries}`), { key: 'again:{n}', onCrash: 'retry' });
    await assert.rejects(followup({ n: 1 }), /timed out/);
    assert.strictEqual(await followup({ n: 1 }), 'try 2');
    assert.strictEqual(await followup({ n: 1 }), 'try 2');
});

test('a provider that takes our key sends once, even if the call before failed after sending', async () => {
    /* The flaky provider of the crash story: it sends, then the connection breaks. It deduplicates on the key. */
    const provider = { calls: 0, sent: new Set(), failAfterSend: true };
    const call = async () => {
        provider.calls++;
        provider.sent.add(current().key);
        if (provider.failAfterSend) throw new Error('socket hang up');
        return { message_id: 'm-1' };
    };
    const followup = semel.once(call, { key: 'flaky:{lead_id}', onCrash: 'retry' });
    await assert.rejects(followup({ lead_id: 'lead_8821' }), /hang up/);
    provider.failAfterSend = false;
    await followup({ lead_id: 'lead_8821' });
    assert.deepStrictEqual([provider.calls, provider.sent.size], [2, 1]);
});

/* ---- results ---- */

test('a result that JSON cannot hold is given once, and the effect is still one', async () => {
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const send = mailer(() => ({ big: 1n }));
    const followup = semel.once(send, { key: 'unwritable:{n}' });
    assert.deepStrictEqual(await followup({ n: 1 }), { big: 1n });
    assert.match((await warned).message, /cannot be kept/);
    assert.strictEqual(await followup({ n: 1 }), null);
    assert.strictEqual(send.sent.length, 1);
});

test('a result that is too large is given once, and the effect is still one', async () => {
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const send = mailer(() => Array(20).fill('x'.repeat(60000)));
    const followup = semel.once(send, { key: 'large:{n}' });
    assert.strictEqual((await followup({ n: 1 })).length, 20);
    assert.match((await warned).message, /cannot be kept/);
    assert.strictEqual(await followup({ n: 1 }), null);
});

/* ---- claims by hand ---- */

test('a claim is first, or has the result', async () => {
    const claim = await semel.claim('invoice:42:send', { workflow: 'by-hand', input: { amount: 5 } });
    assert.ok(claim.first);
    assert.strictEqual(claim.key, client.downstreamKey('main', 'by-hand', 'invoice:42:send'));
    await claim.confirm({ message_id: 'm-1' });
    const again = await semel.claim('invoice:42:send', { workflow: 'by-hand', input: { amount: 5 } });
    assert.deepStrictEqual([again.first, again.result], [false, { message_id: 'm-1' }]);
    await assert.rejects(again.confirm(), Fenced);
});

test('a claim that is left with a result is confirmed, without one it is unknown', async () => {
    const dispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');
    const first = await semel.claim('scope:1');
    first.result = 'sent';
    await first[dispose]();
    assert.strictEqual((await semel.claim('scope:1')).result, 'sent');
    await (await semel.claim('scope:2'))[dispose]();
    await assert.rejects(semel.claim('scope:2'), OutcomeUnknown);
    await (await semel.claim('scope:3', { twoPhase: true }))[dispose]();
    assert.ok((await semel.claim('scope:3')).first, 'nothing was sent, so it was given back');
});

test('two phases: an error before sent leaves no question', async () => {
    let tries = 0;
    const followup = semel.once(async () => {
        if (++tries === 1) throw new Error('the template is missing');
        await current().sent();
        return 'sent';
    }, { key: 'prepare:{n}', twoPhase: true });
    await assert.rejects(followup({ n: 1 }), /template/);
    assert.strictEqual(await followup({ n: 1 }), 'sent');
});

test('a claim is held by its heartbeat, well beyond its lease', async () => {
    const leaseMs = 3000; /* a beat may be late by two seconds */
    const claim = await semel.claim('beat:1', { leaseMs });
    const until = async () => Date.parse((await daemon.get(`/v1/intents/${claim.intent}`)).lease_until);
    const first = await until();
    const end = Date.now() + 120000;
    while ((await until()) < first + leaseMs && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.ok((await until()) >= first + leaseMs);
    await claim.confirm('held');
    assert.strictEqual((await semel.claim('beat:1')).result, 'held');
    assert.ok(!claim.signal.aborted);
});

test('who lost the lease is told so, and its word does not count', async () => {
    const deaf = new Semel({ url: daemon.url, fetch: (url, init) => (/extend/.test(url) ? Promise.reject(new Error('no network')) : fetch(url, init)) });
    const claim = await deaf.claim('lost:1', { leaseMs: 200, twoPhase: true });
    await new Promise((resolve) => claim.signal.addEventListener('abort', resolve));
    assert.strictEqual(await (await semel.claim('lost:1')).confirm('by the second').then((c) => c.result), 'by the second');
    await assert.rejects(claim.sent(), Fenced);
    await assert.rejects(claim.confirm('by the first'), Fenced);
    assert.strictEqual((await semel.claim('lost:1')).result, 'by the second');
});

test('who was given a lease too late does not act', async () => {
    const asked = [];
    const slow = async (url) => {
        asked.push(url.replace(/.*\/v1/, ''));
        await new Promise((resolve) => setTimeout(resolve, 60));
        return new Response(JSON.stringify({ answer: 'proceed', intent: 'int_1', fence: 1, lease_ms: 50 }), { status: 201 });
    };
    const followup = new Semel({ url: daemon.url, fetch: slow }).once(() => assert.fail('an effect'), { key: 'slow-answer:{n}', leaseMs: 50 });
    await assert.rejects(followup({ n: 1 }), Fenced);
    assert.deepStrictEqual(asked.filter((path) => !/extend/.test(path)), ['/claims']);
});

test('a claim whose answer was lost is sent again and gets it', async () => {
    const statuses = [];
    const lossy = async (url, init) => {
        const response = await fetch(url, init);
        statuses.push(response.status);
        if (statuses.length === 1) throw new TypeError('fetch failed');
        return response;
    };
    const claim = await new Semel({ url: daemon.url, fetch: lossy }).claim('unheard:1', { twoPhase: true, waitMs: 0 });
    assert.deepStrictEqual([claim.first, claim.fence, statuses], [true, 1, [201, 201]]);
    await claim.release();
});

test('a late word of the last holder counts', async () => {
    const deaf = new Semel({ url: daemon.url, fetch: (url, init) => (/extend/.test(url) ? Promise.reject(new Error('no network')) : fetch(url, init)) });
    const claim = await deaf.claim('late:1', { leaseMs: 100 });
    await assert.rejects(semel.claim('late:1'), OutcomeUnknown);
    await claim.confirm('it did happen');
    assert.strictEqual((await semel.claim('late:1')).result, 'it did happen');
});

test('current is the claim of the function that runs', async () => {
    const key = await semel.once(async () => (await null, current().key), { key: 'current:{n}' })({ n: 1 });
    assert.strictEqual(key, client.downstreamKey('main', 'default', 'current:1'));
    assert.strictEqual(current(), undefined);
});

test('problems that are no class of their own have a code', async () => {
    await assert.rejects(semel.claim('x', { keep: 'soon' }), (error) => error instanceof SemelError && error.code === 'invalid' && error.status === 400);
});

/* ---- modules ---- */

test('both kinds of modules are the same client', async () => {
    const esm = await import('../index.mjs');
    assert.deepStrictEqual(Object.keys(esm).sort(), Object.keys(client).sort());
    for (const name of Object.keys(client)) assert.strictEqual(esm[name], client[name]);
});
