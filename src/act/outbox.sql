-- shape outbox: intent i, space t, destination t, step i, attended i, priority i, due i, deadline i, quiet i, tries i, probes i, line t, owner t, request i, status i, note t, created i

-- An effect with what the ledger says about it.
-- shape effect: intent i, space t, destination t, step i, attended i, priority i, due i, deadline i, quiet i, tries i, probes i, line t, owner t, request i, status i, note t, created i, workflow t, key t, state i, fence i, attempts i, ambiguous i, capability i, window_us i, first_sent i, first_sent_run i, settled i, result i, error t

-- query outbox_add(outbox)
-- sqlite:
INSERT INTO outbox ({outbox}) VALUES ({:outbox})
-- postgres arrays:
INSERT INTO outbox ({outbox}) SELECT {outbox[i]} FROM generate_series(1, cardinality(:intent::bigint[])) AS i

-- What is due at one destination, oldest first. In a line only the first that is not finished may go.
-- query outbox_due(destination t, priority i, now i, most i) -> effect
-- sqlite:
SELECT o.intent, o.space, o.destination, o.step, o.attended, o.priority, o.due, o.deadline, o.quiet, o.tries, o.probes, o.line, o.owner, o.request, o.status,
       o.note, o.created, i.workflow, i.key, i.state, i.fence, i.attempts, i.ambiguous, i.capability, i.window_us, i.first_sent, i.first_sent_run,
       i.settled, i.result, i.error
FROM outbox o JOIN intent i ON i.id = o.intent
WHERE o.destination = :destination AND o.priority = :priority AND o.step < 2 AND o.due <= :now
  AND (o.line IS NULL OR NOT EXISTS (SELECT 1 FROM outbox p WHERE p.destination = o.destination AND p.line = o.line AND p.step < 3 AND p.intent < o.intent))
ORDER BY o.due LIMIT :most
-- postgres arrays:
SELECT f.* FROM unnest(:destination::text[], :priority::bigint[], :now::bigint[], :most::bigint[]) AS u(destination, priority, now, most)
CROSS JOIN LATERAL (
  SELECT o.intent, o.space, o.destination, o.step, o.attended, o.priority, o.due, o.deadline, o.quiet, o.tries, o.probes, o.line, o.owner, o.request, o.status,
         o.note, o.created, i.workflow, i.key, i.state, i.fence, i.attempts, i.ambiguous, i.capability, i.window_us, i.first_sent, i.first_sent_run,
       i.settled, i.result, i.error
  FROM outbox o JOIN intent i ON i.id = o.intent
  WHERE o.destination = u.destination AND o.priority = u.priority AND o.step < 2 AND o.due <= u.now
    AND (o.line IS NULL OR NOT EXISTS (SELECT 1 FROM outbox p WHERE p.destination = o.destination AND p.line = o.line AND p.step < 3 AND p.intent < o.intent))
  ORDER BY o.due LIMIT u.most) AS f

-- Where something is to be sent or asked; found name by name in the index, so that a long outbox costs nothing.
-- query outbox_places() -> destination t
WITH RECURSIVE place(destination) AS (
  SELECT min(o.destination) FROM outbox o WHERE o.step < 2
  UNION ALL
  SELECT (SELECT min(o.destination) FROM outbox o WHERE o.step < 2 AND o.destination > place.destination) FROM place WHERE place.destination IS NOT NULL)
SELECT destination FROM place WHERE destination IS NOT NULL

-- How many wait there for something else than their caller.
-- query outbox_count(destination t) -> effects i
SELECT count(*) FROM outbox WHERE destination = :destination AND step < 2 AND due < 9223372036854775807

-- Those of one destination whose time is over and that nobody holds; without a deadline, those older than `patience`. What only its caller waits for has time.
-- query outbox_overdue(destination t, now i, patience i, most i) -> effect
SELECT o.intent, o.space, o.destination, o.step, o.attended, o.priority, o.due, o.deadline, o.quiet, o.tries, o.probes, o.line, o.owner, o.request, o.status,
       o.note, o.created, i.workflow, i.key, i.state, i.fence, i.attempts, i.ambiguous, i.capability, i.window_us, i.first_sent, i.first_sent_run,
       i.settled, i.result, i.error
FROM outbox o JOIN intent i ON i.id = o.intent
WHERE o.destination = :destination AND o.step < 2 AND i.state NOT IN (1, 2) AND (o.attended = 0 OR i.state <> 0 OR i.ambiguous <> 0)
  AND CASE WHEN o.deadline <> 0 THEN o.deadline ELSE o.created + :patience END <= :now
ORDER BY o.intent LIMIT :most

-- Someone carries it out: it is looked at again when that must be over, also when a person had it before.
-- query outbox_taken(intent i, due i, quiet i)
UPDATE outbox SET step = 0, due = :due, quiet = :quiet, tries = tries + 1 WHERE intent = :intent

