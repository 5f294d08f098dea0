-- shape secret: space t, name t, version i, changes i, master t, wrapped b, sealed b, created i, updated i, removed i

-- Changes of secrets on several nodes follow one another; they are rare.
-- query secret_lock() -> held i
-- sqlite:
SELECT 1
-- postgres:
SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(1397050446)) AS held

-- `changes` only grows and rows stay, so that a new sum is a new list.
-- query secret_stamp() -> rows i, changes i
SELECT COUNT(*), CAST(COALESCE(SUM(changes), 0) AS BIGINT) FROM secret

-- query secret_list() -> secret
SELECT {secret} FROM secret WHERE removed = 0 ORDER BY space, name

-- query secret_get(space t, name t) -> secret
SELECT {secret} FROM secret WHERE space = :space AND name = :name

-- query secret_put(secret)
INSERT INTO secret ({secret}) VALUES ({:secret})
ON CONFLICT (space, name) DO UPDATE SET version = excluded.version, changes = excluded.changes, master = excluded.master,
    wrapped = excluded.wrapped, sealed = excluded.sealed, created = excluded.created, updated = excluded.updated, removed = excluded.removed

-- query secret_foreign(master t, most i) -> secret
SELECT {secret} FROM secret WHERE removed = 0 AND master <> :master ORDER BY space, name LIMIT :most

-- query secret_rewrap(space t, name t, changes i, master t, wrapped b)
UPDATE secret SET changes = :changes, master = :master, wrapped = :wrapped WHERE space = :space AND name = :name
