'use strict';
/*
 * Keys from templates, such as 'followup:{lead_id}:{template}:{day}'. The rules are those of the server, docs/reference/keys.md,
 * and the same template, zone and input give the same key in every language. Pure.
 */
const { canonical, dropped, seen, sha256 } = require('./canonical.js');
const { InvalidKey } = require('./errors.js');
const { DAY, zoneOf, timeAt, readTime, parseDuration, timeParts } = require('./time.js');

const KEY_SIZE_MAX = 2048;
const PLACEHOLDERS_MAX = 32;
const TIMED = ['day', 'week', 'month', 'quarter', 'year', 'hour', 'window', 'billing'];
const CALL_TIME = ['now', 'random', 'timestamp', 'uuid'];
/* Unicode White_Space, which is not quite what \s matches. */
const SPACES = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
const HOLE = 'a key with a hole in it would be too broad';

const refuseTemplate = (where, fix) => {
    throw new InvalidKey('invalid_key', `${where} in the key: ${fix}`, { part: 'template' });
};

const refuseField = (field, reason, cause) => {
    throw new InvalidKey('invalid_key', `the key cannot be made: field '${field}' ${reason}`, { part: 'input', field, cause });
};

/* ---- values ---- */

function find(input, path) {
    let value = seen(input);
    for (const step of path.split('.')) {
        const there = Array.isArray(value) ? /^\d+$/.test(step) : typeof value === 'object' && value !== null && Object.hasOwn(value, step);
        value = there ? seen(value[Array.isArray(value) ? Number(step) : step]) : undefined;
    }
    if (dropped(value)) refuseField(path, 'is missing from the input');
    return value;
}

const tidy = (text) => text.normalize('NFC').replace(SPACES, ' ').replace(/^ | $/g, '');

function valueText(value, path) {
    if (value === null) refuseField(path, `is null; ${HOLE}`);
    if (typeof value === 'object') refuseField(path, 'is no text, number, true or false: name a field in it, or use {hash:…}');
    if (typeof value !== 'string') return canonicalOf(value, path);
    if (/\p{Surrogate}/u.test(value)) refuseField(path, 'holds half of a surrogate pair');
    return tidy(value) || refuseField(path, `is empty; ${HOLE}`);
}

function canonicalOf(value, path) {
    try {
        return canonical(value);
    } catch (error) {
        return refuseField(path, `cannot be compared: ${error.message}`, error);
    }
}

