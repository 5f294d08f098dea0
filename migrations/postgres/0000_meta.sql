-- Run at every start: where the schema version is kept.
CREATE SCHEMA IF NOT EXISTS semel;
CREATE TABLE IF NOT EXISTS meta (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);
