'use strict';
/*
 * One text for one value: RFC 8785 (JCS), and the hashes over it. Pure. sdk/conformance holds the cases.
 *
 * Two things are refused because they would make different values look alike: whole numbers from 2^53 on, whose digits a double
 * may have lost (a BigInt keeps them), and objects such as Map or Error whose contents JSON does not see.
 */
const { createHash } = require('node:crypto');

const DEPTH_MAX = 64;
const FIELDS_MAX = 64;
const FIELDS_SIZE_MAX = 16 * 1024;

const dropped = (value) => value === undefined || typeof value === 'function' || typeof value === 'symbol';

/** What JSON sees of a value: a Date is its text. */
const seen = (value) => (typeof value?.toJSON === 'function' ? value.toJSON() : value);

function text(value) {
    if (/\p{Surrogate}/u.test(value)) throw new TypeError('a text holds half of a surrogate pair');
    return JSON.stringify(value);
}

function number(value) {
    if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON number`);
    if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21)
        throw new TypeError(`${value} may have lost digits: use a BigInt or a text`);
    return JSON.stringify(value);
}

function object(value, depth) {
    const names = Object.keys(value);
    const proto = Object.getPrototypeOf(value);
    if (names.length === 0 && proto !== null && proto !== Object.prototype && proto.constructor?.name !== 'Object')
        throw new TypeError(`JSON does not see what is in a ${proto.constructor?.name}`);
    const members = names.sort().filter((name) => !dropped(seen(value[name])));
    return `{${members.map((name) => `${text(name)}:${canonical(value[name], depth + 1)}`).join(',')}}`;
}

/** A value that is canonical text already, to be written into others as it is. */
class Canonical {
    constructor(text) {
        this.text = text;
    }
}

/** The canonical JSON of a value. Members that are undefined are left out, as JSON.stringify does. */
function canonical(given, depth = 1) {
    if (given instanceof Canonical) return given.text;
    const value = seen(given);
    if (value === null || dropped(value)) return 'null';
    if (depth > DEPTH_MAX) throw new TypeError(`deeper than ${DEPTH_MAX} levels, or circular`);
    if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`;
    switch (typeof value) {
        case 'string': return text(value);
        case 'number': return number(value);
        case 'object': return object(value, depth);
        default: return String(value); /* boolean, bigint */
    }
}

/** SHA-256 in hex. */
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** SHA-256 over parts, each behind its length in bytes, so that no two lists of parts look alike. */
function hashParts(...parts) {
    const hash = createHash('sha256');
    for (const part of parts) {
        const bytes = Buffer.from(part);
        const size = Buffer.alloc(8);
        size.writeBigUInt64BE(BigInt(bytes.length));
        hash.update(size).update(bytes);
    }
    return hash.digest('hex');
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Without some of its top-level fields. */
function without(input, ignore = []) {
    if (!isObject(input) || ignore.length === 0) return input;
    return Object.fromEntries(Object.entries(input).filter(([name]) => !ignore.includes(name)));
}

/** Whether two inputs mean the same: `whole`, and a short hash per field unless there are too many. */
function fingerprint(input, { ignore = [], pepper = '' } = {}) {
    const covered = without(seen(input), ignore);
    const whole = hashParts(pepper, canonical(covered));
    if (!isObject(covered)) return { whole };
    const fields = {};
    for (const [name, value] of Object.entries(covered))
        if (!dropped(seen(value))) fields[name] = hashParts(pepper, name, canonical(value)).slice(0, 16);
    const fits = Object.keys(fields).length <= FIELDS_MAX && Buffer.byteLength(canonical(fields)) <= FIELDS_SIZE_MAX;
    return fits ? { whole, fields } : { whole };
}

/** The key for the destination: the same for every attempt. */
const downstreamKey = (space, workflow, key) => `sml-${hashParts('semel-downstream-1', space, workflow, key).slice(0, 32)}`;

module.exports = { Canonical, canonical, dropped, seen, isObject, sha256, fingerprint, without, downstreamKey };
