/* The blocks of the README that need a framework or TypeScript. */
import assert from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import ts from 'typescript';
import daemons from '../test/daemon.js';
import readme from '../test/readme.js';

const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
let daemon, folder;
before(async () => {
    daemon = await new daemons.Daemon().start();
    folder = mkdtempSync(join(here, '.readme-'));
});
after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await daemon.end();
});

const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
const plain = ({ language, code }) => (language === 'ts' ? ts.transpileModule(code, { compilerOptions: options }).outputText : code);

for (const [i, block] of readme.blocks().filter(({ language, foreign }) => language === 'ts' || foreign).entries())
    test(`README, block ${i + 1} prints what it says`, async () => assert.strictEqual(await readme.printed(plain(block), folder, daemon.url), block.prints));

/* ---- types ---- */

/** The complaints of the compiler about a file, as `import` (mts) or `require` (cts) sees the package. */
function complaints(name, code) {
    const file = join(folder, name);
    writeFileSync(file, code);
    const program = ts.createProgram([file], {
        strict: true, noEmit: true, skipLibCheck: false, target: ts.ScriptTarget.ES2022, lib: ['lib.esnext.d.ts', 'lib.dom.d.ts'], types: [],
        module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
    });
    return ts.getPreEmitDiagnostics(program)
        .filter(({ file: at }) => at === undefined || !/node_modules\/(?!@semel)/.test(at.fileName))
        .map((one) => ts.flattenDiagnosticMessageText(one.messageText, ' '));
}

const uses = `
import { Semel, once, claim, onceTool, semelFetch, current, NoEffect, KeyReused, keyTemplate, canonical } from '@semel/client';
import { tool } from 'ai';
import { z } from 'zod';
const semel = new Semel({ mode: 'observe', failOpen: true, onWould: (would) => would.code.length });
const send = semel.once(async (input: { lead: string }) => ({ id: 5 }), { key: 'x:{lead}', onError: () => ({ effect: 'none' }) });
export const id: Promise<{ id: number }> = send({ lead: 'L-1' });
export const sync: (a: number, b: string) => Promise<string> = once((a: number, b: string) => b, { key: (a, b) => a.toFixed() + b.trim(), workflow: 'w' });
export async function byHand() {
    await using held = await claim<string>('k', { input: { a: 1 }, onCrash: 'retry' });
    if (held.first) held.result = 'done';
    await held.confirm('x').catch((error) => error instanceof KeyReused && error.differs?.join());
    return current()?.key;
}
const plain = tool({ inputSchema: z.object({ to: z.string() }), execute: async ({ to }) => to.length });
export const wrapped: typeof plain = onceTool(plain, { workflow: 'w', fields: ['to'] });
export const via: typeof fetch = semelFetch(fetch, { destination: 'slack' });
export const key: string = keyTemplate('x:{day}', { time: 'at', zone: 'Europe/Paris' })({ at: 0 }) + canonical([new NoEffect('no', { final: true }).final]);
`;

test('the types fit their use, from import and from require', () => {
    assert.deepStrictEqual(complaints('uses.mts', uses), []);
    assert.deepStrictEqual(complaints('uses.cts', uses), []);
});

test('the types see mistakes', () => {
    const mistakes = {
        mode: "new Semel({ mode: 'enfroce' });",
        argument: "once((n: number) => n, { key: '{n}' })('one');",
        result: "const r: Promise<string> = once((n: number) => n, { key: '{n}' })(1);",
        both: "once((n: number) => n, { key: '{n}', fields: ['n'] });",
        keyFunction: "once((n: number) => n, { key: (n) => n.trim() });",
        onCrash: "claim('k', { onCrash: 'maybe' });",
        destination: 'semelFetch(fetch, {});',
    };
    for (const [name, code] of Object.entries(mistakes))
        assert.strictEqual(complaints(`${name}.mts`, `import { Semel, once, claim, semelFetch } from '@semel/client';\n${code}\n`).length > 0, true, name);
});

test('every export has a type, and every type an export', async () => {
    const client = await import('@semel/client');
    const program = ts.createProgram([join(here, '../index.d.ts')], { types: [] });
    const checker = program.getTypeChecker();
    const declared = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(join(here, '../index.d.ts'))));
    const values = declared.filter((symbol) => symbol.flags & ts.SymbolFlags.Value).map((symbol) => symbol.name);
    assert.deepStrictEqual(values.sort(), Object.keys(client).sort());
});
