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
