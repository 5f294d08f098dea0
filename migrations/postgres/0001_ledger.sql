-- Times are microseconds: created, first_sent, settled, at are wall time; lease_until, expires, run are the database's clock.

-- The tail of each writer's hash chain, and the run clock at that moment.
CREATE TABLE lane (
    lane BIGINT PRIMARY KEY,
    seq BIGINT NOT NULL,
    id BIGINT NOT NULL,
    run BIGINT NOT NULL,
    hash BYTEA NOT NULL
);

CREATE TABLE intent (
    id BIGINT PRIMARY KEY,
    h BYTEA NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    workflow TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    state BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    attempts_max BIGINT NOT NULL,
    lease_us BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    two_phase BIGINT NOT NULL,
    shadow BIGINT NOT NULL,
    capability BIGINT NOT NULL,
    on_unknown BIGINT NOT NULL,
    window_us BIGINT NOT NULL,
    keep_us BIGINT NOT NULL,
    tombstone_us BIGINT NOT NULL,
    fingerprint BYTEA,
    fingerprint_version BIGINT NOT NULL,
    fields TEXT COLLATE "C",
    run TEXT COLLATE "C",
    thread TEXT COLLATE "C",
    action TEXT COLLATE "C",
    result BIGINT NOT NULL,
    error TEXT COLLATE "C",
    created BIGINT NOT NULL,
    first_sent BIGINT NOT NULL,
    first_sent_run BIGINT NOT NULL,
    ambiguous BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    decision BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE UNIQUE INDEX intent_h ON intent (h);
CREATE INDEX intent_workflow ON intent (space, workflow, id);
CREATE INDEX intent_open ON intent (state, lease_until) WHERE state <> 3;
CREATE INDEX intent_expires ON intent (expires) WHERE expires > 0;

-- Immutable bytes that decisions and intents point to: results.
CREATE TABLE body (
    id BIGINT PRIMARY KEY,
    bytes BYTEA NOT NULL
);

-- What is left of a forgotten intent, so that a very late duplicate is still recognised.
CREATE TABLE tombstone (
    h BYTEA PRIMARY KEY,
    state BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX tombstone_expires ON tombstone (expires);

-- The audit: append-only, hash-chained per lane.
CREATE TABLE decision (
    id BIGINT PRIMARY KEY,
    lane BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    run BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    intent BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    state BIGINT NOT NULL,
    count BIGINT NOT NULL,
    policy BIGINT NOT NULL,
    body BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    detail TEXT COLLATE "C",
    hash BYTEA NOT NULL
);
CREATE INDEX decision_intent ON decision (intent, id) WHERE intent > 0;

CREATE TABLE policy (
    version BIGINT PRIMARY KEY,
    hash BYTEA NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    applied BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL
);

CREATE TABLE token (
    id TEXT COLLATE "C" PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    scopes BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    revoked BIGINT NOT NULL
);
