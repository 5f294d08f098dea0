-- Secrets at rest. A removed one stays as an empty row, so that a version number never means two values.
CREATE TABLE secret (
    space TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    changes BIGINT NOT NULL,
    master TEXT COLLATE "C" NOT NULL,
    wrapped BYTEA NOT NULL,
    sealed BYTEA NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    removed BIGINT NOT NULL,
    PRIMARY KEY (space, name)
);
