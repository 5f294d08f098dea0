-- shape thread: id i, space t, epoch i, question i, created i, updated i, burst i, burst_at i, record i

-- query thread_put(thread)
-- sqlite:
INSERT INTO thread ({thread}) VALUES ({:thread})
ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, question = excluded.question, updated = excluded.updated, burst = excluded.burst, burst_at = excluded.burst_at, record = excluded.record
-- postgres arrays:
INSERT INTO thread ({thread}) SELECT {thread[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i
ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, question = excluded.question, updated = excluded.updated, burst = excluded.burst, burst_at = excluded.burst_at, record = excluded.record

-- query thread_get(space t, id i) -> thread
SELECT {thread} FROM thread WHERE id = :id AND space = :space

-- query thread_by_mark(h b) -> h b, id i, space t, epoch i, question i, created i, updated i, burst i, burst_at i, record i
-- sqlite:
SELECT m.h, t.id, t.space, t.epoch, t.question, t.created, t.updated, t.burst, t.burst_at, t.record FROM thread_mark m JOIN thread t ON t.id = m.thread WHERE m.h = :h
-- postgres arrays:
SELECT m.h, t.id, t.space, t.epoch, t.question, t.created, t.updated, t.burst, t.burst_at, t.record FROM thread_mark m JOIN thread t ON t.id = m.thread
WHERE m.h = ANY(:h::bytea[])

-- query thread_mark_add(h b, thread i)
-- sqlite:
INSERT INTO thread_mark (h, thread) VALUES (:h, :thread) ON CONFLICT (h) DO NOTHING
-- postgres arrays:
INSERT INTO thread_mark (h, thread) SELECT (:h::bytea[])[i], (:thread::bigint[])[i] FROM generate_series(1, cardinality(:h::bytea[])) AS i
ON CONFLICT (h) DO NOTHING

-- Was anything done about the conversation since its question came? A key of the epoch counts whenever it was made, one of another epoch never; for what has
-- a key of its own, ids grow with time.
-- query thread_answered(space t, thread t, question i, epoch t, answers t) -> intent i
SELECT id FROM intent WHERE space = :space AND thread = :thread AND action IS NOT NULL
AND (substr(key, 1, length(:epoch)) = :epoch OR (id > :question AND workflow <> :answers))
ORDER BY id DESC LIMIT 1

-- query thread_person_add(h b, thread i)
-- sqlite:
INSERT INTO thread_person (h, thread) VALUES (:h, :thread) ON CONFLICT (h, thread) DO NOTHING
-- postgres arrays:
INSERT INTO thread_person (h, thread) SELECT (:h::bytea[])[i], (:thread::bigint[])[i] FROM generate_series(1, cardinality(:h::bytea[])) AS i
ON CONFLICT (h, thread) DO NOTHING

-- What people are shown. A question that a person released has the act's id, so that it counts from then on; shown is the event of that act.
-- query thread_show(space t, id i) -> thread
SELECT id, space, epoch, COALESCE((SELECT event FROM event_act WHERE event_act.id = question), question), created, updated, burst, burst_at, record FROM thread
WHERE id = :id AND space = :space

-- query thread_list(space t, before i, most i) -> thread
SELECT id, space, epoch, COALESCE((SELECT event FROM event_act WHERE event_act.id = question), question), created, updated, burst, burst_at, record FROM thread
WHERE space = :space AND id < :before ORDER BY id DESC LIMIT :most

-- query thread_list_person(space t, h b, before i, most i) -> thread
SELECT t.id, t.space, t.epoch, COALESCE((SELECT event FROM event_act a WHERE a.id = t.question), t.question), t.created, t.updated, t.burst, t.burst_at, t.record
FROM thread_person p JOIN thread t ON t.id = p.thread
WHERE p.h = :h AND p.thread < :before AND t.space = :space ORDER BY p.thread DESC LIMIT :most

-- What was said in it, newest first.
-- query thread_events(space t, thread i, most i) -> id i, source t, received i, verdict i, reason t, epoch i, first i
SELECT id, source, received, verdict, reason, epoch, first FROM event WHERE thread = :thread AND thread > 0 AND space = :space ORDER BY id DESC LIMIT :most

-- What was done about it, newest first.
-- query thread_answers(space t, thread t, most i) -> id i, workflow t, key t, state i, action t, created i, settled i
SELECT id, workflow, key, state, action, created, settled FROM intent WHERE space = :space AND thread = :thread AND action IS NOT NULL
ORDER BY id DESC LIMIT :most
