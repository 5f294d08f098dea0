-- Unknown outcomes that nobody is asked about: there should be none. Counted up to a limit.
-- query doctor_ownerless(most i) -> count i
SELECT count(*) FROM (SELECT 1 FROM intent i WHERE i.state = 5 AND i.settled = 0
  AND NOT EXISTS (SELECT 1 FROM exception e WHERE e.intent = i.id AND e.state = 0) LIMIT :most) AS ownerless

-- What the database server does with a commit. SQLite does as this program told it.
-- query doctor_server() -> fsync t, full_pages t, synchronous t
-- sqlite:
SELECT 'on', 'on', 'on'
-- postgres:
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')

-- query doctor_newest() -> id i
SELECT coalesce(max(id), 0) FROM decision
