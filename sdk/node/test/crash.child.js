'use strict';
/* A worker that sends one mail, as a line of a file, and may die at a chosen point: crash.child.js OUTBOX KEY POINT ONCRASH. */
const { appendFileSync } = require('node:fs');
const { once, current } = require('..');

const [, , outbox, key, point, onCrash] = process.argv;
const dieAt = (here) => here === point && process.kill(process.pid, 'SIGKILL');

const send = once(
    async ({ lead }) => {
        dieAt('before sent');
        await current().sent();
        dieAt('after sent');
        appendFileSync(outbox, `${lead}\n`);
        dieAt('after the effect');
        return { message_id: 'm-1' };
    },
    { key: 'crash:{lead}', twoPhase: true, leaseMs: point === 'never' ? 30000 : 4000, onCrash },
);

send({ lead: key }).then(
    (result) => console.log(JSON.stringify(result)),
    (error) => console.log(error.code),
);
