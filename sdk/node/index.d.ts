/// <reference lib="esnext.disposable" />
/** The Node client of semel: do a thing once. */

export type Mode = 'enforce' | 'observe' | 'off';
export type Effect = 'none' | 'unknown';
/** What follows when nobody can tell whether it happened: `unknown` raises OutcomeUnknown, `retry` does it again. */
export type OnCrash = 'unknown' | 'retry';

export interface Would {
    workflow: string;
    key?: string;
    /** What mode enforce would have said: 'replay', 'in_progress', 'outcome_unknown', … */
    code: string;
    result?: unknown;
    error?: Error;
}

export interface SemelOptions {
    /** SEMEL_URL, else http://127.0.0.1:7363 */
    url?: string;
    /** SEMEL_TOKEN */
    token?: string;
    /** SEMEL_MODE, else 'enforce'. 'observe' asks but lets everything through; 'off' does not ask. */
    mode?: Mode;
    /** SEMEL_RUN: the run that claims are part of, in which equal calls without a key are one. */
    run?: string;
    /** The workflow of claims that name none. */
    workflow?: string;
    /** Act even when semel cannot be reached, and tell it later. Without it nothing is done then. */
    failOpen?: boolean;
    /** Where that is kept meanwhile, 'semel-spool.jsonl'. */
    spool?: string;
    /** Mode 'observe': a call that mode 'enforce' would not have let through. */
    onWould?: (would: Would) => void;
    fetch?: typeof fetch;
}

export interface HoldOptions {
    /** How long the claim is held without a heartbeat; else the policy's. */
    leaseMs?: number;
    /** How long to wait for a holder, 30000. */
    waitMs?: number;
    /** How long the result is kept, such as '30d'; else the policy's. */
    keep?: string;
    /** You say `sent()` yourself, right before you act. Until then a crash leaves no question. */
    twoPhase?: boolean;
    onCrash?: OnCrash;
}

export interface ClaimOptions extends HoldOptions {
    client?: Semel;
    workflow?: string;
    /** What the key stands for. The same key with another input is refused. Only a hash of it is stored. */
    input?: unknown;
    run?: string;
    /** With `action` and no key: an answer in a conversation. Each question gets one, whoever gives it. */
    thread?: string;
    action?: string;
    /** Which question is answered: the event, `evt_…`; or the epoch, as Semel-Epoch says; else the conversation's last one. */
    event?: string;
    epoch?: number;
    /** The same for a conversation that semel did not see come in: what only this question has, such as the message's id. */
    question?: string;
}

export interface AnswerOptions extends Omit<ClaimOptions, 'thread' | 'epoch' | 'event' | 'question' | 'workflow'> {
    /** What is done about the question, 'reply'. */
    action?: string;
}

/** The headers of a request: a Headers object, or those of Node. */
export type AnyHeaders = { entries(): Iterable<[string, string]> } | Record<string, string | string[] | undefined>;

export interface FailOptions {
    effect?: Effect;
    final?: boolean;
    error?: unknown;
}

type KeyOf<A extends unknown[]> =
    /** A template over the input, such as 'followup:{lead_id}:{day}', or a function of the arguments. */
    | { key: string | ((...args: A) => string); fields?: undefined; policy?: undefined }
    /** The fields of the input that make the difference. */
    | { fields: readonly string[]; key?: undefined; policy?: undefined }
    /** The policy of the workflow makes the key. */
    | { policy: true; key?: undefined; fields?: undefined }
    /** Equal inputs are one within a run. */
    | { key?: undefined; fields?: undefined; policy?: undefined };

export type OnceOptions<A extends unknown[] = any[]> = HoldOptions &
    KeyOf<A> & {
        client?: Semel;
        workflow?: string;
        /** The input: by default the argument, or the list of them. `false` compares no inputs. */
        input?: false | ((...args: A) => unknown);
        /** Top-level fields that may differ between attempts. */
        ignore?: readonly string[];
        /** The input field that holds the event's own time, for {day} and the others. */
        time?: string;
        /** The IANA time zone of {day} and the others. */
        zone?: string;
        run?: string | ((...args: A) => string | undefined);
        thread?: string | ((...args: A) => string | undefined);
        action?: string;
        /** What an error says about the effect. By default 'unknown', and 'none' for NoEffect. */
        onError?: (error: unknown) => { effect: Effect; final?: boolean } | undefined | void;
    };

