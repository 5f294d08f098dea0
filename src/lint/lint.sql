-- The newest intents of a workflow, and what came with them.
-- query lint_sample(space t, workflow t, since i, most i) -> id i, key t, fields t, created i
SELECT id, key, fields, created FROM intent WHERE space = :space AND workflow = :workflow AND id >= :since ORDER BY id DESC LIMIT :most

-- What was refused because their key had stood for something else.
-- query lint_reused(space t, workflow t, since i, most i) -> count i, detail t
SELECT count, detail FROM decision WHERE kind = 'key_reused' AND intent > 0 AND intent IN
(SELECT id FROM intent WHERE space = :space AND workflow = :workflow AND id >= :since ORDER BY id DESC LIMIT :most)

-- Which workflows there were lately.
-- query lint_workflows(space t, since i, most i) -> workflow t, intents i
SELECT workflow, count(*) AS intents FROM (SELECT workflow FROM intent WHERE space = :space AND id >= :since ORDER BY id DESC LIMIT :most) AS newest
GROUP BY workflow ORDER BY workflow
