'use strict';
/*
 * The calls of the HTTP API, one method each, and nothing more. Each is safe to repeat, so one that got no answer is repeated.
 * fetch keeps its connections alive by itself.
 */
const { randomUUID } = require('node:crypto');
const { canonical } = require('./canonical.js');
const { Unreachable, errorOf } = require('./errors.js');

const PAUSES_MS = [50, 200, 800];
const TRIES = PAUSES_MS.length + 1;
const TIMEOUT_MS = 10000;

/** A pause that shortens or lengthens by a quarter, so that callers that failed together do not come back together. */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms * (0.75 + Math.random() / 2)));

class Core {
    #url;
    #headers;
    #fetch;
    #down = false;

    constructor({ url, token, fetch = globalThis.fetch }) {
        this.#url = String(url).replace(/\/+$/, '');
        this.#headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) };
        this.#fetch = fetch;
    }

    /** Ask to do a thing once. During an outage each claim is one try: only what was done has to be told at all costs. */
    claim(body, options) {
        const nonce = body.two_phase ? randomUUID() : undefined; /* sent again with it, a claim whose answer was lost gets that answer */
        return this.#post('/v1/claims', canonical({ ...body, nonce }), { waitMs: body.wait_ms, tries: this.#down ? 1 : TRIES, ...options });
    }

    /** From now on it may have happened. */
    sent(intent, body, options) {
        return this.#post(`/v1/claims/${intent}/sent`, JSON.stringify(body), options);
    }

    /** It happened; here is the result. */
    confirm(intent, body, options) {
        return this.#post(`/v1/claims/${intent}/confirm`, JSON.stringify(body), options);
    }

    /** It failed, with effect 'none' or 'unknown'. */
    fail(intent, body, options) {
        return this.#post(`/v1/claims/${intent}/fail`, JSON.stringify(body), options);
    }

    /** The lease begins anew. */
    extend(intent, body, options) {
        return this.#post(`/v1/claims/${intent}/extend`, JSON.stringify(body), options);
    }

    /** Given back untouched. */
    release(intent, body, options) {
        return this.#post(`/v1/claims/${intent}/release`, JSON.stringify(body), options);
    }

    async #post(path, text, { waitMs = 0, tries = TRIES, timeoutMs = TIMEOUT_MS } = {}) {
        for (let number = 1; ; number++) {
            try {
                const answer = await this.#once(path, text, timeoutMs + waitMs);
                this.#down = false;
                return answer;
            } catch (error) {
                this.#down = error instanceof Unreachable && number >= tries;
                if (!(error instanceof Unreachable) || number >= tries) throw error;
                await pause(PAUSES_MS[number - 1]);
            }
        }
    }

    async #once(path, body, timeoutMs) {
        let response, text;
        try {
            response = await this.#fetch(this.#url + path, {
                method: 'POST', headers: this.#headers, body, redirect: 'error', signal: AbortSignal.timeout(timeoutMs),
            });
            text = await response.text();
        } catch (error) {
            throw new Unreachable(`semel at ${this.#url} did not answer: ${error.cause?.message ?? error.message}`, { cause: error });
        }
        return this.#read(response, text);
    }

    #read(response, text) {
        let answer;
        try {
            answer = JSON.parse(text);
        } catch (error) {
            throw new Unreachable(`what answers at ${this.#url} is not semel (status ${response.status})`, { cause: error });
        }
        if (response.ok) return answer;
        if (response.status >= 500 || response.status === 408) throw new Unreachable(answer.detail ?? answer.title, { problem: answer });
        throw errorOf({ ...answer, code: answer.code ?? `http_${response.status}`, status: response.status });
    }
}

module.exports = { Core };
