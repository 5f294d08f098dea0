'use strict';
/* The cases that every implementation of keys and fingerprints passes. */
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { test } = require('node:test');
const { answerKey } = require('../src/answers.js');
const { canonical, fingerprint, downstreamKey, sha256, without } = require('../src/canonical.js');
const { keyTemplate } = require('../src/key.js');
const { BINARY } = require('./daemon.js');

/** JSON in which whole numbers of 16 digits and more become BigInts, so that they keep them. */
function readLossless(file) {
    const marked = readFileSync(join(__dirname, '../../conformance', file), 'utf8').replace(
        /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g,
        (found) => (found.startsWith('"') ? found : `{"$big":"${found}"}`),
    );
    return JSON.parse(marked, (_, value) => (value?.$big === undefined ? value : BigInt(value.$big)));
}

for (const c of readLossless('keys.json').cases) {
    test(`key: ${c.name}`, () => {
        const make = () => keyTemplate(c.template, { zone: c.zone, time: c.time })(c.input, c.now && Date.parse(c.now));
        if (c.key !== undefined) return assert.strictEqual(make(), c.key);
        return assert.throws(make, (error) => error.code === 'invalid_key' && error.part === c.error && (c.field === undefined || error.field === c.field));
    });
}

const { fingerprints, downstream } = readLossless('fingerprints.json');

for (const c of fingerprints) {
    test(`fingerprint: ${c.name}`, () => {
        const covered = canonical(without(c.input, c.ignore));
        assert.strictEqual(covered, c.canonical);
        assert.strictEqual(sha256(covered), c.sha256);
        assert.deepStrictEqual(fingerprint(c.input, { ignore: c.ignore, pepper: c.pepper }), c.fields ? { whole: c.whole, fields: c.fields } : { whole: c.whole });
    });
}

test('downstream keys', () => {
    assert.ok(downstream.length > 0);
    for (const c of downstream) assert.strictEqual(downstreamKey(c.space, c.workflow, c.key), c.downstream);
});

test('what would look alike is refused', () => {
    for (const value of [2 ** 53, -(2 ** 60), NaN, Infinity, new Map([[1, 2]]), new Set([1]), new Error('x'), Promise.resolve(1), '\ud800'])
        assert.throws(() => canonical({ value }), TypeError);
    const circular = {};
    circular.self = circular;
    assert.throws(() => canonical(circular), TypeError);
});

test('a value is read as JSON reads it', () => {
    class Lead {
        id = 7;
    }
    const value = { at: new Date(0), gone: undefined, call() {}, list: [undefined, 1n], lead: new Lead() };
    assert.strictEqual(canonical(value), '{"at":"1970-01-01T00:00:00.000Z","lead":{"id":7},"list":[null,1]}');
});

/* Against the server's own implementation, with what nobody thought of. The zones are those whose rules have not changed lately: each side has the
 * rules of its own ICU. */
test('random inputs make the keys that `semel key` makes', () => {
    let seed = Number(process.env.SEED ?? Date.now() % 1e9);
    const random = (n) => {
        seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
        return Math.floor((seed / 2 ** 32) * n);
    };
    const pick = (list) => list[random(list.length)];
    const time = () => pick([random(4e9) - 1e9, new Date(random(4e9) * 1000).toISOString(), new Date(random(4e9) * 1000).toISOString().slice(0, 10), random(4e12)]);
    const text = () => Array.from({ length: 1 + random(6) }, () => pick(['a', ' ', ':', '%', '\u0301', 'é', '\u00a0', '😀', '\u200b', 'Å', '|', '\t', '0'])).join('');
    for (let i = 0; i < 100; i++) {
        const from = seed;
        const zone = pick(['UTC', 'Europe/Paris', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Pacific/Apia', 'America/St_Johns']);
        const template = `{v}:{n}|{${pick(['day', 'week', 'month', 'quarter', 'hour', 'window:90m', 'window:36s', 'billing:31', 'billing:1'])}} {hash}`;
        const input = { at: time(), v: text(), n: pick([random(1e9), random(1e9) / 1e5, -random(9) * 10 ** (random(35) - 20), random(2) === 0]) };
        const { status, stdout } = spawnSync(BINARY, ['key', template, '--time', 'at', '--zone', zone, '--input', JSON.stringify(input)], { encoding: 'utf8' });
        let ours;
        try {
            ours = keyTemplate(template, { time: 'at', zone })(input);
        } catch (error) {
            assert.strictEqual(error.code, 'invalid_key');
        }
        assert.strictEqual(ours, status === 0 ? stdout.slice(0, -1) : undefined, `SEED=${from} ${zone} ${template} ${JSON.stringify(input)}`);
    }
});

for (const c of readLossless('answers.json').cases) {
    test(`answer: ${c.name}`, () => assert.strictEqual(answerKey(c), c.key));
}
