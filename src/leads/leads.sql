-- shape lead_record: id i, space t, source t, external t, event i, h b, content t, packed b, created i, lead i

-- shape lead: id i, space t, name t, company t, records i, created i, updated i

-- shape lead_edge: id i, space t, kind i, a i, b i, rule t, score i, weights t, explanation t, actor t, note t, created i, undone i, undone_by t, undone_note t

-- query lead_record_add(lead_record)
-- sqlite:
INSERT INTO lead_record ({lead_record}) VALUES ({:lead_record})
-- postgres arrays:
INSERT INTO lead_record ({lead_record}) SELECT {lead_record[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- query lead_record_by_h(h b) -> lead_record
-- sqlite:
SELECT {lead_record} FROM lead_record WHERE h = :h
-- postgres arrays:
SELECT {lead_record} FROM lead_record WHERE h = ANY(:h::bytea[])

-- query lead_record_get(space t, id i) -> lead_record
SELECT {lead_record} FROM lead_record WHERE id = :id AND space = :space

-- Everything that belongs to a lead, oldest first, and one more than is allowed.
-- query lead_records(lead i, most i) -> lead_record
-- sqlite:
SELECT {lead_record} FROM lead_record WHERE lead = :lead ORDER BY id LIMIT :most
-- postgres arrays:
SELECT f.* FROM unnest(:lead::bigint[], :most::bigint[]) AS u(lead, most)
CROSS JOIN LATERAL (SELECT {lead_record} FROM lead_record r WHERE r.lead = u.lead ORDER BY r.id LIMIT u.most) AS f

-- query lead_record_move(id i, lead i)
-- sqlite:
UPDATE lead_record SET lead = :lead WHERE id = :id
-- postgres arrays:
UPDATE lead_record SET lead = (:lead::bigint[])[i] FROM generate_series(1, cardinality(:id::bigint[])) AS i WHERE lead_record.id = (:id::bigint[])[i]

-- query lead_key_add(k i, record i)
-- sqlite:
INSERT INTO lead_key (k, record) VALUES (:k, :record)
-- postgres arrays:
INSERT INTO lead_key (k, record) SELECT (:k::bigint[])[i], (:record::bigint[])[i] FROM generate_series(1, cardinality(:k::bigint[])) AS i

-- The newest records that have this key, and whose they are.
-- query lead_key_find(k i, most i) -> k i, record i, lead i
-- sqlite:
SELECT m.k, m.record, r.lead FROM lead_key m JOIN lead_record r ON r.id = m.record WHERE m.k = :k ORDER BY m.record DESC LIMIT :most
-- postgres arrays:
SELECT f.k, f.record, f.lead FROM unnest(:k::bigint[], :most::bigint[]) AS u(k, most)
CROSS JOIN LATERAL (SELECT m.k, m.record, r.lead FROM lead_key m JOIN lead_record r ON r.id = m.record WHERE m.k = u.k ORDER BY m.record DESC LIMIT u.most) AS f

-- query lead_put(lead)
-- sqlite:
INSERT INTO lead ({lead}) VALUES ({:lead})
ON CONFLICT (id) DO UPDATE SET name = excluded.name, company = excluded.company, records = excluded.records, created = excluded.created, updated = excluded.updated
-- postgres arrays:
INSERT INTO lead ({lead}) SELECT {lead[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i
ON CONFLICT (id) DO UPDATE SET name = excluded.name, company = excluded.company, records = excluded.records, created = excluded.created, updated = excluded.updated

-- query lead_drop(id i)
-- sqlite:
DELETE FROM lead WHERE id = :id
-- postgres arrays:
DELETE FROM lead WHERE id = ANY(:id::bigint[])

-- query lead_count_get(space t) -> leads i
SELECT leads FROM lead_count WHERE space = :space

-- query lead_count_add(space t, leads i)
INSERT INTO lead_count (space, leads) VALUES (:space, :leads) ON CONFLICT (space) DO UPDATE SET leads = lead_count.leads + excluded.leads

-- query lead_edge_add(lead_edge)
-- sqlite:
INSERT INTO lead_edge ({lead_edge}) VALUES ({:lead_edge})
-- postgres arrays:
INSERT INTO lead_edge ({lead_edge}) SELECT {lead_edge[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- query lead_edge_undo(id i, undone i, undone_by t, undone_note t)
-- sqlite:
UPDATE lead_edge SET undone = :undone, undone_by = :undone_by, undone_note = :undone_note WHERE id = :id
-- postgres arrays:
UPDATE lead_edge SET undone = (:undone::bigint[])[i], undone_by = (:undone_by::text[])[i], undone_note = (:undone_note::text[])[i]
FROM generate_series(1, cardinality(:id::bigint[])) AS i WHERE lead_edge.id = (:id::bigint[])[i]

-- query lead_edge_get(space t, id i) -> lead_edge
SELECT {lead_edge} FROM lead_edge WHERE id = :id AND space = :space

-- All that was ever decided about a record.
-- query lead_edge_of(record i) -> lead_edge
-- sqlite:
SELECT {lead_edge} FROM lead_edge WHERE a = :record UNION ALL SELECT {lead_edge} FROM lead_edge WHERE b = :record
-- postgres arrays:
SELECT {lead_edge} FROM lead_edge WHERE a = ANY(:record::bigint[]) OR b = ANY(:record::bigint[])

-- What speaks against joining it with another: different, asked, or taken back.
-- query lead_edge_apart(record i) -> lead_edge
-- sqlite:
SELECT {lead_edge} FROM lead_edge WHERE a = :record AND (kind > 0 OR undone > 0)
UNION ALL SELECT {lead_edge} FROM lead_edge WHERE b = :record AND (kind > 0 OR undone > 0)
-- postgres arrays:
SELECT {lead_edge} FROM lead_edge WHERE a = ANY(:record::bigint[]) AND (kind > 0 OR undone > 0)
UNION ALL SELECT {lead_edge} FROM lead_edge WHERE b = ANY(:record::bigint[]) AND (kind > 0 OR undone > 0)

-- query lead_list(space t, before i, most i) -> lead
SELECT {lead} FROM lead WHERE space = :space AND id < :before ORDER BY id DESC LIMIT :most

-- query lead_get(space t, id i) -> lead
SELECT {lead} FROM lead WHERE id = (SELECT r.lead FROM lead_record r WHERE r.id = :id AND r.space = :space)

-- The lead that a record belongs to now.
-- query lead_of(record i) -> record i, lead i
SELECT id, lead FROM lead_record WHERE id = :record

-- What a lead said, newest first.
-- query lead_events(space t, lead i, most i) -> id i, source t, received i, verdict i, reason t, thread i, record i
SELECT e.id, e.source, e.received, e.verdict, e.reason, e.thread, e.record FROM event e
WHERE e.record IN (SELECT r.id FROM lead_record r WHERE r.lead = :lead) AND e.record > 0 AND e.space = :space ORDER BY e.id DESC LIMIT :most

-- query lead_threads(space t, lead i, most i) -> thread
SELECT id, space, epoch, COALESCE((SELECT event FROM event_act WHERE event_act.id = question), question), created, updated, burst, burst_at, record FROM thread
WHERE record IN (SELECT r.id FROM lead_record r WHERE r.lead = :lead) AND record > 0 AND space = :space ORDER BY id DESC LIMIT :most

-- The open question about a lead.
-- query lead_cards(lead i, most i) -> id i, edge i, due i
SELECT x.id, x.edge, x.due FROM lead_edge e JOIN exception x ON x.edge = e.id AND x.intent = 0 AND x.event = 0 AND x.state = 0
WHERE e.kind = 2 AND e.undone = 0 AND (e.a IN (SELECT r.id FROM lead_record r WHERE r.lead = :lead) OR e.b IN (SELECT r.id FROM lead_record r WHERE r.lead = :lead))
ORDER BY x.id LIMIT :most
