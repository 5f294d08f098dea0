'use strict';
/*
 * Answers in a conversation: each question gets one, whoever gives it. The key is made by semel; this is how it looks, and where an
 * agent finds what it answers.
 */
const WORKFLOW = 'answers';

const part = (text) => text.replace(/[\x00-\x1f\x7f:%]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);

/** `thr_…:3:reply`, or `THREAD:QUESTION:ACTION` for a conversation that semel did not see come in; undefined when only semel knows the question. */
function answerKey({ thread, action, epoch, question }) {
    if (epoch !== undefined) return `${thread}:${epoch}:${action}`;
    return question === undefined ? undefined : `${thread}:${part(question)}:${part(action)}`;
}

/** What a request that semel forwarded says about its conversation. `headers` are a Headers object, or Node's. */
function questionOf(headers) {
    const entries = typeof headers?.entries === 'function' ? [...headers.entries()] : Object.entries(headers ?? {});
    const said = new Map(entries.map(([name, value]) => [String(name).toLowerCase(), String(value).trim()]));
    const thread = said.get('semel-thread');
    const epoch = said.get('semel-epoch');
    if (!thread || !/^\d+$/.test(epoch ?? ''))
        throw new TypeError('these headers name no question: Semel-Thread and Semel-Epoch come with what semel forwards and somebody should answer');
    return { thread, epoch: Number(epoch) };
}

const isAnswer = ({ key, thread, event, action }) => key === undefined && action !== undefined && (thread !== undefined || event !== undefined);

module.exports = { WORKFLOW, answerKey, questionOf, isAnswer };