/** What became of asking. Settled by `confirm`, `fail` or `release`, or when an `await using` scope is left. */
export interface Claim<T = unknown> {
    /** It is yours to do. */
    readonly first: boolean;
    /** The result of the first time; set it before the scope is left, and it is confirmed. */
    result: T | undefined;
    /** The key for the destination, the same for every attempt: its Idempotency-Key. */
    readonly key: string | undefined;
    readonly intent: string | undefined;
    readonly fence: number | undefined;
    readonly confirmedAt: string | undefined;
    /** Whether it may have happened by now. */
    readonly acting: boolean;
    /** Aborted when the lease is lost. */
    readonly signal: AbortSignal;
    sent(): Promise<this>;
    confirm(result?: T): Promise<this>;
    fail(how?: FailOptions): Promise<this>;
    extend(leaseMs?: number): Promise<unknown>;
    release(): Promise<this>;
    [Symbol.asyncDispose](): Promise<void>;
}

/** The calls of the HTTP API as they are. */
export interface Core {
    claim(body: Record<string, unknown>): Promise<any>;
    sent(intent: string, body: { fence: number }): Promise<any>;
    confirm(intent: string, body: { fence: number; result?: unknown }): Promise<any>;
    fail(intent: string, body: { fence: number; effect?: Effect; final?: boolean; error?: string; all_attempts?: boolean }): Promise<any>;
    extend(intent: string, body: { fence: number; lease_ms?: number }): Promise<any>;
    release(intent: string, body: { fence: number }): Promise<any>;
}

export interface FetchOptions {
    client?: Semel;
    /** The name that semel's policy gives it. */
    destination: string;
    /** The Idempotency-Key of a call that brings none. */
    key?: (url: string, init: RequestInit) => string | undefined;
}

type Once<F extends (...args: any[]) => any> = (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>>;

export class Semel {
    constructor(options?: SemelOptions);
    readonly url: string;
    readonly token: string | undefined;
    readonly mode: Mode;
    readonly run: string | undefined;
    readonly workflow: string | undefined;
    readonly core: Core;
    claim<T = any>(key: string | null | undefined, options?: ClaimOptions): Promise<Claim<T>>;
    answerOnce<T = any>(headers: AnyHeaders, options?: AnswerOptions): Promise<Claim<T>>;
    once<F extends (...args: any[]) => any>(fn: F, options?: OnceOptions<Parameters<F>>): Once<F>;
    onceTool<T extends object>(tool: T, options?: OnceOptions): T;
    semelFetch(fetch: typeof globalThis.fetch, options: FetchOptions): typeof globalThis.fetch;
    deliver(): Promise<{ delivered: number; left: number }>;
}

/** The same function, which runs once per key: later and simultaneous calls get the result of the first. */
export function once<F extends (...args: any[]) => any>(fn: F, options?: OnceOptions<Parameters<F>>): Once<F>;
/** Asks to do a thing once. Without a key the workflow's policy makes it from `input`. */
export function claim<T = any>(key: string | null | undefined, options?: ClaimOptions): Promise<Claim<T>>;
/** Asks to answer a question once. The headers are those of the request with which semel forwarded it. */
export function answerOnce<T = any>(headers: AnyHeaders, options?: AnswerOptions): Promise<Claim<T>>;
/** A tool of the AI SDK, of LangChain, or anything with `invoke`. */
export function onceTool<T extends object>(tool: T, options?: OnceOptions): T;
/** A fetch that goes through semel's `/to/{destination}/…`. */
export function semelFetch(fetch: typeof globalThis.fetch, options: FetchOptions): typeof globalThis.fetch;
/** Inside a function that runs once: its claim. */
export function current(): Claim | undefined;

export class SemelError extends Error {
    readonly code: string;
    readonly status?: number;
    readonly intent?: string;
    readonly fence?: number;
    readonly requestId?: string;
    /** What the act returned, when it was done but could not be recorded. */
    result?: unknown;
}
export class InProgress extends SemelError {
    readonly retry_after_ms?: number;
}
export class OutcomeUnknown extends SemelError {}
export class KeyReused extends SemelError {
    readonly differs?: string[];
}
export class Refused extends SemelError {
    readonly error?: string;
    readonly refused_at?: string;
}
export class Expired extends SemelError {
    readonly settled_at?: string;
}
export class Fenced extends SemelError {}
export class InvalidKey extends SemelError {
    readonly part: 'template' | 'input';
    readonly field?: string;
}
export class Unreachable extends SemelError {}
/** Throw it: it failed and surely had no effect. */
export class NoEffect extends Error {
    constructor(message?: string, options?: { final?: boolean; cause?: unknown });
    readonly final: boolean;
}

/** A template as a function from an input to its key. */
export function keyTemplate(template: string, options?: { time?: string; zone?: string }): (input: unknown, now?: number) => string;
/** RFC 8785. */
export function canonical(value: unknown): string;
export function fingerprint(input: unknown, options?: { ignore?: readonly string[]; pepper?: string }): { whole: string; fields?: Record<string, string> };
export function downstreamKey(space: string, workflow: string, key: string): string;
/** The key of an answer; undefined when only semel knows the question. */
export function answerKey(answer: { thread: string; action: string; epoch?: number; question?: string }): string | undefined;
