'use strict';
/*
 * The client: claims, functions that run once, and what follows when semel says no or nothing at all.
 */
const { AsyncLocalStorage } = require('node:async_hooks');
const answers = require('./answers.js');
const { Canonical, canonical, downstreamKey } = require('./canonical.js');
const { Claim, Holder } = require('./claim.js');
const { Core } = require('./core.js');
const { NoEffect, OutcomeUnknown, Fenced, Unreachable } = require('./errors.js');
const { semelFetch } = require('./fetch.js');
const { planOf, WORKFLOW } = require('./plan.js');
const { Spool } = require('./spool.js');
const { onceTool } = require('./tools.js');

const MODES = ['enforce', 'observe', 'off'];
const WAIT_MS = 30000;
const OBSERVE = { tries: 1, timeoutMs: 1000 };

const holding = new AsyncLocalStorage();

/** Inside a function that runs once: its claim. `current().key` goes to the destination, `current().signal` says when to stop. */
const current = () => holding.getStore();

class Semel {
    #spool;
    #flights = new Map();
    #onWould;

    constructor(options = {}) {
        const { env } = process;
        this.url = options.url ?? (env.SEMEL_URL || 'http://127.0.0.1:7363');
        this.token = options.token ?? (env.SEMEL_TOKEN || undefined);
        this.mode = options.mode ?? (env.SEMEL_MODE || 'enforce');
        if (!MODES.includes(this.mode)) throw new TypeError(`the mode has to be one of ${MODES.join(', ')}, not '${this.mode}'`);
        this.run = options.run ?? (env.SEMEL_RUN || undefined);
        this.workflow = options.workflow;
        this.core = new Core({ url: this.url, token: this.token, fetch: options.fetch });
        this.#onWould = options.onWould ?? (() => {});
        if (options.failOpen) this.#spool = new Spool(options.spool ?? 'semel-spool.jsonl', this.core);
    }

    /** Asks to do a thing once. The claim is `first` when it is yours to do; else it has the `result` of the first time. */
    claim(key, { workflow, input, run = this.run, thread, action, event, epoch, question, ...options } = {}) {
        const text = input === undefined ? undefined : new Canonical(canonical(input));
        const named = { key: key ?? undefined, thread, action, event, epoch, question };
        const home = answers.isAnswer(named) ? answers.WORKFLOW : this.workflow ?? WORKFLOW;
        return this.#begin({ workflow: workflow ?? home, input: text, run, ...named }, options);
    }

    /** Asks to answer a question once. The headers are those of the request with which semel forwarded it. */
    answerOnce(headers, { action = 'reply', ...options } = {}) {
        return this.claim(undefined, { ...answers.questionOf(headers), action, ...options });
    }

    /** The same function, which runs once per key: later and simultaneous calls get the result of the first. */
    once(fn, options = {}) {
        const plan = planOf(options, this);
        const semel = this;
        const once = async function (...args) {
            const work = () => fn.apply(this, args);
            if (semel.mode === 'off') return holding.run(alone(() => plan(args)), work);
            const claim = plan(args);
            const act = () => semel.#act(claim, options, work);
            return semel.mode === 'enforce' ? semel.#share(claim, act) : act();
        };
        return Object.defineProperty(once, 'name', { value: fn.name });
    }

    /** A tool of an agent whose effect is one, however often it is called: AI SDK, LangChain, or anything with `invoke`. */
    onceTool(tool, options) {
        return onceTool(this, tool, options);
    }

    /** A fetch that goes through semel's `/to/{destination}/…`. */
    semelFetch(fetch, options) {
        return semelFetch(this, fetch, options);
    }

    /** Tells semel what was done while it could not be reached. Claims do this by themselves before they ask. */
    async deliver() {
        return this.#spool ? this.#spool.deliver() : { delivered: 0, left: 0 };
    }

    /** Calls of this process that mean the same at the same time are one. */
    #share({ workflow, key, input }, act) {
        const id = JSON.stringify([workflow, key, input?.text]);
        if (!this.#flights.has(id)) this.#flights.set(id, act().finally(() => this.#flights.delete(id)));
        return this.#flights.get(id);
    }

