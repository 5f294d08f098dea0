'use strict';
/*
 * A claim: what semel answered, and how its holder says what became of it. While it is held, a heartbeat keeps the lease.
 */
const { Fenced, SemelError, Unreachable } = require('./errors.js');

const ERROR_SIZE_MAX = 1000;
const HOLD_MS_MAX = 3600000;

/** For whoever acts without a ledger: mode off, or an answer that mode observe let pass. */
const nobody = { sent() {}, confirm() {}, fail() {}, extend() {}, release() {} };

/** An error's message, short and well-formed. */
const messageOf = (error) => Buffer.from(String(error?.message ?? error ?? '').slice(0, ERROR_SIZE_MAX)).toString().replace(/\0/g, '');

/** The result if JSON can hold it, else null and a warning: the act is done, and must not become unknown for this. */
function writable(result) {
    try {
        JSON.stringify(result);
        return result;
    } catch (error) {
        process.emitWarning(`semel: a result cannot be kept (${error.message}); repetitions will be given null`);
        return null;
    }
}

/** Settles through the API. `keep` is for a result that semel could not be told. */
class Holder {
    #core;
    #intent;
    #fence;
    #keep;

    constructor(core, { intent, fence }, keep) {
        this.#core = core;
        this.#intent = intent;
        this.#fence = fence;
        this.#keep = keep;
    }

    sent() {
        return this.#core.sent(this.#intent, { fence: this.#fence });
    }

    async confirm(given) {
        const result = writable(given);
        try {
            return await this.#core.confirm(this.#intent, { fence: this.#fence, result });
        } catch (error) {
            if (error instanceof Unreachable && this.#keep) return this.#keep(result);
            if (error.code !== 'too_large' && error.code !== 'malformed') throw error;
            process.emitWarning(`semel: a result cannot be kept (${error.message}); repetitions will be given null`);
            return this.#core.confirm(this.#intent, { fence: this.#fence, result: null });
        }
    }

    fail({ effect = 'unknown', final = false, error } = {}) {
        return this.#core.fail(this.#intent, { fence: this.#fence, effect, final, error: messageOf(error) });
    }

    extend(leaseMs, options) {
        return this.#core.extend(this.#intent, { fence: this.#fence, lease_ms: leaseMs }, options);
    }

    release() {
        return this.#core.release(this.#intent, { fence: this.#fence });
    }
}

class Claim {
    #holder;
    #held;
    #leaseMs;
    #deadline = Infinity;
    #timer;
    #lost = new AbortController();

    /** Not for callers: `semel.claim()` makes claims. */
    constructor({ first, key, result, intent, fence, confirmedAt, holder = nobody, leaseMs, askedAt, acting = true }) {
        this.first = first;
        this.key = key;
        this.result = result;
        this.intent = intent;
        this.fence = fence;
        this.confirmedAt = confirmedAt;
        this.#holder = holder;
        this.#held = first;
        this.acting = acting;
        if (first && leaseMs !== undefined) this.#beat(leaseMs, askedAt);
    }

    /** Aborted when the lease is lost: whatever is not done yet should not be done any more. */
    get signal() {
        return this.#lost.signal;
    }

    /** From now on it may have happened. Act only after this. */
    async sent() {
        try {
            this.#check();
            await this.#holder.sent();
            this.acting = true;
            this.#check();
        } catch (error) {
            this.#lose(error);
            throw error;
        }
        return this;
    }

    /** It happened. `result` is given to everyone who asks again. */
    async confirm(result = this.result) {
        this.result = result;
        try {
            await this.#settle('confirm', result);
        } catch (error) {
            if (error instanceof SemelError) error.result = result;
            throw error;
        }
        return this;
    }

    /** It failed: `effect` 'none' when it surely did nothing, else 'unknown'; `final` when it never shall. */
    async fail(how) {
        await this.#settle('fail', how);
        return this;
    }

    /** Given back untouched, before `sent`. */
    async release() {
        await this.#settle('release');
        return this;
    }

    /** The lease begins anew. The heartbeat does this by itself. */
    async extend(leaseMs, options) {
        const askedAt = performance.now();
        const answer = await this.#holder.extend(leaseMs, options);
        this.#deadline = askedAt + (leaseMs ?? this.#leaseMs ?? Infinity);
        return answer;
    }

    /** Leaving the scope settles what is still held: confirmed if `result` was set, given back if nothing was sent, else unknown. */
    async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
        if (!this.#held) return;
        if (this.result !== undefined) await this.confirm();
        else if (!this.acting) await this.release();
        else await this.fail({ error: 'the scope was left without a result' });
    }

    async #settle(how, what) {
        if (!this.#held) throw new Fenced('fenced', 'This claim is not held, or was settled before.', { intent: this.intent, fence: this.fence });
        clearInterval(this.#timer);
        await this.#holder[how](what);
        this.#held = false;
    }

    #check() {
        if (performance.now() < this.#deadline) return;
        throw new Fenced('fenced', 'The lease was over before the act; nothing was done.', { intent: this.intent, fence: this.fence });
    }

    /** A late word is still sent: it counts as long as nobody has claimed since, and the fence sees to that. */
    #lose(reason) {
        clearInterval(this.#timer);
        this.#lost.abort(reason);
    }

    #beat(leaseMs, askedAt) {
        this.#leaseMs = leaseMs;
        this.#deadline = askedAt + leaseMs;
        const every = leaseMs / 3;
        let left = Math.ceil(HOLD_MS_MAX / every);
        this.#timer = setInterval(() => {
            if (left-- <= 0) return this.#lose(new Error('held for an hour'));
            return this.extend(undefined, { tries: 1, timeoutMs: Math.ceil(every) }).catch((error) => {
                if (error instanceof Fenced || performance.now() >= this.#deadline) this.#lose(error);
            });
        }, every).unref();
    }
}

module.exports = { Claim, Holder, messageOf, writable };
