-- Times are microseconds: created, first_sent, settled, at are wall time; lease_until, expires, run are the ledger's run time.

-- The tail of each writer's hash chain, and the run clock at that moment.
CREATE TABLE lane (
    lane INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE intent (
    id INTEGER PRIMARY KEY,
    h BLOB NOT NULL,
    space TEXT NOT NULL,
    workflow TEXT NOT NULL,
    key TEXT NOT NULL,
    state INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL,
    lease_us INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    two_phase INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    capability INTEGER NOT NULL,
    on_unknown INTEGER NOT NULL,
    window_us INTEGER NOT NULL,
    keep_us INTEGER NOT NULL,
    tombstone_us INTEGER NOT NULL,
    fingerprint BLOB,
    fingerprint_version INTEGER NOT NULL,
    fields TEXT,
    run TEXT,
    thread TEXT,
    action TEXT,
    result INTEGER NOT NULL,
    error TEXT,
    created INTEGER NOT NULL,
    first_sent INTEGER NOT NULL,
    first_sent_run INTEGER NOT NULL,
    ambiguous INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    decision INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    expires INTEGER NOT NULL
);
CREATE UNIQUE INDEX intent_h ON intent (h);
CREATE INDEX intent_workflow ON intent (space, workflow, id);
CREATE INDEX intent_open ON intent (state, lease_until) WHERE state <> 3;
CREATE INDEX intent_expires ON intent (expires) WHERE expires > 0;

-- Immutable bytes that decisions and intents point to: results.
CREATE TABLE body (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);

-- What is left of a forgotten intent, so that a very late duplicate is still recognised.
CREATE TABLE tombstone (
    h BLOB PRIMARY KEY,
    state INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tombstone_expires ON tombstone (expires);

-- The audit: append-only, hash-chained per lane.
CREATE TABLE decision (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    intent INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    body INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    hash BLOB NOT NULL
);
CREATE INDEX decision_intent ON decision (intent, id) WHERE intent > 0;

CREATE TABLE policy (
    version INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    text TEXT NOT NULL,
    applied INTEGER NOT NULL,
    actor TEXT NOT NULL
);

CREATE TABLE token (
    id TEXT PRIMARY KEY,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes INTEGER NOT NULL,
    hash BLOB NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    revoked INTEGER NOT NULL
) WITHOUT ROWID;
