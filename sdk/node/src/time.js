'use strict';
/*
 * Times of events and the parts of a key that are made from them. Pure; times are milliseconds.
 */

const DAY = 86400000;
const FIRST = -62135596800000; /* 0001-01-01 */
const END = 253402300800000; /* 10000-01-01: then a year has no four digits */

const NOT_A_TIME = 'is not a time: send 2026-11-15T09:30:00Z, 2026-11-15, or epoch seconds or milliseconds';
const OUT_OF_RANGE = 'is outside the years 1 to 9999';

/** A zone as a function from UTC to its offset. Throws for a name that does not exist. */
function zoneOf(name) {
    if (name === undefined || name === 'UTC') return () => 0;
    if (!/^[A-Za-z]/.test(name)) throw new RangeError(`there is no time zone '${name}'`);
    const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
    return (utc) => {
        const shown = format.formatToParts(utc).find((part) => part.type === 'timeZoneName').value;
        const [, sign, hours, minutes, seconds = '0'] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(shown) ?? [0, '+', 0, 0];
        return (sign === '-' ? -1000 : 1000) * (hours * 3600 + minutes * 60 + Number(seconds));
    };
}

const inRange = (ms) => ms >= FIRST && ms < END;

/** `{utc, local}` of a moment, or undefined outside of the calendar. */
function timeAt(utc, zone) {
    if (!inRange(utc)) return undefined;
    const local = utc + zone(utc);
    return inRange(local) ? { utc, local } : undefined;
}

/** Midnight that day. Asked twice: the offset at the first guess may be that of the other side of a clock change. */
const timeAtDate = (midnight, zone) =>
    inRange(midnight) ? { utc: midnight - zone(midnight - zone(midnight)), local: midnight } : undefined;

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d)))?$/;

/** Milliseconds and whether it was a plain date; undefined when it is no time. */
function parseText(text) {
    if (/^(\d{10}|\d{13})$/.test(text)) return { ms: Number(text) * (text.length === 10 ? 1000 : 1) };
    const match = RFC3339.exec(text);
    if (!match) return undefined;
    const [year, month, day] = match.slice(1, 4).map(Number);
    const midnight = new Date(0).setUTCFullYear(year, month - 1, day);
    if (new Date(midnight).getUTCMonth() !== month - 1 || month < 1 || day < 1) return undefined;
    if (match[4] === undefined) return { ms: midnight, date: true };
    const [hour, minute, second] = match.slice(4, 7).map(Number);
    const [offsetHours, offsetMinutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
    if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return undefined;
    const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60000;
    const ms = midnight + (hour * 3600 + minute * 60 + second) * 1000 - offset;
    /* A leap second exists only at the end of a UTC day. */
    if (second === 60 && ms % DAY !== 0) return undefined;
    return { ms: ms + Math.floor(Number(`0.${match[7] ?? 0}`) * 1000) };
}

/** Seconds below 10^11, milliseconds below 10^14; fractions are dropped towards the past. */
function parseNumber(number) {
    const size = Math.trunc(Math.abs(Number(number)));
    if (size >= 1e14 || /e/.test(String(number))) return undefined;
    return { ms: Math.floor(Number(number)) * (size < 1e11 ? 1000 : 1) };
}

/** The time that an input field holds. Throws a sentence about it. */
function readTime(value, zone) {
    const isNumber = typeof value === 'number' || typeof value === 'bigint';
    const read = isNumber ? parseNumber(value) : typeof value === 'string' ? parseText(value.replace(/^[ \t]+|[ \t]+$/g, '')) : undefined;
    if (!read) throw new RangeError(NOT_A_TIME);
    const time = (read.date ? timeAtDate : timeAt)(read.ms, zone);
    if (!time) throw new RangeError(OUT_OF_RANGE);
    return time;
}

const UNITS = { w: 7 * DAY, d: DAY, h: 3600000, m: 60000, s: 1000, ms: 1 };

/** '1h30m' in milliseconds, units from great to small; undefined when it is no duration. */
function parseDuration(text) {
    if (!/^(?=\d)(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$/.test(text)) return undefined;
    return [...text.matchAll(/(\d+)([a-z]+)/g)].reduce((sum, [, n, unit]) => sum + n * UNITS[unit], 0);
}

const iso = (ms) => new Date(ms).toISOString();
const two = (n) => String(n).padStart(2, '0');

/** A week belongs to the year that holds its Thursday. */
function week(local) {
    const days = Math.floor(local / DAY);
    const thursday = new Date((days - ((((days + 3) % 7) + 7) % 7) + 3) * DAY);
    const first = new Date(thursday).setUTCMonth(0, 1);
    return `${iso(thursday).slice(0, 4)}-W${two(Math.floor((thursday - first) / DAY / 7) + 1)}`;
}

/** The first day of the period that begins on that day of the month, or on the last day of a shorter one. */
function billing(local, day) {
    const start = (monthsBack) => {
        const date = new Date(local);
        date.setUTCMonth(date.getUTCMonth() - monthsBack + 1, 0); /* the last day of that month */
        date.setUTCDate(Math.min(day, date.getUTCDate()));
        return iso(date).slice(0, 10);
    };
    const today = iso(local).slice(0, 10);
    return start(0) <= today ? start(0) : start(1);
}

/** Seconds are written only where the window can begin within a minute. */
function windowStart(utc, size) {
    const start = iso(Math.floor(utc / size) * size);
    return `${start.slice(0, size % 60000 === 0 ? 16 : 19)}Z`;
}

/** What each time part of a template writes. */
const timeParts = {
    today: ({ local }) => iso(local).slice(0, 10),
    day: ({ local }) => iso(local).slice(0, 10),
    week: ({ local }) => week(local),
    month: ({ local }) => iso(local).slice(0, 7),
    quarter: ({ local }) => `${iso(local).slice(0, 4)}-Q${Math.floor(new Date(local).getUTCMonth() / 3) + 1}`,
    year: ({ local }) => iso(local).slice(0, 4),
    hour: ({ local }) => iso(local).slice(0, 13),
    window: ({ utc }, size) => windowStart(utc, size),
    billing: ({ local }, day) => billing(local, day),
};

module.exports = { DAY, zoneOf, timeAt, readTime, parseDuration, timeParts };
