'use strict';
/*
 * What was done while semel could not be reached: JSON lines, each on the disk before the act or before its result is given out.
 * It is a small ledger for the time of the outage: what it holds is not done again, by this process or the next one.
 *
 *     {"state":"begun","workflow":…,"key":…,"input":…,"pid":…}       before the act
 *     {"state":"done",…,"result":…}                                 it happened
 *     {"state":"failed",…,"effect":"none"|"unknown","final":…}       it did not, or nobody can tell
 *
 * `input` is its canonical text. Delivering takes the file away by renaming it, and what is left of an interrupted delivery is
 * still read. A writer that had opened the file before sees afterwards that its line went to one that is not there any more, and
 * writes it again; a line that is delivered twice changes nothing.
 */
const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { isAnswer } = require('./answers.js');
const { Canonical } = require('./canonical.js');
const { messageOf, writable } = require('./claim.js');
const { SemelError, InProgress, OutcomeUnknown, KeyReused, Refused, Fenced, Unreachable } = require('./errors.js');

const intentOf = ({ input, workflow, key, run, thread, action, event, epoch, question }) => ({
    workflow, key, input: input?.text, run, thread, action, event, epoch, question,
});

function nameOf(line) {
    const { workflow, key, input, thread, action, event, epoch, question } = line;
    if (isAnswer(line)) return JSON.stringify([workflow, [thread, epoch, event, question, action], 'answer']);
    return JSON.stringify(key === undefined ? [workflow, input] : [workflow, key, 'key']);
}

/* In a container the next process often has the same pid. */
const born = randomUUID();

function isBusy(line) {
    const { state, pid } = line;
    if (state !== 'begun') return false;
    if (pid === process.pid) return line.born === born;
    try {
        return process.kill(pid, 0);
    } catch (error) {
        return error.code === 'EPERM';
    }
}

function linesOf(file) {
    let text = '';
    try {
        text = fs.readFileSync(file, 'utf8');
    } catch (error) {
        if (error.code !== 'ENOENT') throw error;
    }
    return text.split('\n').flatMap((line) => {
        try {
            return line === '' ? [] : [JSON.parse(line)];
        } catch {
            return []; /* half a line that a crash left; it was never answered */
        }
    });
}

/** A new file is there after a power cut only if its folder was written too. Windows has no such thing. */
function syncFolder(folder) {
    if (process.platform === 'win32') return;
    const file = fs.openSync(folder, 'r');
    try {
        fs.fsyncSync(file);
    } finally {
        fs.closeSync(file);
    }
}

/** The last word on each intent; what is done stays done. */
function lastWords(lines) {
    const last = new Map();
    for (const line of lines) if (last.get(nameOf(line))?.state !== 'done') last.set(nameOf(line), line);
    return last;
}

class Spool {
    #path;
    #core;
    #delivering;
    #count = 0;

    constructor(file, core) {
        this.#path = path.resolve(file);
        this.#core = core;
    }

    /** What the spool knows of an intent: `{result}` when it was done, undefined when it may be begun; else it throws. */
    recall(claim, onCrash) {
        const before = lastWords(this.#files().flatMap(linesOf)).get(nameOf(intentOf(claim)));
        if (!before) return undefined;
        if (before.input !== claim.input?.text)
            throw new KeyReused('key_reused', 'This key was used with another input while semel could not be reached.', { differs: ['(input)'] });
        if (before.state === 'done') return { result: before.result };
        if (isBusy(before)) throw new InProgress('in_progress', 'Someone is doing it right now, without semel.');
        if (before.final) throw new Refused('refused', 'It was refused for good while semel could not be reached.', { error: before.error });
        if (before.effect !== 'none' && onCrash !== 'retry')
            throw new OutcomeUnknown('outcome_unknown', 'It was begun while semel could not be reached, and nobody can tell whether it happened.');
        return undefined;
    }

    /** Begins an act without semel; returns who settles it. */
    begin(claim) {
        const intent = intentOf(claim);
        this.#append({ state: 'begun', ...intent, pid: process.pid, born });
        return this.#holder(intent);
    }

    /** For an act that semel gave out, when its result could not be told. */
    keep(claim, result) {
        this.#append({ state: 'done', ...intentOf(claim), result });
    }

    /** Tells semel everything. Resolves to how many intents it heard of and how many are left; rejects when it does not answer. */
    deliver() {
        this.#delivering ??= this.#deliver().finally(() => (this.#delivering = undefined));
        return this.#delivering;
    }

    #holder(intent) {
        const failed = ({ effect = 'unknown', final = false, error } = {}) =>
            this.#append({ state: 'failed', ...intent, effect, final, error: messageOf(error) });
        return {
            sent() {},
            extend() {},
            confirm: (result) => this.#append({ state: 'done', ...intent, result: writable(result) }),
            fail: failed,
            release: () => failed({ effect: 'none' }),
        };
    }

