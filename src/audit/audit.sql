-- shape decision: id i, lane i, seq i, at i, run i, space t, kind t, intent i, fence i, state i, count i, policy i, body i, actor t, reason t, detail t, hash b

-- query lane_get(lane i) -> seq i, id i, run i, hash b
SELECT seq, id, run, hash FROM lane WHERE lane = :lane

-- query lane_put(lane i, seq i, id i, run i, hash b)
INSERT INTO lane (lane, seq, id, run, hash) VALUES (:lane, :seq, :id, :run, :hash)
ON CONFLICT (lane) DO UPDATE SET seq = excluded.seq, id = excluded.id, run = excluded.run, hash = excluded.hash

-- query lane_list() -> lane i, seq i, id i, run i, hash b
SELECT lane, seq, id, run, hash FROM lane ORDER BY lane

-- query decision_add(decision)
-- sqlite:
INSERT INTO decision ({decision}) VALUES ({:decision})
-- postgres arrays:
INSERT INTO decision ({decision}) SELECT {decision[i]} FROM generate_series(1, cardinality(:id::bigint[])) AS i

-- query decision_list(space t, before i, most i) -> decision
SELECT {decision} FROM decision WHERE space = :space AND id < :before ORDER BY id DESC LIMIT :most

-- The story of one intent, oldest first.
-- query decision_list_intent(space t, intent i, after i, most i) -> decision
SELECT {decision} FROM decision WHERE intent = :intent AND intent > 0 AND space = :space AND id > :after ORDER BY id LIMIT :most

-- One lane's chain, in order.
-- query decision_chain(lane i, after i, most i) -> decision
SELECT {decision} FROM decision WHERE lane = :lane AND id > :after ORDER BY id LIMIT :most
