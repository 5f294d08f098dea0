-- Facts about the data itself: schema version, pepper, instance.

-- query meta_get(name t) -> value b
SELECT value FROM meta WHERE name = :name

-- query meta_put(name t, value b)
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- Which history of the database this is (a promoted standby begins a new one), and whether a standby has every commit before we do.
-- query timeline_get() -> timeline i, synchronous i
-- sqlite:
SELECT 1, 1
-- postgres:
SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint, (current_setting('synchronous_standby_names') <> '')::int::bigint

-- query schema_version_get() -> value b
SELECT value FROM meta WHERE name = 'schema'


-- What PostgreSQL begins and ends a transaction with, sent with the statements between.
-- query transaction_begin()
BEGIN

-- query transaction_commit()
COMMIT

-- query transaction_rollback()
ROLLBACK

-- The database's own clock, which all nodes share. SQLite has none.
-- query clock_get() -> us i
-- sqlite:
SELECT 0
-- postgres:
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- Tells the other nodes something when this transaction is committed; see listener.h. SQLite has no other nodes.
-- query notify_send(message t)
-- sqlite:
SELECT :message
-- postgres:
SELECT pg_notify('semel', :message)

-- A writer's lane on PostgreSQL, for as long as the connection lives. SQLite has one writer.
-- query lane_lock(class i, lane i) -> locked i
-- sqlite:
SELECT :class > 0 AND :lane >= 0
-- postgres:
SELECT pg_try_advisory_lock(:class::bigint::int, :lane::bigint::int)::int::bigint
