'use strict';
/*
 * A fetch that goes through semel: https://api.example.com/v1/send becomes {semel}/to/{destination}/v1/send, where it is forwarded
 * once. Headers and body stay as they are; `Authorization` is the destination's.
 */

function mapped(url, semel, destination) {
    const { pathname, search } = new URL(url);
    return `${String(semel).replace(/\/+$/, '')}/to/${encodeURIComponent(destination)}${pathname}${search}`;
}

function semelFetch(semel, fetch, { destination, key }) {
    if (typeof destination !== 'string' || destination === '') throw new TypeError('name the destination');
    if (semel.mode !== 'enforce') return fetch;
    return async (input, init = {}) => {
        const isRequest = typeof input === 'object' && 'url' in input;
        const url = isRequest ? input.url : input;
        const headers = new Headers(init.headers ?? (isRequest ? input.headers : undefined));
        const own = { 'idempotency-key': key?.(String(url), init), 'semel-token': semel.token, 'semel-run': semel.run };
        for (const [name, value] of Object.entries(own)) if (value !== undefined && !headers.has(name)) headers.set(name, value);
        const target = mapped(url, semel.url, destination);
        return fetch(isRequest ? new Request(target, input) : target, { ...init, headers });
    };
}

module.exports = { semelFetch };
