-- shape exception: id i, space t, kind i, intent i, owner t, due i, state i, reason t, created i, resolved i, resolution t, actor t, note t, event i, edge i

-- The owner that the effect names, if there is one, else the given one. An open card of the same kind about the same thing is enough.
-- query exception_add(exception)
INSERT INTO exception ({exception})
SELECT :id, :space, :kind, :intent, coalesce((SELECT o.owner FROM outbox o WHERE o.intent = :intent), :owner), :due, :state, :reason,
       :created, :resolved, :resolution, :actor, :note, :event, :edge
WHERE NOT EXISTS (SELECT 1 FROM exception e WHERE e.intent = :intent AND e.event = :event AND e.edge = :edge AND e.kind = :kind AND e.state = 0)

-- query exception_open_of(intent i, event i, edge i, kind i) -> exception
SELECT {exception} FROM exception WHERE intent = :intent AND event = :event AND edge = :edge AND kind = :kind AND state = 0

-- query exception_resolve(id i, resolved i, resolution t, actor t, note t)
UPDATE exception SET state = 1, resolved = :resolved, resolution = :resolution, actor = :actor, note = :note WHERE id = :id AND state = 0

-- query exception_assign(id i, owner t, due i)
UPDATE exception SET owner = :owner, due = :due WHERE id = :id AND state = 0

-- query exception_get(space t, id i) -> exception
SELECT {exception} FROM exception WHERE space = :space AND id = :id

-- Open ones by due time; `after_due`, `after_id` continue a list.
-- query exception_list_open(space t, after_due i, after_id i, most i) -> exception
SELECT {exception} FROM exception WHERE space = :space AND state = 0 AND (due > :after_due OR (due = :after_due AND id > :after_id))
ORDER BY due, id LIMIT :most

-- query exception_list(space t, before i, most i) -> exception
SELECT {exception} FROM exception WHERE space = :space AND id < :before ORDER BY id DESC LIMIT :most

-- query exception_count(now i) -> open i, overdue i
SELECT count(*), coalesce(sum(CASE WHEN due < :now THEN 1 ELSE 0 END), 0) FROM exception WHERE state = 0
