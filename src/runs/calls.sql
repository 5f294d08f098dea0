-- One more call under a name, when there is one left: then a row comes back. `per` is how long a budget holds; for one that never begins anew it is longer than time.
-- query calls_take(name b, now i, per i, most i, expires i) -> spent i
INSERT INTO tool_budget (name, since, spent, expires) VALUES (:name, :now, 1, :expires)
ON CONFLICT (name) DO UPDATE SET spent = CASE WHEN excluded.since - tool_budget.since >= :per THEN 1 ELSE tool_budget.spent + 1 END,
since = CASE WHEN excluded.since - tool_budget.since >= :per THEN excluded.since ELSE tool_budget.since END, expires = excluded.expires
WHERE tool_budget.spent < :most OR excluded.since - tool_budget.since >= :per
RETURNING spent

-- query calls_give_back(name b)
UPDATE tool_budget SET spent = spent - 1 WHERE name = :name

-- Which of several equal calls this is: the next one when the last was answered, and not later than `before`.
-- query repeat_take(name b, before i, expires i) -> number i
INSERT INTO tool_repeat (name, number, answered, expires) VALUES (:name, 1, 0, :expires)
ON CONFLICT (name) DO UPDATE SET number = CASE WHEN tool_repeat.answered > 0 AND tool_repeat.answered <= :before THEN tool_repeat.number + 1 ELSE tool_repeat.number END,
answered = CASE WHEN tool_repeat.answered > 0 AND tool_repeat.answered <= :before THEN 0 ELSE tool_repeat.answered END, expires = excluded.expires
RETURNING number

-- query repeat_answered(name b, number i, now i)
UPDATE tool_repeat SET answered = :now WHERE name = :name AND number = :number AND answered = 0

-- query calls_forget(now i)
DELETE FROM tool_budget WHERE expires <= :now

-- query repeat_forget(now i)
DELETE FROM tool_repeat WHERE expires <= :now
