-- compactions
-- How often are windows compacted, by client version?
-- counted: turns
-- silent: no time is recorded of them
-- detail: compacted before after
-- column client text: the program; null: not recorded
-- column client_version text: null: not recorded
-- column sessions int: of this client version
-- column turns int: of their main threads
-- column compactions int: in these threads
-- column per_100 number: compactions in a hundred turns
-- column compacted int: sessions that had one
-- column before tokens: sent by the request before, mean; null: none, or each was the first request
-- column after tokens: sent by the request after, mean; null: none
SELECT count(DISTINCT session) AS sessions, count(*) AS counted,
  sum(CASE WHEN begun IS NULL THEN 1 ELSE 0 END) AS silent
FROM (SELECT session, source, turn, min(time) AS begun FROM asked WHERE NOT sub_agent GROUP BY session, source, turn) AS turned;
WITH turned AS (
  SELECT client, client_version, session, source, turn FROM asked WHERE NOT sub_agent
  GROUP BY client, client_version, session, source, turn
), base AS (
  SELECT client, client_version, count(DISTINCT session) AS all_sessions, count(*) AS all_turns
  FROM turned GROUP BY client, client_version
), times AS (
  SELECT coalesce(client, '') AS of_client, coalesce(client_version, '') AS of_version, count(*) AS how_often,
    count(DISTINCT session) AS in_sessions, avg(compacted.before) AS size_before, avg(compacted.after) AS size_after
  FROM compacted WHERE NOT sub_agent
  GROUP BY coalesce(client, ''), coalesce(client_version, '')
)
SELECT client, client_version, all_sessions AS sessions, all_turns AS turns, coalesce(how_often, 0) AS compactions,
  100 * CAST(coalesce(how_often, 0) AS DOUBLE) / all_turns AS per_100, coalesce(in_sessions, 0) AS compacted,
  size_before AS before, size_after AS after
FROM base
LEFT JOIN times ON of_client = coalesce(client, '') AND of_version = coalesce(client_version, '')
ORDER BY compactions DESC, turns DESC, client NULLS LAST, client_version NULLS LAST
LIMIT $limit
