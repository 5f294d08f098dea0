'use strict';
/*
 * What can go wrong, as classes. `code` is semel's own and stable; `instanceof` and `code` say the same thing.
 */

class SemelError extends Error {
    /** `more` may carry status, intent, fence, cause and whatever else the problem had. */
    constructor(code, message, more = {}) {
        const { cause, ...members } = more;
        super(message, cause === undefined ? undefined : { cause });
        Object.assign(this, members);
        this.name = new.target.name;
        this.code = code;
    }
}

/** Someone is doing it right now, and did not finish while we waited. Try again later. */
class InProgress extends SemelError {}
/** Nobody can tell whether it happened. Do not act; find out, then settle it with its fence. */
class OutcomeUnknown extends SemelError {}
/** The key was used for something else; `differs` names the fields. */
class KeyReused extends SemelError {}
/** It did not happen and will not under this key. */
class Refused extends SemelError {}
/** It was settled so long ago that its result is gone. */
class Expired extends SemelError {}
/** You do not hold the claim any more. `result` is what your act returned, if it did. */
class Fenced extends SemelError {}
/** No key can be made: `part` is 'template' or 'input', and `field` the one to blame. */
class InvalidKey extends SemelError {}

/** semel did not answer, or could not write. Nothing was recorded, or nobody knows whether it was; the call is safe to repeat. */
class Unreachable extends SemelError {
    constructor(message, more) {
        super('unreachable', message, more);
    }
}

/** For your own code to throw: it failed and surely had no effect. `final`: and it never shall. */
class NoEffect extends Error {
    constructor(message, { final = false, cause } = {}) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'NoEffect';
        this.final = final;
    }
}

const classes = {
    in_progress: InProgress,
    outcome_unknown: OutcomeUnknown,
    key_reused: KeyReused,
    refused: Refused,
    expired: Expired,
    fenced: Fenced,
    already_sent: Fenced,
    differs: Fenced,
};

/** The error for an application/problem+json body (RFC 9457). */
function errorOf(problem) {
    const { type, title, detail, code, hint, request_id, ...more } = problem;
    const Class = classes[code] ?? SemelError;
    return new Class(code, [detail ?? title, hint].filter(Boolean).join(' '), { ...more, requestId: request_id });
}

module.exports = { SemelError, InProgress, OutcomeUnknown, KeyReused, Refused, Expired, Fenced, InvalidKey, Unreachable, NoEffect, errorOf };
