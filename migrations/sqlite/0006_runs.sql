-- Model calls, counted by run: a row for each provider and model. first, last and expires are wall time; spent and saved are millionths of a millionth of the user's currency.
CREATE TABLE run (
    space TEXT NOT NULL,
    run TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    executed INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    saved_input INTEGER NOT NULL,
    saved_output INTEGER NOT NULL,
    priced INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    saved INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (space, run, provider, model)
) WITHOUT ROWID;
CREATE INDEX run_expires ON run (expires);