/** '%', control characters and what follows the placeholder become %XX, so that no two lists of values make one key. */
function escape(text, follow) {
    const hex = (character) => [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
    return [...text].map((c) => (c === '%' || c === follow || /[\0-\x1f\x7f-\x9f]/.test(c) ? hex(c) : c)).join('');
}

const isHollow = (value) =>
    value === null || (typeof value === 'string' && tidy(value) === '') || (typeof value === 'object' && Object.keys(value).length === 0);

function hashText(input, path) {
    const field = path ?? '(input)';
    const value = path === undefined ? seen(input) : find(input, path);
    if (value === undefined) refuseField(field, 'is missing: {hash} needs an input');
    if (isHollow(value)) refuseField(field, `is empty; ${HOLE}`);
    return sha256(canonicalOf(value, field)).slice(0, 32);
}

/* ---- placeholders: each becomes a function of {input, event, now} ---- */

function checkPath(source, path) {
    if (path.split('.').includes('')) refuseTemplate(source, 'a step of the path is empty; write it like {customer.email}');
    return path;
}

function fieldPart(source, path) {
    checkPath(source, path);
    return { write: ({ input }, follow) => escape(valueText(find(input, path), path), follow) };
}

function argumentOf(source, name, argument) {
    if (name === 'window') {
        const size = parseDuration(argument ?? '');
        if (!(size >= 1000 && size <= 366 * DAY && size % 1000 === 0)) refuseTemplate(source, 'write {window:15m}: whole seconds, from 1s to 366d');
        return size;
    }
    if (name === 'billing') {
        if (!/^\d+$/.test(argument ?? '') || argument < 1 || argument > 31) refuseTemplate(source, 'write {billing:15}: a day from 1 to 31');
        return Number(argument);
    }
    if (argument !== undefined) refuseTemplate(source, "nothing may follow the name; write it without ':'");
    return undefined;
}

function timePart(source, name, argument) {
    const size = argumentOf(source, name, argument);
    return { timed: name !== 'today', write: ({ event, now }) => timeParts[name](name === 'today' ? now() : event, size) };
}

function placeholder(source, inside, hasTime) {
    if (inside === '') refuseTemplate(source, 'name a field of the input, such as {lead_id}; literal braces are {{ and }}');
    if (inside.startsWith(' ') || inside.endsWith(' ')) refuseTemplate(source, 'write the name without spaces around it');
    if (inside.startsWith('input.')) return fieldPart(source, inside.slice(6));
    if (CALL_TIME.includes(inside))
        refuseTemplate(source, `a key made at call time never repeats; use {today} or a field. A field of that name is {input.${inside}}`);
    const [, name, argument] = /^([^:]*)(?::(.*))?$/s.exec(inside);
    if (name === 'hash') {
        const path = argument === undefined ? undefined : checkPath(source, argument);
        return { write: ({ input }) => hashText(input, path) };
    }
    if (name === 'today' || (TIMED.includes(name) && hasTime)) return timePart(source, name, argument);
    if (argument === undefined) return fieldPart(source, inside);
    return TIMED.includes(name)
        ? refuseTemplate(source, "it needs the event's own time: name the field that holds it with `time`")
        : refuseTemplate(source, 'only {hash:…}, {window:…} and {billing:…} take a colon; write a path with dots, like {customer.email}');
}

/* ---- the template ---- */

function checkText(template) {
    if (typeof template !== 'string' || template === '') refuseTemplate('nothing', 'write a template such as followup:{lead_id}');
    if (Buffer.byteLength(template) > KEY_SIZE_MAX) refuseTemplate('the template', `it is longer than ${KEY_SIZE_MAX} bytes`);
    if (/[\0-\x1f\x7f]|\p{Surrogate}/u.test(template)) refuseTemplate('the template', 'it holds a control character; write it on one line');
}

function parse(template, hasTime) {
    const parts = [];
    const token = /\{\{|\}\}|\{([^{}]*)\}|[^{}]/uy;
    while (token.lastIndex < template.length) {
        const at = token.lastIndex;
        const match = token.exec(template);
        if (!match) refuseTemplate(`the brace at character ${at + 1}`, 'it has no partner; a literal one is {{ or }}');
        const last = parts.at(-1);
        if (match[1] !== undefined) {
            if (last?.write) refuseTemplate(match[0], "it follows another placeholder directly; put ':' between");
            parts.push(placeholder(match[0], match[1], hasTime));
            continue;
        }
        const literal = /^(\{\{|\}\})$/.test(match[0]) ? match[0][0] : match[0];
        if (last && !last.write) last.literal += literal;
        else parts.push({ literal });
    }
    return parts;
}

function checkParts(parts) {
    const count = parts.filter((part) => part.write).length;
    if (count === 0) refuseTemplate('nothing changes', 'the work would be done once and never again: add a placeholder such as {lead_id} or {today}');
    if (count > PLACEHOLDERS_MAX) refuseTemplate('the template', `it has more than ${PLACEHOLDERS_MAX} placeholders; use {hash}`);
    parts.forEach((part, i) => {
        const next = parts[i + 1]?.literal;
        if (part.write && next?.startsWith('%')) refuseTemplate('%', "a '%' cannot stand directly behind a placeholder");
        part.follow = next === undefined ? undefined : [...next][0];
    });
}

/** A template as a function from an input to its key. `time` is the path of the event's time, `zone` an IANA name. */
function keyTemplate(template, { time, zone } = {}) {
    checkText(template);
    if (time !== undefined) checkPath('time', time);
    const offset = zoneOf(zone);
    const parts = parse(template, time !== undefined);
    checkParts(parts);
    const timed = parts.some((part) => part.timed);
    const eventTime = (input) => {
        const value = find(input, time);
        try {
            return readTime(value, offset);
        } catch (error) {
            return refuseField(time, error.message);
        }
    };
    return (input, now = Date.now()) => {
        const known = { input, event: timed ? eventTime(input) : undefined, now: () => timeAt(now, offset) };
        const key = parts.map((part) => part.literal ?? part.write(known, part.follow)).join('');
        if (Buffer.byteLength(key) > KEY_SIZE_MAX)
            throw new InvalidKey('invalid_key', `the key is longer than ${KEY_SIZE_MAX} bytes; use {hash:…} for the long field`, { part: 'input' });
        return key;
    };
}

/** The named fields of an input, each of which must be there. */
const pick = (input, fields) => Object.fromEntries(fields.map((path) => [path, find(input, path)]));

module.exports = { keyTemplate, pick };
