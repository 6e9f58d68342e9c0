-- first-request
-- How large is a session's first request, by release of its client?
-- counted: first requests
-- silent: what was sent is only known as far as it was recorded
-- detail: least system tools largest first_seen
-- column client text: the program; null: not recorded
-- column client_version text: null: not recorded
-- column first_seen text: day (UTC) of its first session; null: no time is recorded
-- column sessions int: that begin in their capture, and whose first request's size is known
-- column p50 tokens: half of the first requests sent no more than this
-- column least tokens: sent by the smallest
-- column largest tokens: sent by the largest
-- column tools tokens: of recorded tool definitions, mean of the requests that have any; null: none is recorded
-- column system tokens: of the recorded system prompt, mean of those that have one; null: none is recorded
-- column unrecorded tokens: sent and not in the capture, mean; null: nothing was billed to tell by
SELECT count(DISTINCT session) AS sessions, count(*) AS counted,
  sum(CASE WHEN sent_method = 'recorded' THEN 1 ELSE 0 END) AS silent
FROM asked
WHERE (session, source, ordinal) IN (
  SELECT session, source, min(ordinal) FROM steps WHERE target = 'model' AND NOT sub_agent GROUP BY session, source
);
WITH firsts AS (
  SELECT session, source, min(ordinal) AS ordinal FROM steps
  WHERE target = 'model' AND NOT sub_agent GROUP BY session, source
), placed AS (
  SELECT a.client AS client, a.client_version AS client_version, a.time AS begun, a.sent AS size, nullif(a.tools, 0) AS tools_of,
    nullif(a.system, 0) AS system_of, a.unrecorded AS lacking,
    row_number() OVER (PARTITION BY a.client, a.client_version ORDER BY a.sent) AS place,
    count(*) OVER (PARTITION BY a.client, a.client_version) AS of_all
  FROM asked AS a
  JOIN firsts AS f ON a.session = f.session AND a.source = f.source AND a.ordinal = f.ordinal
  WHERE a.sent_method <> 'recorded'
)
SELECT client, client_version, substring(CAST(min(begun) AS VARCHAR), 1, 10) AS first_seen, count(*) AS sessions,
  min(CASE WHEN place * 2 >= of_all THEN size END) AS p50, min(size) AS least, max(size) AS largest,
  avg(tools_of) AS tools, avg(system_of) AS system, avg(lacking) AS unrecorded
FROM placed
GROUP BY client, client_version
ORDER BY client NULLS LAST, first_seen NULLS LAST, client_version NULLS LAST
LIMIT $limit
