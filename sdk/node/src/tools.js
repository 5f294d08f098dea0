'use strict';
/*
 * Tools of agents. A model may call a tool twice, a framework may run it again or several at a time; the effect is one.
 */

/** The same object with one method replaced. Its class and everything else stay. */
const derive = (tool, name, value) => Object.create(tool, { [name]: { value, writable: true, configurable: true, enumerable: true } });

/** A tool may stream what it has so far; the last value is its result. */
async function last(value) {
    if (typeof value?.[Symbol.asyncIterator] !== 'function') return value;
    let result;
    for await (const part of value) result = part;
    return result;
}

const thread = (config) => config?.configurable?.thread_id;

/** AI SDK: `tool({inputSchema, execute})`. */
function aiTool(semel, tool, options) {
    const execute = async (...args) => last(await tool.execute(...args));
    return { ...tool, execute: semel.once(execute, { input: (input) => input, ...options }) };
}

/** LangChain: `_call` is what a tool does, behind the parsing of its arguments and before the message for this very call. */
function structuredTool(semel, tool, options) {
    const call = (...args) => tool._call(...args);
    const defaults = { input: (input) => input, thread: (input, manager, config) => thread(config) };
    return derive(tool, '_call', semel.once(call, { ...defaults, ...options }));
}

/** Anything with `invoke`: the input, or the arguments of a tool call. */
function runnable(semel, tool, options) {
    const input = (given) => (given?.type === 'tool_call' ? given.args : given);
    const invoke = (...args) => tool.invoke(...args);
    return derive(tool, 'invoke', semel.once(invoke, { input, thread: (given, config) => thread(config), ...options }));
}

function onceTool(semel, tool, given = {}) {
    const options = { ...given, workflow: given.workflow ?? tool.name ?? semel.workflow };
    if (typeof tool.execute === 'function') return aiTool(semel, tool, options);
    if (typeof tool._call === 'function') return structuredTool(semel, tool, options);
    if (typeof tool.invoke === 'function') return runnable(semel, tool, options);
    throw new TypeError('a tool has `execute` or `invoke`');
}

module.exports = { onceTool };