    async #act(body, options, work) {
        const claim = await this.#begin(body, options);
        if (!claim.first) return claim.result;
        let result;
        try {
            result = await holding.run(claim, work);
        } catch (error) {
            /* Should this not be heard either, the lease ends and the same is found out. */
            await claim.fail({ ...judge(error, claim, options), error }).catch(() => {});
            throw error;
        }
        await claim.confirm(result);
        return result;
    }

    async #begin(body, options) {
        if (this.mode === 'off') return alone(() => body);
        if (this.mode === 'observe') return (await this.#observe(body, options)) ?? alone(() => body);
        if (!this.#spool) return this.#ask(body, options);
        try {
            await this.#spool.deliver();
            /* What could not be delivered yet is nothing that semel knows of. */
            return this.#recall(body, options) ?? (await this.#ask(body, options));
        } catch (error) {
            if (!(error instanceof Unreachable)) throw error;
            return this.#recall(body, options) ?? alone(() => body, { holder: this.#spool.begin(body), acting: !options.twoPhase });
        }
    }

    #recall(body, { onCrash }) {
        const known = this.#spool.recall(body, onCrash);
        return known && new Claim({ first: false, result: known.result });
    }

    /** A claim only when it would have been granted. */
    async #observe(body, options) {
        try {
            const claim = await this.#ask(body, { ...options, waitMs: 0, call: OBSERVE });
            if (claim.first) return claim;
            this.#tell(body, { code: 'replay', result: claim.result });
        } catch (error) {
            this.#tell(body, { code: error.code, error });
        }
        return undefined;
    }

    #tell({ workflow, key }, would) {
        this.#onWould({ workflow, key, ...would });
    }

    /** In mode observe nothing that a holder says stops anyone. */
    #holder(body, answer) {
        const holder = new Holder(this.core, answer, this.#spool && ((result) => this.#spool.keep(body, result)));
        if (this.mode !== 'observe') return holder;
        const quiet = (name) => (...args) => holder[name](...args).catch((error) => this.#tell(body, { code: error.code, error }));
        return Object.fromEntries(['sent', 'confirm', 'fail', 'extend', 'release'].map((name) => [name, quiet(name)]));
    }

    /** Always in two phases, so that a claim whose answer was lost is a question to nobody; `sent` follows at once unless asked for. */
    async #ask(body, options) {
        const { leaseMs, waitMs = WAIT_MS, keep, twoPhase = false, onCrash, call } = options;
        const askedAt = performance.now();
        let answer;
        try {
            answer = await this.core.claim({ ...body, two_phase: true, lease_ms: leaseMs, wait_ms: waitMs, keep }, call);
        } catch (error) {
            if (onCrash !== 'retry' || !(error instanceof OutcomeUnknown) || !error.intent) throw error; /* without: it is another's */
            await this.#declareHarmless(error);
            return this.#ask(body, { ...options, onCrash: undefined });
        }
        if (answer.answer === 'replay')
            return new Claim({ first: false, result: answer.result, intent: answer.intent, confirmedAt: answer.confirmed_at });
        const claim = new Claim({
            first: true, key: answer.downstream_key, intent: answer.intent, fence: answer.fence, acting: false,
            holder: this.#holder(body, answer),
            leaseMs: answer.lease_ms, askedAt,
        });
        return twoPhase ? claim : claim.sent();
    }

    /** onCrash 'retry': the caller says that a repetition does no harm. Whoever is second is fenced and has to ask again anyway. */
    async #declareHarmless({ intent, fence }) {
        const error = "it may have happened; repeated because of onCrash: 'retry'";
        await this.core.fail(intent, { fence, effect: 'none', all_attempts: true, error }).catch((problem) => {
            if (!(problem instanceof Fenced)) throw problem;
        });
    }
}

/** A claim of someone who acts without semel's word. Its key is that of the space `main`, if there is one. */
function alone(plan, more) {
    let key;
    try {
        const body = plan();
        const named = body.key ?? (answers.isAnswer(body) ? answers.answerKey(body) : undefined);
        key = named && downstreamKey('main', body.workflow, named);
    } catch {
        /* Mode off must not fail where nothing is asked. */
    }
    return new Claim({ first: true, key, ...more });
}

/** What an error says about the effect. */
function judge(error, claim, { onError }) {
    const said = onError?.(error);
    if (said) return said;
    if (error instanceof NoEffect) return { effect: 'none', final: error.final };
    return { effect: claim.acting ? 'unknown' : 'none' };
}

module.exports = { Semel, current };
