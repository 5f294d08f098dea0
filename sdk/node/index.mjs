/* One implementation for both kinds of modules, so that `instanceof` holds across them. */
import client from './index.js';

export const { Semel, once, claim, answerOnce, onceTool, semelFetch, current } = client;
export const { SemelError, InProgress, OutcomeUnknown, KeyReused, Refused, Expired, Fenced, InvalidKey, Unreachable, NoEffect } = client;
export const { keyTemplate, answerKey, canonical, fingerprint, downstreamKey } = client;
