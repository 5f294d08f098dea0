'use strict';
const assert = require('node:assert');
const { mkdirSync, symlinkSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, test } = require('node:test');
const { Daemon } = require('./daemon.js');
const { blocks, printed } = require('./readme.js');

let daemon;
before(async () => {
    daemon = await new Daemon().start();
    mkdirSync(join(daemon.folder, 'node_modules/@semel'), { recursive: true });
    symlinkSync(join(__dirname, '..'), join(daemon.folder, 'node_modules/@semel/client'));
});
after(() => daemon.end());

for (const [i, { code, prints }] of blocks().filter(({ language, foreign }) => language === 'js' && !foreign).entries())
    test(`README, block ${i + 1} prints what it says`, async () => assert.strictEqual(await printed(code, daemon.folder, daemon.url), prints));

test('the README has blocks to check', () => assert.ok(blocks().filter(({ prints }) => prints !== '').length >= 6));

test('the package says the same to require as to import', async () => {
    const code = "import { createRequire } from 'node:module'; import * as esm from '@semel/client';\n" +
        "const cjs = createRequire(import.meta.url)('@semel/client'); console.log(cjs.once === esm.once && typeof esm.once);";
    assert.strictEqual(await printed(code, daemon.folder, daemon.url), 'function\n');
});
