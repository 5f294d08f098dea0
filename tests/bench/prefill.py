"""Fills a stopped daemon's database with many finished intents. Each is a copy of one that the daemon itself made and confirmed, with an id,
a key and a result of its own, so that the rows are what the schema of the day asks for."""

import sqlite3


def columns_for(names, own):
    return ", ".join(own.get(name, f"t.{name}") for name in names)


def prefill_sqlite(path, count):
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-1000000", "temp_store=MEMORY"):
        db.execute("PRAGMA " + pragma)
    names = [row[1] for row in db.execute("PRAGMA table_info(intent)")]
    template, result = db.execute("SELECT id, result FROM intent WHERE state = 3 ORDER BY id LIMIT 1").fetchone()
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'intent' AND sql IS NOT NULL").fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    own = {"id": f"{template - count - 1} + n", "h": "randomblob(16)", "key": "lower(hex(randomblob(16)))",
           "result": f"{result - count - 1} + n"}
    numbers = f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})"
    db.execute("BEGIN")
    db.execute(f"INSERT INTO intent ({', '.join(names)}) {numbers} SELECT {columns_for(names, own)} FROM c, intent AS t WHERE t.id = ?",
               (template,))
    db.execute(f"INSERT INTO body (id, bytes) {numbers} SELECT {own['result']}, b.bytes FROM c, body AS b WHERE b.id = ?", (result,))
    for _, sql in indexes:
        db.execute(sql)
    db.execute("COMMIT")
    db.execute("PRAGMA journal_mode=WAL")
    db.close()


def prefill_postgres(postgres, database, count):
    names = postgres.sql("SELECT column_name FROM information_schema.columns "
                         "WHERE table_schema = 'semel' AND table_name = 'intent' ORDER BY ordinal_position", database).split()
    template, result = postgres.sql("SELECT id, result FROM intent WHERE state = 3 ORDER BY id LIMIT 1", database).strip().split("|")
    indexes = [line.split("|", 1) for line in postgres.sql(
        "SELECT indexname, indexdef FROM pg_indexes "
        "WHERE schemaname = 'semel' AND tablename = 'intent' AND indexname <> 'intent_pkey'", database).splitlines()]
    own = {"id": f"{int(template) - count - 1} + n", "h": "decode(md5('h' || n), 'hex')", "key": "md5(n::text)",
           "result": f"{int(result) - count - 1} + n"}
    statements = [f"DROP INDEX {name}" for name, _ in indexes]
    statements.append(f"INSERT INTO intent ({', '.join(names)}) SELECT {columns_for(names, own)} "
                      f"FROM generate_series(1::bigint, {count}) AS n, intent AS t WHERE t.id = {template}")
    statements.append(f"INSERT INTO body (id, bytes) SELECT {own['result']}, b.bytes "
                      f"FROM generate_series(1::bigint, {count}) AS n, body AS b WHERE b.id = {result}")
    statements += [sql for _, sql in indexes]
    for statement in statements:
        postgres.sql(statement, database)
    postgres.sql("VACUUM ANALYZE", database)
    postgres.sql("CHECKPOINT", database)
