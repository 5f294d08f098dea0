-- Secrets at rest. A removed one stays as an empty row, so that a version number never means two values.
CREATE TABLE secret (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    master TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    sealed BLOB NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    PRIMARY KEY (space, name)
) WITHOUT ROWID;