-- What became of an attempt.
-- query outbox_ended(intent i, step i, due i, quiet i, status i, note t)
UPDATE outbox SET step = :step, due = :due, quiet = :quiet, status = :status, note = :note WHERE intent = :intent

-- Where it stands on the ladder, when nothing was sent; unless somebody has changed the row since it was looked at.
-- query outbox_stand(intent i, step i, due i, probes i, seen_due i)
UPDATE outbox SET step = :step, due = :due, probes = :probes WHERE intent = :intent AND due = :seen_due

-- Nobody can tell, and the destination has to be asked: from now on, and from the beginning.
-- query outbox_ask(intent i, step i, due i)
UPDATE outbox SET step = :step, due = :due, probes = 0 WHERE intent = :intent

-- A person said: again. Its attempts and questions begin anew. With a `seen_due` from 0 on, unless somebody has changed the row since it was looked at.
-- query outbox_again(intent i, step i, due i, deadline i, seen_due i)
UPDATE outbox SET step = :step, attended = 0, due = :due, deadline = :deadline, tries = 0, probes = 0 WHERE intent = :intent AND (due = :seen_due OR :seen_due < 0)

-- The last that waits in one of these lines.
-- query outbox_line_last(destination t, line t) -> intent i
-- sqlite:
SELECT coalesce(max(intent), 0) FROM outbox WHERE destination = :destination AND line = :line AND step < 3
-- postgres arrays:
SELECT coalesce(max(f.intent), 0) FROM unnest(:destination::text[], :line::text[]) AS u(destination, line)
CROSS JOIN LATERAL (SELECT max(o.intent) AS intent FROM outbox o WHERE o.destination = u.destination AND o.line = u.line AND o.step < 3) AS f

-- query outbox_has(intent i) -> intent i
SELECT intent FROM outbox WHERE intent = :intent

-- query effect_get(space t, intent i) -> effect
SELECT o.intent, o.space, o.destination, o.step, o.attended, o.priority, o.due, o.deadline, o.quiet, o.tries, o.probes, o.line, o.owner, o.request, o.status,
       o.note, o.created, i.workflow, i.key, i.state, i.fence, i.attempts, i.ambiguous, i.capability, i.window_us, i.first_sent, i.first_sent_run,
       i.settled, i.result, i.error
FROM outbox o JOIN intent i ON i.id = o.intent WHERE o.intent = :intent AND o.space = :space

-- Newest first; what is NULL or -1 is not looked at. (The columns stand first: PostgreSQL takes a parameter's type from its first use.)
-- query effect_list(space t, destination t, state i, step i, before i, most i) -> effect
SELECT o.intent, o.space, o.destination, o.step, o.attended, o.priority, o.due, o.deadline, o.quiet, o.tries, o.probes, o.line, o.owner, o.request, o.status,
       o.note, o.created, i.workflow, i.key, i.state, i.fence, i.attempts, i.ambiguous, i.capability, i.window_us, i.first_sent, i.first_sent_run,
       i.settled, i.result, i.error
FROM outbox o JOIN intent i ON i.id = o.intent
WHERE o.space = :space AND o.intent < :before AND coalesce(:destination, o.destination) = o.destination
  AND (i.state = :state OR :state < 0) AND (o.step = :step OR :step < 0)
ORDER BY o.intent DESC LIMIT :most

-- Those of a filter that are not finished, newest first, a page at a time; step -1 is every one of them.
-- query effect_walk(space t, destination t, step i, before i, most i) -> intent i, step i, attended i, due i, deadline i, created i, state i, fence i, ambiguous i
SELECT o.intent, o.step, o.attended, o.due, o.deadline, o.created, i.state, i.fence, i.ambiguous
FROM outbox o JOIN intent i ON i.id = o.intent
WHERE o.space = :space AND o.intent < :before AND coalesce(:destination, o.destination) = o.destination AND (o.step = :step OR (:step < 0 AND o.step < 3))
ORDER BY o.intent DESC LIMIT :most

-- How many they are, by all that says what may be done with them.
-- query effect_tally(space t, destination t, step i, before i) -> attended i, state i, ambiguous i, effects i
SELECT o.attended, i.state, i.ambiguous, count(*)
FROM outbox o JOIN intent i ON i.id = o.intent
WHERE o.space = :space AND o.intent < :before AND coalesce(:destination, o.destination) = o.destination AND (o.step = :step OR (:step < 0 AND o.step < 3))
GROUP BY o.attended, i.state, i.ambiguous

-- What is forgotten with an intent.
-- query outbox_forget_request(intent i)
DELETE FROM body WHERE id IN (SELECT request FROM outbox WHERE intent = :intent)

-- query outbox_forget(intent i)
DELETE FROM outbox WHERE intent = :intent

-- query outbox_depth(now i) -> destination t, open i, waiting i, oldest i
SELECT destination, count(*), coalesce(sum(CASE WHEN step = 2 THEN 1 ELSE 0 END), 0), coalesce(min(CASE WHEN step < 2 AND due <= :now THEN created END), 0)
FROM outbox WHERE step < 3 GROUP BY destination
