-- p95-window
-- How large are the windows that are sent, by project?
-- counted: requests
-- silent: what was sent is only known as far as it was recorded
-- detail: reported sessions p50
-- column project text: null: not recorded
-- column sessions int: with such a request
-- column requests int: whose size is known, by a bill or from the bill before
-- column p50 tokens: half of the requests sent no more than this
-- column p95 tokens: 95 in a hundred requests sent no more than this
-- column largest tokens: sent by the largest request
-- column reported share: requests whose size is the provider's own figure
SELECT count(DISTINCT session) AS sessions, count(*) AS counted,
  sum(CASE WHEN sent_method = 'recorded' THEN 1 ELSE 0 END) AS silent
FROM asked;
WITH placed AS (
  SELECT project, session, sent, sent_method,
    row_number() OVER (PARTITION BY project ORDER BY sent) AS place, count(*) OVER (PARTITION BY project) AS of_all
  FROM asked
  WHERE sent_method <> 'recorded'
)
SELECT project, count(DISTINCT session) AS sessions, count(*) AS requests,
  min(CASE WHEN place * 100 >= of_all * 50 THEN sent END) AS p50,
  min(CASE WHEN place * 100 >= of_all * 95 THEN sent END) AS p95, max(sent) AS largest,
  CAST(sum(CASE WHEN sent_method = 'reported' THEN 1 ELSE 0 END) AS DOUBLE) / count(*) AS reported
FROM placed
GROUP BY project
ORDER BY p95 DESC, requests DESC, project NULLS LAST
LIMIT $limit
