'use strict';
/*
 * What a call means: from the arguments of a function to the workflow, key and input of a claim. Mistakes show when a function is
 * wrapped, not when it is first called.
 */
const { Canonical, canonical, sha256, without } = require('./canonical.js');
const { InvalidKey } = require('./errors.js');
const { keyTemplate, pick } = require('./key.js');

const WORKFLOW = 'default';

const invalid = (message) => new InvalidKey('invalid_key', message, { part: 'input' });

/** One argument is the input; several are a list. */
const argumentsInput = (...args) => (args.length > 1 ? args : args[0]);

const hash = (value) => sha256(canonical(value)).slice(0, 32);

function keyMaker({ key, fields, policy, time, zone }, scopeOf) {
    if (typeof key === 'string') {
        const fill = keyTemplate(key, { time, zone });
        return ({ input }) => fill(input);
    }
    if (typeof key === 'function') return ({ args }) => key(...args);
    if (key !== undefined) throw new TypeError('key has to be a template or a function');
    if (fields) return ({ input }) => hash(input);
    if (policy) return () => undefined;
    return ({ input, args }) => {
        const scope = scopeOf(args);
        if (scope === undefined) throw invalid('there is no key: give `key`, `fields`, `policy: true`, or a `run` in which equal calls are one');
        if (input === undefined) throw invalid('there is no input to make a key of');
        return `${scope}:${hash(input)}`;
    };
}

/** A function from the arguments of a call to its claim. `defaults` are the client's. */
function planOf(options, defaults) {
    const { key, fields, ignore, input: inputOf = argumentsInput } = options;
    const workflow = options.workflow ?? defaults.workflow;
    if (workflow === undefined && typeof key !== 'string')
        throw new TypeError('give a `workflow`: without a template nothing else tells this function from others');
    const call = (value, args) => (typeof value === 'function' ? value(...args) : value);
    const runOf = (args) => call(options.run, args) ?? defaults.run;
    const threadOf = (args) => call(options.thread, args);
    const makeKey = keyMaker(options, (args) => call(options.run, args) ?? threadOf(args) ?? defaults.run);
    return (args) => {
        const whole = inputOf === false ? argumentsInput(...args) : inputOf(...args);
        const input = fields ? pick(whole, fields) : without(whole, ignore);
        const made = makeKey({ input: fields ? input : whole, args });
        if (made !== undefined && (typeof made !== 'string' || made === '')) throw invalid('the key has to be text');
        return {
            workflow: workflow ?? WORKFLOW,
            key: made,
            input: inputOf === false || input === undefined ? undefined : new Canonical(canonical(input)),
            run: runOf(args),
            thread: threadOf(args),
            action: options.action,
        };
    };
}

module.exports = { planOf, WORKFLOW };
