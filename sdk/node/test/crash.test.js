'use strict';
/* Workers that are killed, a daemon that is killed, and what the next run finds. */
const assert = require('node:assert');
const { readdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { Semel, NoEffect, OutcomeUnknown, Unreachable, Refused, KeyReused } = require('..');
const { Daemon, child } = require('./daemon.js');

let daemon, outbox, number = 0;
before(async () => {
    daemon = await new Daemon().start();
    outbox = join(daemon.folder, 'outbox');
    writeFileSync(outbox, '');
});
after(() => daemon.end());

const sent = (key) => readFileSync(outbox, 'utf8').split('\n').filter((line) => line === key).length;
const work = (key, point = 'never', onCrash = 'unknown') => child('crash.child.js', [outbox, key, point, onCrash], { SEMEL_URL: daemon.url });

test('killed before sent: the next run does it', async () => {
    assert.strictEqual((await work('a', 'before sent')).signal, 'SIGKILL');
    assert.strictEqual((await work('a')).out, '{"message_id":"m-1"}\n');
    assert.strictEqual(sent('a'), 1);
});

test('killed after the effect: the next run does not do it again, and says that nobody can tell', async () => {
    assert.strictEqual((await work('b', 'after the effect')).signal, 'SIGKILL');
    assert.strictEqual((await work('b')).out, 'outcome_unknown\n');
    assert.strictEqual(sent('b'), 1);
});

test('killed after sent, before the effect: the same, for the ledger cannot see the difference', async () => {
    await work('c', 'after sent');
    assert.strictEqual((await work('c')).out, 'outcome_unknown\n');
    assert.strictEqual(sent('c'), 0);
});

test("killed after the effect with onCrash 'retry': it is done again, and the log says why", async () => {
    await work('d', 'after the effect', 'retry');
    assert.strictEqual((await work('d', 'never', 'retry')).out, '{"message_id":"m-1"}\n');
    assert.strictEqual(sent('d'), 2);
    assert.strictEqual((await work('d')).out, '{"message_id":"m-1"}\n');
    assert.strictEqual(sent('d'), 2);
    const [intent] = (await daemon.get('/v1/intents?workflow=default&key=crash:d')).data;
    assert.match(JSON.stringify(await daemon.get(`/v1/decisions?intent=${intent.id ?? intent.intent}`)), /it may have happened; repeated/);
});

test('overlapping workers send one mail', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => work('e')));
    assert.deepStrictEqual(new Set(all.map(({ out }) => out)), new Set(['{"message_id":"m-1"}\n']));
    assert.strictEqual(sent('e'), 1);
});

/* ---- semel is down ---- */

const spoolFile = () => join(daemon.folder, `spool-${number}.jsonl`);
const down = async (work) => {
    number++;
    await daemon.kill();
    try {
        return await work();
    } finally {
        await daemon.start();
    }
};

test('nothing is done while semel is down', () => down(async () => {
    const followup = new Semel({ url: daemon.url }).once(() => assert.fail('an effect'), { key: 'closed:{n}' });
    await assert.rejects(followup({ n: 1 }), (error) => error instanceof Unreachable && error.code === 'unreachable');
}));

test('a daemon that comes back in time is not missed', async () => {
    await daemon.kill();
    let missed = 0;
    /* It comes back between the first try and the second, however long that takes here. */
    const comesBack = (url, init) => fetch(url, init).catch(async (error) => {
        if (missed++ === 0) await daemon.start();
        throw error;
    });
    assert.strictEqual(await new Semel({ url: daemon.url, fetch: comesBack }).once(() => 'sent', { key: 'restart:{n}' })({ n: 1 }), 'sent');
    assert.strictEqual(missed, 1);
});

test('something else that answers is not semel', async () => {
    const proxy = new Semel({ url: daemon.url, fetch: async () => new Response('<html>502</html>', { status: 502 }) });
    await assert.rejects(proxy.claim('x'), Unreachable);
});

test('a call that semel could not write down is repeated', async () => {
    let busy = 2;
    const full = () => new Response('{"code":"storage","status":503,"title":"The storage does not answer"}', { status: 503 });
    const semel = new Semel({ url: daemon.url, fetch: (url, init) => (busy-- > 0 ? full() : fetch(url, init)) });
    assert.strictEqual(await semel.once(() => 'sent', { key: 'busy:{n}' })({ n: 1 }), 'sent');
});

test('during an outage each claim is one try', async () => {
    let tries = 0;
    const semel = new Semel({ url: daemon.url, fetch: () => (tries++, Promise.reject(new Error('no network'))) });
    await assert.rejects(semel.claim('x'), Unreachable);
    assert.strictEqual(tries, 4);
    await assert.rejects(semel.claim('x'), Unreachable);
    assert.strictEqual(tries, 5);
});

test('failOpen: it is done once, by whoever asks, and told later', async () => {
    let effects = 0;
    const make = () => new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
    const followup = (semel) => semel.once(() => ({ message_id: `m-${++effects}` }), { key: 'open:{n}' });
    await down(async () => {
        assert.deepStrictEqual(await followup(make())({ n: 1 }), { message_id: 'm-1' });
        assert.deepStrictEqual(await followup(make())({ n: 1 }), { message_id: 'm-1' });
        assert.strictEqual(effects, 1);
        await assert.rejects(make().deliver(), Unreachable);
    });
    assert.deepStrictEqual(await followup(make())({ n: 1 }), { message_id: 'm-1' }, 'delivered before it is asked');
    assert.strictEqual(effects, 1);
    assert.deepStrictEqual(readdirSync(daemon.folder).filter((file) => file.startsWith('spool-')), []);
    assert.deepStrictEqual(await followup(new Semel({ url: daemon.url }))({ n: 1 }), { message_id: 'm-1' });
});

