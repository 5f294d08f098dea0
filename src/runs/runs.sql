-- shape run: space t, run t, provider t, model t, executed i, replayed i, failed i, input i, output i, saved_input i, saved_output i, priced i, spent i, saved i, first i, last i, expires i

-- Adds to what was counted before.
-- query run_add(run)
INSERT INTO run ({run}) VALUES ({:run})
ON CONFLICT (space, run, provider, model) DO UPDATE SET executed = run.executed + excluded.executed, replayed = run.replayed + excluded.replayed,
failed = run.failed + excluded.failed, input = run.input + excluded.input, output = run.output + excluded.output,
saved_input = run.saved_input + excluded.saved_input, saved_output = run.saved_output + excluded.saved_output, priced = run.priced + excluded.priced,
spent = run.spent + excluded.spent, saved = run.saved + excluded.saved, last = excluded.last, expires = excluded.expires

-- Newest first, one row for each run.
-- query run_list(space t, before i, before_run t, most i) -> run t, executed i, replayed i, failed i, input i, output i, saved_input i, saved_output i, priced i, spent i, saved i, first i, last i
-- sqlite:
SELECT run, sum(executed), sum(replayed), sum(failed), sum(input), sum(output), sum(saved_input), sum(saved_output), sum(priced), sum(spent), sum(saved), min(first), max(last)
FROM run WHERE space = :space GROUP BY run HAVING min(first) < :before OR (min(first) = :before AND run < :before_run)
ORDER BY min(first) DESC, run DESC LIMIT :most
-- postgres:
SELECT run, sum(executed)::bigint, sum(replayed)::bigint, sum(failed)::bigint, sum(input)::bigint, sum(output)::bigint, sum(saved_input)::bigint,
       sum(saved_output)::bigint, sum(priced)::bigint, sum(spent)::bigint, sum(saved)::bigint, min(first), max(last)
FROM run WHERE space = :space GROUP BY run HAVING min(first) < :before OR (min(first) = :before AND run < :before_run)
ORDER BY min(first) DESC, run DESC LIMIT :most

-- query run_get(space t, run t) -> run
SELECT {run} FROM run WHERE space = :space AND run = :run ORDER BY provider, model

-- query run_forget(now i)
DELETE FROM run WHERE expires <= :now
