-- What came in, as it came: one row per delivery. record is the request, head and body.
CREATE TABLE delivery (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    received INTEGER NOT NULL,
    until INTEGER NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX delivery_until ON delivery (until);

-- What a delivery was understood as: one row per event in it. Times are wall time; until is when it may be forgotten, 0 while somebody has to look at it.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    delivery INTEGER NOT NULL,
    part INTEGER NOT NULL,
    received INTEGER NOT NULL,
    content TEXT NOT NULL,
    verdict INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    reason TEXT,
    score INTEGER NOT NULL,
    first INTEGER NOT NULL,
    explanation TEXT,
    thread INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    copies INTEGER NOT NULL,
    burst INTEGER NOT NULL,
    burst_at INTEGER NOT NULL,
    intent INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    decided INTEGER NOT NULL,
    until INTEGER NOT NULL
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
    id INTEGER PRIMARY KEY,
    event INTEGER NOT NULL,
    act INTEGER NOT NULL,
    was INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    note TEXT,
    intent INTEGER NOT NULL
);
CREATE INDEX event_act_event ON event_act (event, id);

-- By what an event is recognised: hashes of its ids, its content and its sender. event is the one that came first.
CREATE TABLE event_mark (
    h BLOB NOT NULL,
    event INTEGER NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (h, event)
) WITHOUT ROWID;

-- A source that was quieted for a while.
CREATE TABLE source (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    muted_until INTEGER NOT NULL,
    most INTEGER NOT NULL,
    every_us INTEGER NOT NULL,
    limited_until INTEGER NOT NULL,
    actor TEXT NOT NULL,
    note TEXT,
    changed INTEGER NOT NULL,
    PRIMARY KEY (space, name)
) WITHOUT ROWID;

-- Conversations. question is the event that opened the epoch.
CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    question INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    burst INTEGER NOT NULL,
    burst_at INTEGER NOT NULL
);

-- By what a conversation is recognised.
CREATE TABLE thread_mark (
    h BLOB PRIMARY KEY,
    thread INTEGER NOT NULL
) WITHOUT ROWID;

-- Who takes part in it: hashes of identities.
CREATE TABLE thread_person (
    h BLOB NOT NULL,
    thread INTEGER NOT NULL,
    PRIMARY KEY (h, thread)
) WITHOUT ROWID;

CREATE INDEX intent_thread ON intent (space, thread, id) WHERE thread IS NOT NULL;

-- An exception is about an intent or about an event.
ALTER TABLE exception ADD COLUMN event INTEGER NOT NULL DEFAULT 0;
DROP INDEX exception_subject;
CREATE UNIQUE INDEX exception_subject ON exception (intent, event, kind) WHERE state = 0;
