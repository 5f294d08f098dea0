-- What came in, as it came: one row per delivery. record is the request, head and body.
CREATE TABLE delivery (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    received BIGINT NOT NULL,
    until BIGINT NOT NULL,
    record BYTEA NOT NULL
);
CREATE INDEX delivery_until ON delivery (until);

-- What a delivery was understood as: one row per event in it. Times are wall time; until is when it may be forgotten, 0 while somebody has to look at it.
CREATE TABLE event (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    delivery BIGINT NOT NULL,
    part BIGINT NOT NULL,
    received BIGINT NOT NULL,
    content TEXT NOT NULL,
    verdict BIGINT NOT NULL,
    shadow BIGINT NOT NULL,
    reason TEXT,
    score BIGINT NOT NULL,
    first BIGINT NOT NULL,
    explanation TEXT,
    thread BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    copies BIGINT NOT NULL,
    burst BIGINT NOT NULL,
    burst_at BIGINT NOT NULL,
    intent BIGINT NOT NULL,
    policy BIGINT NOT NULL,
    decided BIGINT NOT NULL,
    until BIGINT NOT NULL
);
CREATE INDEX event_until ON event (until) WHERE until > 0;
CREATE INDEX event_waiting ON event (id) WHERE verdict = 0;
CREATE INDEX event_source ON event (space, source, id);
CREATE INDEX event_delivery ON event (delivery);
CREATE INDEX event_thread ON event (thread, id) WHERE thread > 0;
CREATE INDEX event_first ON event (first, id) WHERE first > 0;
CREATE INDEX event_held ON event (space, id) WHERE verdict = 3;

-- What a person did about an event. was is its verdict before; intent forwards it, 0 when nothing does.
CREATE TABLE event_act (
    id BIGINT PRIMARY KEY,
    event BIGINT NOT NULL,
    act BIGINT NOT NULL,
    was BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    note TEXT,
    intent BIGINT NOT NULL
);
CREATE INDEX event_act_event ON event_act (event, id);

-- By what an event is recognised: hashes of its ids, its content and its sender. event is the one that came first.
CREATE TABLE event_mark (
    h BYTEA NOT NULL,
    event BIGINT NOT NULL,
    at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (h, event)
);

-- A source that was quieted for a while.
CREATE TABLE source (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    muted_until BIGINT NOT NULL,
    most BIGINT NOT NULL,
    every_us BIGINT NOT NULL,
    limited_until BIGINT NOT NULL,
    actor TEXT NOT NULL,
    note TEXT,
    changed BIGINT NOT NULL,
    PRIMARY KEY (space, name)
);

-- Conversations. question is the event that opened the epoch.
CREATE TABLE thread (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    question BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    burst BIGINT NOT NULL,
    burst_at BIGINT NOT NULL
);

-- By what a conversation is recognised.
CREATE TABLE thread_mark (
    h BYTEA PRIMARY KEY,
    thread BIGINT NOT NULL
);

-- Who takes part in it: hashes of identities.
CREATE TABLE thread_person (
    h BYTEA NOT NULL,
    thread BIGINT NOT NULL,
    PRIMARY KEY (h, thread)
);

CREATE INDEX intent_thread ON intent (space, thread, id) WHERE thread IS NOT NULL;

-- An exception is about an intent or about an event.
ALTER TABLE exception ADD COLUMN event BIGINT NOT NULL DEFAULT 0;
DROP INDEX exception_subject;
CREATE UNIQUE INDEX exception_subject ON exception (intent, event, kind) WHERE state = 0;
