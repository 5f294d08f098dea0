-- Effects: intents that semel itself carries out, with the request to be made. due, created are wall time; quiet is the ledger's run time.
CREATE TABLE outbox (
    intent INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    destination TEXT NOT NULL,
    step INTEGER NOT NULL,
    attended INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    quiet INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    probes INTEGER NOT NULL,
    line TEXT,
    owner TEXT,
    request INTEGER NOT NULL,
    status INTEGER NOT NULL,
    note TEXT,
    created INTEGER NOT NULL
);
CREATE INDEX outbox_due ON outbox (destination, priority, due) WHERE step < 2;
CREATE INDEX outbox_line ON outbox (destination, line, intent) WHERE step < 3 AND line IS NOT NULL;

-- What a person must decide. due, created, resolved are wall time.
CREATE TABLE exception (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    kind INTEGER NOT NULL,
    intent INTEGER NOT NULL,
    owner TEXT NOT NULL,
    due INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,
    created INTEGER NOT NULL,
    resolved INTEGER NOT NULL,
    resolution TEXT,
    actor TEXT,
    note TEXT
);
CREATE INDEX exception_due ON exception (space, due, id) WHERE state = 0;
CREATE UNIQUE INDEX exception_subject ON exception (intent, kind) WHERE state = 0;
