-- shape delivery: id i, space t, source t, received i, until i, record b

-- shape event: id i, space t, source t, delivery i, part i, received i, content t, verdict i, shadow i, reason t, score i, first i, explanation t, thread i, epoch i, copies i, burst i, burst_at i, intent i, policy i, decided i, until i, record i

-- What the flow decides about an event.
-- shape event_decided: id i, verdict i, shadow i, reason t, score i, first i, explanation t, thread i, epoch i, intent i, policy i, decided i, until i, record i

-- shape source: space t, name t, muted_until i, most i, every_us i, limited_until i, actor t, note t, changed i

-- What a person did about an event.
-- shape event_act: id i, event i, act i, was i, at i, actor t, note t, intent i

-- query delivery_add(delivery)
INSERT INTO delivery ({delivery}) VALUES ({:delivery})

-- query delivery_get(space t, id i) -> delivery
SELECT {delivery} FROM delivery WHERE id = :id AND space = :space

-- query event_add(event)
-- sqlite:
INSERT INTO event ({event}) VALUES ({:event})
-- postgres arrays:
INSERT INTO event ({event}) SELECT {event[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- One node decides at a time: what it decides depends on what was decided before.
-- query event_lock() -> held i
-- sqlite:
SELECT 1
-- postgres:
SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(1702260084)) AS held

-- query event_undecided(most i) -> event
SELECT {event} FROM event WHERE verdict = 0 ORDER BY id LIMIT :most

-- What came in between and was decided, in the order in which it was.
-- query event_decided_after(space t, after i, before i, most i) -> event
SELECT {event} FROM event WHERE space = :space AND id > :after AND id < :before AND verdict > 0 ORDER BY id LIMIT :most

-- query event_by_id(id i) -> event
-- sqlite:
SELECT {event} FROM event WHERE id = :id
-- postgres arrays:
SELECT {event} FROM event WHERE id = ANY(:id::bigint[])

-- query event_get(space t, id i) -> event
SELECT {event} FROM event WHERE id = :id AND space = :space

-- Newest first; what is NULL, -1 or 0 is not looked at.
-- query event_list(space t, verdict i, before i, most i) -> event
SELECT {event} FROM event WHERE space = :space AND id < :before AND (verdict = :verdict OR :verdict < 0) ORDER BY id DESC LIMIT :most

-- query event_list_source(space t, source t, verdict i, before i, most i) -> event
SELECT {event} FROM event WHERE space = :space AND source = :source AND id < :before AND (verdict = :verdict OR :verdict < 0) ORDER BY id DESC LIMIT :most

-- query event_list_thread(space t, thread i, source t, verdict i, before i, most i) -> event
SELECT {event} FROM event WHERE thread = :thread AND thread > 0 AND space = :space AND id < :before AND coalesce(:source, source) = source
  AND (verdict = :verdict OR :verdict < 0)
ORDER BY id DESC LIMIT :most

-- Those that wait for a person are few among many.
-- query event_list_held(space t, source t, before i, most i) -> event
SELECT {event} FROM event WHERE verdict = 3 AND space = :space AND id < :before AND coalesce(:source, source) = source ORDER BY id DESC LIMIT :most

-- The repetitions of an event, oldest first.
-- query event_copies(space t, first i, most i) -> event
SELECT {event} FROM event WHERE first = :first AND first > 0 AND space = :space ORDER BY id LIMIT :most

-- Those that went on, in the order in which they came.
-- query event_gone_on(space t, source t, after i, before i, most i) -> id i
SELECT id FROM event WHERE space = :space AND source = :source AND id > :after AND id < :before AND verdict IN (1, 6) ORDER BY id LIMIT :most

-- query event_waiting_count(most i) -> count i, oldest i
SELECT count(*), coalesce(min(received), 0) FROM (SELECT received FROM event WHERE verdict = 0 ORDER BY id LIMIT :most) AS waiting

-- query event_latest(space t, source t) -> id i
SELECT id FROM event WHERE space = :space AND source = :source ORDER BY id DESC LIMIT 1

-- query event_count_since(space t, after i) -> source t, verdict i, count i
SELECT source, verdict, count(*) FROM event WHERE space = :space AND id > :after GROUP BY source, verdict

-- query event_act_add(event_act)
INSERT INTO event_act ({event_act}) VALUES ({:event_act})

-- query event_act_list(event i) -> event_act
SELECT {event_act} FROM event_act WHERE event = :event ORDER BY id

-- query event_act_drop(id i)
-- sqlite:
DELETE FROM event_act WHERE event = :id
-- postgres arrays:
DELETE FROM event_act WHERE event = ANY(:id::bigint[])

-- query event_decide(event_decided)
-- sqlite:
UPDATE event SET {event_decided=} WHERE id = :id
-- postgres arrays:
UPDATE event SET ({event_decided}) = (SELECT {event_decided[i]} FROM (SELECT array_position(:id::bigint[], event.id) AS i OFFSET 0) AS at)
WHERE id = ANY(:id::bigint[])

-- Another copy of it came. A burst is counted from its first copy.
-- query event_copied(id i, copies i, burst i, burst_at i)
-- sqlite:
UPDATE event SET copies = :copies, burst = :burst, burst_at = :burst_at WHERE id = :id
-- postgres arrays:
UPDATE event SET copies = (:copies::bigint[])[i], burst = (:burst::bigint[])[i], burst_at = (:burst_at::bigint[])[i]
FROM generate_series(1, cardinality(:id::bigint[])) AS i WHERE event.id = (:id::bigint[])[i]

-- The latest events that have this mark, and had it before a moment.
-- query event_mark_get(h b, most i, before i) -> h b, event i, at i
-- sqlite:
SELECT h, event, at FROM event_mark WHERE h = :h AND at < :before ORDER BY event DESC LIMIT :most
-- postgres arrays:
SELECT f.h, f.event, f.at FROM unnest(:h::bytea[], :most::bigint[], :before::bigint[]) AS u(h, most, before)
CROSS JOIN LATERAL (SELECT m.h, m.event, m.at FROM event_mark m WHERE m.h = u.h AND m.at < u.before ORDER BY m.event DESC LIMIT u.most) AS f

-- query event_mark_add(h b, event i, at i, until i)
-- sqlite:
INSERT INTO event_mark (h, event, at, until) VALUES (:h, :event, :at, :until) ON CONFLICT (h, event) DO NOTHING
-- postgres arrays:
INSERT INTO event_mark (h, event, at, until)
SELECT (:h::bytea[])[i], (:event::bigint[])[i], (:at::bigint[])[i], (:until::bigint[])[i] FROM generate_series(1, cardinality(:h::bytea[])) AS i
ON CONFLICT (h, event) DO NOTHING

-- The marks are gone through slice by slice of their hashes, so that they need no index by time.
-- query event_mark_sweep(low b, high b, now i)
DELETE FROM event_mark WHERE h >= :low AND h < :high AND until < :now

-- query event_sweep(now i, most i) -> id i
SELECT id FROM event WHERE until > 0 AND until < :now ORDER BY until LIMIT :most

-- query event_drop(id i)
-- sqlite:
DELETE FROM event WHERE id = :id
-- postgres arrays:
DELETE FROM event WHERE id = ANY(:id::bigint[])

-- query delivery_sweep(now i, most i) -> id i
SELECT d.id FROM delivery d WHERE d.until < :now AND NOT EXISTS (SELECT 1 FROM event e WHERE e.delivery = d.id) ORDER BY d.until LIMIT :most

-- query delivery_drop(id i)
-- sqlite:
DELETE FROM delivery WHERE id = :id
-- postgres arrays:
DELETE FROM delivery WHERE id = ANY(:id::bigint[])

-- query source_get(space t, name t) -> source
SELECT {source} FROM source WHERE space = :space AND name = :name

-- query source_list(space t) -> source
SELECT {source} FROM source WHERE space = :space ORDER BY name

-- query source_put(source)
INSERT INTO source ({source}) VALUES ({:source})
ON CONFLICT (space, name) DO UPDATE SET muted_until = excluded.muted_until, most = excluded.most, every_us = excluded.every_us,
    limited_until = excluded.limited_until, actor = excluded.actor, note = excluded.note, changed = excluded.changed

-- How many of its events were accepted since then.
-- query source_accepted(space t, source t, after i) -> count i
SELECT count(*) FROM event WHERE space = :space AND source = :source AND id > :after AND verdict IN (1, 6)
