-- Tool calls of agents. Names are hashes; all times are wall time, in microseconds. tool_budget: how many calls were made under a name since `since`.
CREATE TABLE tool_budget (
    name BYTEA NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX tool_budget_expires ON tool_budget (expires);
-- Which of several equal calls is meant. answered: when the answer to it was given; 0 before.
CREATE TABLE tool_repeat (
    name BYTEA NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    answered BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX tool_repeat_expires ON tool_repeat (expires);
