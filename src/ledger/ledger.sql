-- shape intent: id i, h b, space t, workflow t, key t, state i, fence i, attempts i, attempts_max i, lease_us i, lease_until i, two_phase i, shadow i, capability i, on_unknown i, window_us i, keep_us i, tombstone_us i, fingerprint b, fingerprint_version i, fields t, run t, thread t, action t, nonce b, result i, error t, created i, first_sent i, first_sent_run i, ambiguous i, epoch i, decision i, settled i, expires i

-- What a transition may change. The columns that name the intent are not among them.
-- shape intent_change: id i, state i, fence i, attempts i, attempts_max i, lease_us i, lease_until i, two_phase i, shadow i, capability i, on_unknown i, window_us i, keep_us i, tombstone_us i, run t, thread t, action t, nonce b, result i, error t, first_sent i, first_sent_run i, ambiguous i, epoch i, decision i, settled i, expires i

-- By key hash; a plain look.
-- query intent_look(h b) -> intent
-- sqlite:
SELECT {intent} FROM intent WHERE h = :h
-- postgres arrays:
SELECT {intent} FROM intent WHERE h = ANY(:h::bytea[])

-- query intent_look_id(id i) -> intent
-- sqlite:
SELECT {intent} FROM intent WHERE id = :id
-- postgres arrays:
SELECT {intent} FROM intent WHERE id = ANY(:id::bigint[])

-- PostgreSQL: by hash or by id, held against other nodes until the transaction ends. One statement takes all locks in one order, so that two nodes
-- never wait for each other in a circle. SQLite has one writer and needs no locks.
-- query intent_lock(h b, id i) -> intent
-- sqlite:
SELECT {intent} FROM intent WHERE h = :h OR id = :id
-- postgres arrays:
SELECT {intent} FROM intent WHERE id = ANY(ARRAY(SELECT id FROM intent WHERE h = ANY(:h::bytea[]) UNION ALL SELECT unnest(:id::bigint[])))
ORDER BY id FOR UPDATE

-- What others that go in turn wait for: see ledger_is_open(). One that is pending counts when semel itself is to carry it out. At most 8: more of them
-- come only from shadow mode.
-- query intent_open(space t, workflow t, thread t, action t) -> intent
-- sqlite:
SELECT {intent} FROM intent WHERE space = :space AND thread = :thread AND action = :action AND workflow = :workflow
AND (state IN (1, 2) OR (state = 5 AND settled = 0) OR (state = 0 AND EXISTS (SELECT 1 FROM outbox o WHERE o.intent = intent.id AND o.step < 2))) ORDER BY id LIMIT 8
-- postgres arrays:
SELECT f.* FROM unnest(:space::text[], :workflow::text[], :thread::text[], :action::text[]) AS u(space, workflow, thread, action)
CROSS JOIN LATERAL (
  SELECT {intent} FROM intent WHERE intent.space = u.space AND intent.thread = u.thread AND intent.action = u.action AND intent.workflow = u.workflow
  AND (state IN (1, 2) OR (state = 5 AND settled = 0) OR (state = 0 AND EXISTS (SELECT 1 FROM outbox o WHERE o.intent = intent.id AND o.step < 2))) ORDER BY id LIMIT 8) AS f

-- Which of them semel itself carries out, or did until a person was asked: they are queued again when they become pending.
-- query intent_queued(id i) -> id i
-- sqlite:
SELECT intent FROM outbox WHERE intent = :id AND step < 3
-- postgres arrays:
SELECT intent FROM outbox WHERE intent = ANY(:id::bigint[]) AND step < 3

-- PostgreSQL: whoever answers in a conversation and whoever notes a new question in it come one after the other. All at once and in one order; held until the
-- transaction ends. SQLite has one writer.
-- query turn_lock(n i) -> held i
-- sqlite:
SELECT :n
-- postgres arrays:
SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(n) FROM (SELECT DISTINCT n FROM unnest(:n::bigint[]) AS u(n) ORDER BY n) AS sorted) AS held

-- PostgreSQL: the intents are still as this node left them, and are held until the transaction ends; or else it fails, with a sentence that is not a number.
-- query intent_hold(id i, decision i)
-- sqlite:
SELECT 1 FROM intent WHERE id = :id AND decision = :decision
-- postgres arrays:
SELECT CASE WHEN count(*) = cardinality(:id::bigint[]) THEN 1 ELSE ('changed by another node, left are ' || count(*))::bigint END
FROM (SELECT id, decision FROM intent WHERE id = ANY(:id::bigint[]) ORDER BY id FOR UPDATE) AS held
WHERE decision = (:decision::bigint[])[array_position(:id::bigint[], id)]

