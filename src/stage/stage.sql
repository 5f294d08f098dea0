-- shape delivery: id i, space t, source t, received i, until i, record b

-- shape event: id i, space t, source t, delivery i, part i, received i, content t, verdict i, shadow i, reason t, score i, first i, explanation t, thread i, epoch i, copies i, burst i, burst_at i, intent i, policy i, decided i, until i

-- What the flow decides about an event.
-- shape event_decided: id i, verdict i, shadow i, reason t, score i, first i, explanation t, thread i, epoch i, intent i, policy i, decided i, until i

-- shape source: space t, name t, muted_until i, most i, every_us i, limited_until i, actor t, note t, changed i

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

-- query event_by_id(id i) -> event
-- sqlite:
SELECT {event} FROM event WHERE id = :id
-- postgres arrays:
SELECT {event} FROM event WHERE id = ANY(:id::bigint[])

-- query event_get(space t, id i) -> event
SELECT {event} FROM event WHERE id = :id AND space = :space

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

-- The latest events that have this mark.
-- query event_mark_get(h b, most i) -> h b, event i, at i
-- sqlite:
SELECT h, event, at FROM event_mark WHERE h = :h ORDER BY event DESC LIMIT :most
-- postgres arrays:
SELECT f.h, f.event, f.at FROM unnest(:h::bytea[], :most::bigint[]) AS u(h, most)
CROSS JOIN LATERAL (SELECT m.h, m.event, m.at FROM event_mark m WHERE m.h = u.h ORDER BY m.event DESC LIMIT u.most) AS f

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
