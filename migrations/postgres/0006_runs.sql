-- Model calls, counted by run: a row for each provider and model. first, last and expires are wall time; spent and saved are millionths of a millionth of the user's currency.
CREATE TABLE run (
    space TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    executed BIGINT NOT NULL,
    replayed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    saved_input BIGINT NOT NULL,
    saved_output BIGINT NOT NULL,
    priced BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    saved BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (space, run, provider, model)
);
CREATE INDEX run_expires ON run (expires);
