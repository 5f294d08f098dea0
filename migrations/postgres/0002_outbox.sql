-- Effects: intents that semel itself carries out, with the request to be made. due, created are wall time; quiet is the database's clock.
CREATE TABLE outbox (
    intent BIGINT PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    step BIGINT NOT NULL,
    attended BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    due BIGINT NOT NULL,
    deadline BIGINT NOT NULL,
    quiet BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    probes BIGINT NOT NULL,
    line TEXT COLLATE "C",
    owner TEXT COLLATE "C",
    request BIGINT NOT NULL,
    status BIGINT NOT NULL,
    note TEXT,
    created BIGINT NOT NULL
);
CREATE INDEX outbox_due ON outbox (destination, priority, due) WHERE step < 2;
CREATE INDEX outbox_line ON outbox (destination, line, intent) WHERE step < 3 AND line IS NOT NULL;

-- What a person must decide. due, created, resolved are wall time.
CREATE TABLE exception (
    id BIGINT PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    kind BIGINT NOT NULL,
    intent BIGINT NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL,
    state BIGINT NOT NULL,
    reason TEXT,
    created BIGINT NOT NULL,
    resolved BIGINT NOT NULL,
    resolution TEXT,
    actor TEXT,
    note TEXT
);
CREATE INDEX exception_due ON exception (space, due, id) WHERE state = 0;
CREATE UNIQUE INDEX exception_subject ON exception (intent, kind) WHERE state = 0;
