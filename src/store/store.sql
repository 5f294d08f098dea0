-- Facts about the data itself: schema version, pepper, instance.

-- query meta_get(name t) -> value b
SELECT value FROM meta WHERE name = :name

-- query meta_put(name t, value b)
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- query schema_version_get() -> value b
SELECT value FROM meta WHERE name = 'schema'
