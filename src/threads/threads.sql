-- shape thread: id i, space t, epoch i, question i, created i, updated i, burst i, burst_at i

-- query thread_put(thread)
-- sqlite:
INSERT INTO thread ({thread}) VALUES ({:thread})
ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, question = excluded.question, updated = excluded.updated, burst = excluded.burst, burst_at = excluded.burst_at
-- postgres arrays:
INSERT INTO thread ({thread}) SELECT {thread[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i
ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, question = excluded.question, updated = excluded.updated, burst = excluded.burst, burst_at = excluded.burst_at

-- query thread_get(space t, id i) -> thread
SELECT {thread} FROM thread WHERE id = :id AND space = :space

-- query thread_by_mark(h b) -> h b, id i, space t, epoch i, question i, created i, updated i, burst i, burst_at i
-- sqlite:
SELECT m.h, t.id, t.space, t.epoch, t.question, t.created, t.updated, t.burst, t.burst_at FROM thread_mark m JOIN thread t ON t.id = m.thread WHERE m.h = :h
-- postgres arrays:
SELECT m.h, t.id, t.space, t.epoch, t.question, t.created, t.updated, t.burst, t.burst_at FROM thread_mark m JOIN thread t ON t.id = m.thread
WHERE m.h = ANY(:h::bytea[])

-- query thread_mark_add(h b, thread i)
-- sqlite:
INSERT INTO thread_mark (h, thread) VALUES (:h, :thread) ON CONFLICT (h) DO NOTHING
-- postgres arrays:
INSERT INTO thread_mark (h, thread) SELECT (:h::bytea[])[i], (:thread::bigint[])[i] FROM generate_series(1, cardinality(:h::bytea[])) AS i
ON CONFLICT (h) DO NOTHING

-- Was anything done about the conversation since its question came? Ids grow with time; a key of the epoch counts whenever it was made.
-- query thread_answered(space t, thread t, question i, epoch t) -> intent i
SELECT id FROM intent WHERE space = :space AND thread = :thread AND action IS NOT NULL AND (id > :question OR substr(key, 1, length(:epoch)) = :epoch)
ORDER BY id DESC LIMIT 1