    /** The line begins on a line of its own even if a crash left half of one before it. */
    #append(line) {
        for (;;) {
            const file = fs.openSync(this.#path, 'a', 0o600);
            try {
                const fresh = fs.fstatSync(file).size === 0;
                fs.writeFileSync(file, `\n${JSON.stringify(line)}\n`);
                fs.fsyncSync(file);
                if (fresh) syncFolder(path.dirname(this.#path));
                if (fs.statSync(this.#path, { throwIfNoEntry: false })?.ino === fs.fstatSync(file).ino) return;
            } finally {
                fs.closeSync(file);
            }
        }
    }

    /** What an interrupted delivery left, and the spool itself, oldest first. */
    #files() {
        const folder = path.dirname(this.#path);
        const name = path.basename(this.#path);
        const names = fs.readdirSync(folder).filter((file) => file === name || file.startsWith(`${name}.taken-`));
        const age = (file) => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
        return names.map((file) => path.join(folder, file)).sort((a, b) => age(a) - age(b));
    }

    async #deliver() {
        const sum = { delivered: 0, left: 0 };
        const taken = `${this.#path}.taken-${born}-${++this.#count}`;
        this.#move(this.#path, taken);
        const files = this.#files().filter((file) => file !== this.#path);
        try {
            for (const line of lastWords(files.flatMap(linesOf)).values()) {
                const heard = await this.#tell(line);
                if (!heard) this.#append(line);
                sum[heard ? 'delivered' : 'left']++;
            }
        } catch (error) {
            this.#move(taken, this.#path);
            throw error;
        }
        for (const file of files) fs.rmSync(file, { force: true });
        return sum;
    }

    /** Does nothing when the file is not there, or another one has the new name. */
    #move(from, to) {
        try {
            fs.linkSync(from, to);
            fs.unlinkSync(from);
        } catch (error) {
            if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
        }
    }

    /** True when semel has heard of it. What a process is still busy with stays. */
    async #tell(line) {
        const { state, input, pid, born: _, result, effect = 'unknown', final = false, error = 'its process ended', ...claim } = line;
        if (isBusy(line)) return false;
        const settle = ({ intent, fence }) =>
            state === 'done' ? this.#core.confirm(intent, { fence, result }) : this.#core.fail(intent, { fence, effect, final, error });
        try {
            const answer = await this.#core.claim({ ...claim, input: input === undefined ? undefined : new Canonical(input) });
            if (answer.answer === 'proceed') await settle(answer);
            return true;
        } catch (problem) {
            if (problem instanceof OutcomeUnknown) return state !== 'done' || settle(problem).then(() => true);
            if (problem instanceof InProgress || problem instanceof Fenced) return false;
            if (problem instanceof Unreachable || !(problem instanceof SemelError)) throw problem;
            process.emitWarning(`semel: what was done without it (${claim.workflow} ${claim.key}) was refused: ${problem.message}`);
            return true;
        }
    }
}

module.exports = { Spool };
