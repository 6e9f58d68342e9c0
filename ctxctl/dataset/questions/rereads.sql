-- rereads
-- Which files are read again though nothing in them has changed?
-- counted: tool results
-- silent: no file, or no text, is recorded of them
-- detail: reads entered sessions carried
-- column project text: null: not recorded
-- column path text: the file, relative to the session's directory where it lies in it
-- column sessions int: in which it was read again unchanged
-- column reads int: tool results that show it
-- column again int: of these, results with the text that an earlier one of the same thread had
-- column share share: again, of reads
-- column entered tokens: that entered again; null: none could be counted
-- column carried token-steps: that these were carried on; null: none could be counted
-- column usd usd: even share of what requests' input cost; null: none of it has a price
SELECT count(DISTINCT session) AS sessions, count(*) AS counted,
  sum(CASE WHEN path IS NULL OR content IS NULL THEN 1 ELSE 0 END) AS silent
FROM held WHERE kind = 'tool_result';
WITH reads AS (
  SELECT session, source, thread, item, content, path, project, min(number) AS came, max(tokens) AS size,
    sum(token_steps) AS steps_of, sum(usd) AS price
  FROM held WHERE kind = 'tool_result' AND path IS NOT NULL AND content IS NOT NULL
  GROUP BY session, source, thread, item, content, path, project
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY session, source, thread, path, content ORDER BY came) AS place FROM reads
)
SELECT project, path, count(DISTINCT CASE WHEN place > 1 THEN session END) AS sessions, count(*) AS reads,
  sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) AS again,
  CAST(sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) AS DOUBLE) / count(*) AS share,
  sum(CASE WHEN place > 1 THEN size END) AS entered, sum(CASE WHEN place > 1 THEN steps_of END) AS carried,
  sum(CASE WHEN place > 1 THEN price END) AS usd
FROM placed
GROUP BY project, path
HAVING sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) > 0
ORDER BY carried DESC NULLS LAST, again DESC, project NULLS LAST, path
LIMIT $limit
