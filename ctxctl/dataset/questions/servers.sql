-- servers
-- Which MCP server costs most, and since when?
-- counted: stays
-- silent: no price is known of them
-- detail: from_usd to_usd carried definitions sessions
-- column server text: the MCP server
-- column sessions int: that had any of it in a window
-- column carried token-steps: of its definitions, calls and results; null: uncounted
-- column usd usd: even share of what requests' input cost; null: none of it has a price
-- column definitions usd: the definitions' part of it
-- column since_version text: client version of the first session that has it; null: not recorded
-- column first_seen text: month (UTC) of that session; null: no time is recorded
-- column rose text: month in which it cost most more per session than in the month before that it was seen in; null: never more
-- column from_usd usd: per session, in the month before that
-- column to_usd usd: per session, in that month
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(usd) AS silent
FROM held WHERE server IS NOT NULL;
WITH of_session AS (
  SELECT server, session, month, min(started) AS begun, min(client_version) AS version, sum(token_steps) AS steps_of,
    sum(usd) AS price, sum(CASE WHEN kind = 'tool_definition' THEN usd END) AS definition_price
  FROM held WHERE server IS NOT NULL
  GROUP BY server, session, month
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY server ORDER BY begun NULLS LAST, session) AS place FROM of_session
), months AS (
  SELECT server, month, avg(price) AS mean,
    row_number() OVER (PARTITION BY server ORDER BY month) AS place
  FROM of_session WHERE month <> 'unknown' AND price IS NOT NULL
  GROUP BY server, month
), rises AS (
  SELECT now.server AS server, now.month AS month, past.mean AS mean_before, now.mean AS mean_now,
    row_number() OVER (PARTITION BY now.server ORDER BY now.mean - past.mean DESC, now.month) AS rank
  FROM months AS now
  JOIN months AS past ON now.server = past.server AND now.place = past.place + 1
  WHERE now.mean > past.mean
), sums AS (
  SELECT server, count(DISTINCT session) AS in_sessions, sum(steps_of) AS all_steps, sum(price) AS all_price,
    sum(definition_price) AS all_definitions, min(CASE WHEN month <> 'unknown' THEN month END) AS first_month,
    min(CASE WHEN place = 1 THEN version END) AS first_version
  FROM placed GROUP BY server
)
SELECT s.server AS server, s.in_sessions AS sessions, s.all_steps AS carried, s.all_price AS usd,
  s.all_definitions AS definitions, s.first_version AS since_version, s.first_month AS first_seen, r.month AS rose,
  r.mean_before AS from_usd, r.mean_now AS to_usd
FROM sums AS s
LEFT JOIN (SELECT server, month, mean_before, mean_now FROM rises WHERE rank = 1) AS r ON s.server = r.server
ORDER BY usd DESC NULLS LAST, carried DESC NULLS LAST, server
LIMIT $limit
