'use strict';
/* The code of the README, block by block, as it is pasted, with what it is said to print. */
const { execFile } = require('node:child_process');
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { promisify } = require('node:util');

const run = promisify(execFile);

/** [{language, code, prints, foreign}]: foreign is a block that imports more than the client. */
function blocks() {
    const text = readFileSync(join(__dirname, '../README.md'), 'utf8');
    return [...text.matchAll(/^```(js|ts)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(([, language, code, prints = '']) => ({
        language, code, prints, foreign: /from '(?!@semel\/client')/.test(code),
    }));
}

/** What a block prints in a process of its own. `folder` is where its imports are found. */
async function printed(code, folder, url) {
    const file = join(folder, `readme-${process.pid}-${printed.count++}.mjs`);
    writeFileSync(file, code);
    const { stdout } = await run(process.execPath, [file], { env: { ...process.env, SEMEL_URL: url, SEMEL_RUN: '', SEMEL_MODE: '', NO_COLOR: '1' } });
    return stdout;
}
printed.count = 0;

module.exports = { blocks, printed };