-- On PostgreSQL another node may have been first: that is a conflict, and the batch is decided anew.
-- query intent_add(intent)
-- sqlite:
INSERT INTO intent ({intent}) VALUES ({:intent})
-- postgres arrays:
INSERT INTO intent ({intent}) SELECT {intent[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- query intent_change(intent_change)
-- sqlite:
UPDATE intent SET {intent_change=} WHERE id = :id
-- postgres arrays:
UPDATE intent SET ({intent_change}) = (SELECT {intent_change[i]} FROM (SELECT array_position(:id::bigint[], intent.id) AS i OFFSET 0) AS at)
WHERE id = ANY(:id::bigint[])

-- query intent_drop(id i)
-- sqlite:
DELETE FROM intent WHERE id = :id
-- postgres arrays:
DELETE FROM intent WHERE id = ANY(:id::bigint[])

-- Leases that ran out.
-- query intent_lapsed(now i, most i) -> id i
SELECT id FROM intent WHERE state IN (1, 2) AND state <> 3 AND lease_until <= :now LIMIT :most

-- Finished intents whose time to be kept is over.
-- query intent_expired(now i, most i) -> id i
SELECT id FROM intent WHERE expires > 0 AND expires <= :now ORDER BY expires LIMIT :most

-- Free ones of a workflow that nobody has touched for as long as they would be kept. The time inside an id counts from 2020 in milliseconds: `now` does so in microseconds.
-- query intent_idle(workflow t, now i, most i) -> id i, space t, fence i
SELECT id, space, fence FROM intent WHERE state = 0 AND state <> 3 AND workflow = :workflow AND decision / 4194304 * 1000 + keep_us < :now LIMIT :most

-- query intent_get(space t, id i) -> intent
SELECT {intent} FROM intent WHERE id = :id AND space = :space

-- query intent_by_key(h b) -> intent
SELECT {intent} FROM intent WHERE h = :h

-- query intent_list(space t, before i, most i) -> intent
SELECT {intent} FROM intent WHERE space = :space AND id < :before ORDER BY id DESC LIMIT :most

-- query intent_list_workflow(space t, workflow t, before i, most i) -> intent
SELECT {intent} FROM intent WHERE space = :space AND workflow = :workflow AND id < :before ORDER BY id DESC LIMIT :most

-- query intent_list_open(space t, state i, before i, most i) -> intent
SELECT {intent} FROM intent WHERE space = :space AND state = :state AND state <> 3 AND id < :before ORDER BY id DESC LIMIT :most

-- query intent_list_confirmed(space t, before i, most i) -> intent
SELECT {intent} FROM intent WHERE space = :space AND state = 3 AND id < :before ORDER BY id DESC LIMIT :most

-- query intent_list_workflow_state(space t, workflow t, state i, before i, most i) -> intent
SELECT {intent} FROM intent WHERE space = :space AND workflow = :workflow AND state = :state AND id < :before ORDER BY id DESC LIMIT :most

-- query body_add(id i, bytes b)
-- sqlite:
INSERT INTO body (id, bytes) VALUES (:id, :bytes)
-- postgres arrays:
INSERT INTO body (id, bytes) SELECT (:id::bigint[])[i], (:bytes::bytea[])[i] FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- query body_get(id i) -> id i, bytes b
-- sqlite:
SELECT id, bytes FROM body WHERE id = :id
-- postgres arrays:
SELECT id, bytes FROM body WHERE id = ANY(:id::bigint[])

-- query body_drop(id i)
-- sqlite:
DELETE FROM body WHERE id = :id
-- postgres arrays:
DELETE FROM body WHERE id = ANY(:id::bigint[])

-- query tombstone_get(h b) -> h b, state i, settled i
-- sqlite:
SELECT h, state, settled FROM tombstone WHERE h = :h
-- postgres arrays:
SELECT h, state, settled FROM tombstone WHERE h = ANY(:h::bytea[])

-- PostgreSQL: none of them is buried, or else it fails in the same way.
-- query tombstone_none(h b)
-- sqlite:
SELECT 1 FROM tombstone WHERE h = :h
-- postgres arrays:
SELECT CASE WHEN count(*) = 0 THEN 1 ELSE ('buried are ' || count(*))::bigint END FROM tombstone WHERE h = ANY(:h::bytea[])

-- query tombstone_add(h b, state i, settled i, expires i)
-- sqlite:
INSERT INTO tombstone (h, state, settled, expires) VALUES (:h, :state, :settled, :expires)
ON CONFLICT (h) DO UPDATE SET state = excluded.state, settled = excluded.settled, expires = excluded.expires
-- postgres arrays:
INSERT INTO tombstone (h, state, settled, expires) SELECT * FROM unnest(:h::bytea[], :state::bigint[], :settled::bigint[], :expires::bigint[])
ON CONFLICT (h) DO UPDATE SET state = excluded.state, settled = excluded.settled, expires = excluded.expires

-- query tombstone_drop(now i, most i)
DELETE FROM tombstone WHERE h IN (SELECT h FROM tombstone WHERE expires <= :now LIMIT :most)
