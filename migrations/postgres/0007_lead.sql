-- One source's version of a person; content never changes, packed is what match/ made of it. lead is whom it belongs to now: the oldest record of the same person, itself when there is none before.
CREATE TABLE lead_record (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    external TEXT,
    event BIGINT NOT NULL,
    h BYTEA NOT NULL,
    content TEXT NOT NULL,
    packed BYTEA NOT NULL,
    created BIGINT NOT NULL,
    lead BIGINT NOT NULL
);
CREATE UNIQUE INDEX lead_record_h ON lead_record (h);
CREATE INDEX lead_record_lead ON lead_record (lead, id);

-- The person over its records; id is that of the oldest one. Follows from the records and edges.
CREATE TABLE lead (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    name TEXT,
    company TEXT,
    records BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL
);
CREATE INDEX lead_space ON lead (space, id);

-- How many there are of them.
CREATE TABLE lead_count (
    space TEXT PRIMARY KEY,
    leads BIGINT NOT NULL
);

-- By what records are found that may be the same person: hashes of identities, names, parts of them. Follows from the records.
CREATE TABLE lead_key (
    k BIGINT NOT NULL,
    record BIGINT NOT NULL,
    PRIMARY KEY (k, record)
);

-- What was decided about two records: same, different, or asked. undone is when it was taken back, 0 while it holds.
CREATE TABLE lead_edge (
    id BIGINT PRIMARY KEY,
    space TEXT NOT NULL,
    kind BIGINT NOT NULL,
    a BIGINT NOT NULL,
    b BIGINT NOT NULL,
    rule TEXT NOT NULL,
    score BIGINT NOT NULL,
    weights TEXT,
    explanation TEXT,
    actor TEXT NOT NULL,
    note TEXT,
    created BIGINT NOT NULL,
    undone BIGINT NOT NULL,
    undone_by TEXT,
    undone_note TEXT
);
CREATE INDEX lead_edge_a ON lead_edge (a);
CREATE INDEX lead_edge_b ON lead_edge (b);
CREATE INDEX lead_edge_apart_a ON lead_edge (a) WHERE kind > 0 OR undone > 0;
CREATE INDEX lead_edge_apart_b ON lead_edge (b) WHERE kind > 0 OR undone > 0;

-- Whose event, whose conversation: a record, and so the lead that it belongs to at any time.
ALTER TABLE event ADD COLUMN record BIGINT NOT NULL DEFAULT 0;
CREATE INDEX event_record ON event (record, id) WHERE record > 0;
ALTER TABLE thread ADD COLUMN record BIGINT NOT NULL DEFAULT 0;
CREATE INDEX thread_record ON thread (record, id) WHERE record > 0;

-- An exception is about an intent, an event, or whether two leads are one.
ALTER TABLE exception ADD COLUMN edge BIGINT NOT NULL DEFAULT 0;
DROP INDEX exception_subject;
CREATE UNIQUE INDEX exception_subject ON exception (intent, event, edge, kind) WHERE state = 0;