test('failOpen: big numbers in inputs keep their digits on the way', async () => {
    const followup = () => new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() }).once(() => 'sent', { key: 'digits:{n}' });
    await down(() => followup()({ n: 1, id: 9007199254740993n }));
    assert.strictEqual(await followup()({ n: 1, id: 9007199254740993n }), 'sent');
    await assert.rejects(followup()({ n: 1, id: 9007199254740992n }), KeyReused);
});

test('failOpen: errors, refusals and other inputs are remembered too', async () => {
    const semel = () => new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
    const failing = (error) => semel().once(() => Promise.reject(error), { key: '{k}' });
    await down(async () => {
        await assert.rejects(failing(new Error('timed out'))({ k: 'f1' }), /timed out/);
        await assert.rejects(semel().once(() => assert.fail('again'), { key: '{k}' })({ k: 'f1' }), OutcomeUnknown);
        assert.strictEqual(await semel().once(() => 'again', { key: '{k}', onCrash: 'retry' })({ k: 'f1' }), 'again');
        await assert.rejects(failing(new NoEffect('refused'))({ k: 'f2' }), NoEffect);
        assert.strictEqual(await semel().once(() => 'second try', { key: '{k}' })({ k: 'f2' }), 'second try');
        await assert.rejects(failing(new NoEffect('never', { final: true }))({ k: 'f3' }), NoEffect);
        await assert.rejects(semel().once(() => assert.fail('refused'), { key: '{k}' })({ k: 'f3' }), Refused);
        await assert.rejects(semel().once(() => assert.fail('another'), { key: '{k}' })({ k: 'f2', more: 1 }), KeyReused);
        await assert.rejects(failing(new Error('timed out'))({ k: 'f4' }), /timed out/);
    });
    assert.deepStrictEqual(await semel().deliver(), { delivered: 4, left: 0 });
    const stateOf = async (key) => (await daemon.get(`/v1/intents?workflow=default&key=${key}`)).data[0].state;
    assert.deepStrictEqual(await Promise.all(['f1', 'f2', 'f3', 'f4'].map(stateOf)), ['confirmed', 'confirmed', 'refused', 'unknown']);
});

test('failOpen: a worker that was killed in its act leaves a question behind', async () => {
    const dead = 4194304; /* above the largest pid of Linux */
    await down(async () => {
        const begun = (key, pid) => JSON.stringify({ state: 'begun', workflow: 'default', key, pid, born: 'another' });
        const done = (key, result) => JSON.stringify({ state: 'done', workflow: 'default', key, result });
        const lines = [begun('g1', dead), begun('g2', process.ppid), begun('g3', process.pid), done('g5', 5), begun('g5', process.ppid)];
        writeFileSync(`${spoolFile()}`, `${lines.join('\n')}\n{"state":"do`);
        const semel = new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
        await assert.rejects(semel.claim('g1'), OutcomeUnknown);
        await assert.rejects(semel.claim('g2'), { code: 'in_progress' });
        const behindHalfALine = await semel.claim('g4');
        await assert.rejects(semel.claim('g4'), { code: 'in_progress' });
        await behindHalfALine.confirm();
        assert.strictEqual((await semel.claim('g5')).result, 5, 'what is done stays done');
        await assert.rejects(semel.claim('g3'), OutcomeUnknown, 'this process has the pid of the one that died');
    });
    const semel = new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
    assert.deepStrictEqual(await semel.deliver(), { delivered: 4, left: 1 });
    await assert.rejects(semel.claim('g2'), { code: 'in_progress' }, 'it is still being done, and semel does not know');
    await assert.rejects(semel.claim('g1'), OutcomeUnknown);
});

test('failOpen: what an earlier delivery left behind is delivered', async () => {
    number++;
    writeFileSync(`${spoolFile()}.taken-1-1`, `${JSON.stringify({ state: 'done', workflow: 'default', key: 'h1', result: 5 })}\n`);
    const semel = new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
    const claim = await semel.claim('h1');
    assert.deepStrictEqual([claim.first, claim.result], [false, 5]);
});

test('a result that cannot be told is in the error, or in the spool', async () => {
    const broken = (url, init) => (/confirm/.test(url) ? Promise.reject(new Error('no network')) : fetch(url, init));
    const closed = new Semel({ url: daemon.url, fetch: broken });
    await assert.rejects(closed.once(() => 'sent', { key: 'untold:{n}' })({ n: 1 }), (error) => error instanceof Unreachable && error.result === 'sent');
    number++;
    const open = new Semel({ url: daemon.url, fetch: broken, failOpen: true, spool: spoolFile() });
    assert.strictEqual(await open.once(() => 'sent', { key: 'untold:{n}', leaseMs: 100 })({ n: 2 }), 'sent');
    const honest = new Semel({ url: daemon.url, failOpen: true, spool: spoolFile() });
    const [{ id, intent }] = (await daemon.get('/v1/intents?workflow=default&key=untold:2')).data;
    while ((await daemon.get(`/v1/intents/${id ?? intent}`)).state === 'sent') await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepStrictEqual(await honest.deliver(), { delivered: 1, left: 0 });
    assert.strictEqual((await honest.claim('untold:2', { input: { n: 2 } })).result, 'sent');
});
