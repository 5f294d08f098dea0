'use strict';
/*
 * @semel/client. The functions use a client that is made from SEMEL_URL, SEMEL_TOKEN, SEMEL_MODE and SEMEL_RUN when it is first
 * needed, or the `client` that they are given.
 */
const { answerKey } = require('./src/answers.js');
const { canonical, fingerprint, downstreamKey } = require('./src/canonical.js');
const { errorOf, ...errors } = require('./src/errors.js');
const { keyTemplate } = require('./src/key.js');
const { Semel, current } = require('./src/semel.js');

let shared;
const clientOf = (options) => options?.client ?? (shared ??= new Semel());

module.exports = {
    Semel,
    once: (fn, options) => clientOf(options).once(fn, options),
    claim: (key, options) => clientOf(options).claim(key, options),
    answerOnce: (headers, options) => clientOf(options).answerOnce(headers, options),
    onceTool: (tool, options) => clientOf(options).onceTool(tool, options),
    semelFetch: (fetch, options) => clientOf(options).semelFetch(fetch, options),
    current,
    ...errors,
    keyTemplate,
    answerKey,
    canonical,
    fingerprint,
    downstreamKey,
};
