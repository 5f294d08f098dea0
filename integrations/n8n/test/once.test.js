'use strict';
/* The nodes as n8n calls them, in a context that has what they use of n8n's, against a real semel. */
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Daemon } = require('../../../sdk/node/test/daemon.js');
const { Once } = require('../dist/nodes/Once/Once.node.js');
const { OnceDone } = require('../dist/nodes/OnceDone/OnceDone.node.js');
const { SemelApi } = require('../dist/credentials/SemelApi.credentials.js');
const manifest = require('../package.json');

let daemon;
before(async () => {
    daemon = await new Daemon().start();
});
after(() => daemon.end());

/** `lose` is the number of the answer that does not come back. */
function contextOf(items, parameters, { continueOnFail = false, lose } = {}) {
    let calls = 0;
    return {
        getInputData: () => items,
        getNodeParameter: (name, i, fallback) => {
            const given = name in parameters ? parameters[name] : fallback;
            return typeof given === 'function' ? given(items[i].json) : given;
        },
        getCredentials: async () => ({ url: `${daemon.url}/`, token: '' }),
        getExecutionId: () => '17',
        getNode: () => ({ name: 'Once', type: 'once', typeVersion: 1, position: [0, 0], parameters: {} }),
        continueOnFail: () => continueOnFail,
        helpers: {
            async httpRequestWithAuthentication(credentials, options) {
                assert.strictEqual(credentials, 'semelApi');
                const response = await fetch(options.url, { method: options.method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(options.body) });
                if (calls++ === lose) throw new Error('socket hang up');
                return { statusCode: response.status, body: await response.json() };
            },
        },
    };
}

const ask = (items, parameters, options) =>
    new Once().execute.call(contextOf(items, { workflow: 'w', wait: 10, lease: 60, confirm: false, ...parameters }, options));
const done = (items, parameters) =>
    new OnceDone().execute.call(contextOf(items, { what: 'confirm', intent: (json) => json.semel.intent, fence: (json) => json.semel.fence, ...parameters }));
const lead = (id) => ({ json: { lead_id: id } });
const keyed = { key: (json) => `lead_${json.lead_id}` };

test('the first goes to First time, its duplicate gets the result from Already done', async () => {
    const [first, already] = await ask([lead(1), lead(2)], keyed);
    assert.deepStrictEqual([first.length, already.length], [2, 0]);
    assert.deepStrictEqual([first[1].json.lead_id, first[1].pairedItem], [2, { item: 1 }]);
    assert.match(first[0].json.semel.downstream_key, /^sml-/);
    const waiting = ask([lead(1)], keyed);
    const [passed] = await done(first, { result: (json) => ({ message: `m-${json.lead_id}` }) });
    assert.deepStrictEqual(passed[0].json, first[0].json);
    const [none, again] = await waiting;
    assert.deepStrictEqual([none.length, again[0].json.lead_id, again[0].json.semel.result], [0, 1, { message: 'm-1' }]);
});

test('done at once: a second execution never gets through', async () => {
    assert.strictEqual((await ask([lead(3)], { ...keyed, confirm: true }))[0].length, 1);
    const [first, already] = await ask([lead(3)], { ...keyed, confirm: true });
    assert.deepStrictEqual([first.length, already.length], [0, 1]);
});

test('what nobody can tell stops the execution, or goes on as an error and never as First time', async () => {
    const [first] = await ask([lead(4)], keyed);
    await done(first, { what: 'unknown', error: 'time-out' });
    await assert.rejects(ask([lead(4)], keyed), /outcome_unknown/);
    const [none, already] = await ask([lead(4)], keyed, { continueOnFail: true });
    assert.strictEqual(none.length, 0);
    assert.match(already[0].json.semel.error, /outcome_unknown/);
});

test('what surely did not happen is tried again, or never', async () => {
    const [first] = await ask([lead(5)], keyed);
    await done(first, { what: 'none', error: 'refused' });
    const [second] = await ask([lead(5)], keyed);
    assert.strictEqual(second[0].json.semel.fence, 2);
    await done(second, { what: 'never', error: 'unsubscribed' });
    await assert.rejects(ask([lead(5)], keyed), /refused/);
});

test('the same key with another input is an error', async () => {
    const [first] = await ask([lead(6)], { ...keyed, input: '{"amount":1}' });
    await done(first, { result: '{"ok":true}' });
    await assert.rejects(ask([lead(6)], { ...keyed, input: { amount: 2 } }), /key_reused/);
    assert.deepStrictEqual((await ask([lead(6)], { ...keyed, input: { amount: 1 } }))[1][0].json.semel.result, { ok: true });
});

test('an answer that was lost costs nothing', async () => {
    for (const [n, lose] of [[7, 0], [8, 1]]) {
        const [first] = await ask([lead(n)], { ...keyed, wait: 0 }, { lose });
        assert.deepStrictEqual([first.length, first[0].json.semel.fence], [1, 1]);
    }
});

test('a late word is refused', async () => {
    const [first] = await ask([lead(9)], keyed);
    await done(first, { what: 'none', error: '' });
    const [second] = await ask([lead(9)], keyed);
    await assert.rejects(done(first, {}), /fenced/);
    await done(second, {});
});

test('n8n finds what the package says', () => {
    assert.ok(manifest.keywords.includes('n8n-community-node-package'));
    assert.deepStrictEqual(manifest.n8n.nodes.map((path) => path.replace(/.*\/|\.node\.js/g, '')), ['Once', 'OnceDone']);
    const { outputs, outputNames, credentials } = new Once().description;
    assert.deepStrictEqual([outputs.length, outputNames, credentials[0].name], [2, ['First time', 'Already done'], new SemelApi().name]);
    for (const path of [...manifest.n8n.nodes, ...manifest.n8n.credentials]) require(`../${path}`);
});
