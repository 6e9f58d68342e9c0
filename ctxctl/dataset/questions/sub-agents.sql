-- sub-agents
-- How much of it all is sub-agents?
-- counted: requests
-- silent: no price is known
-- detail: with_sub_agents sub_requests sessions
-- column client text: the program; null: not recorded
-- column project text: null: not recorded
-- column sessions int: with a request
-- column with_sub_agents int: of these, sessions that have a sub-agent
-- column requests int: of all threads
-- column sub_requests int: of these, of sub-agents
-- column of_requests share: sub-agents' part of the requests
-- column of_sent share: sub-agents' part of the tokens sent
-- column usd usd: of the requests of all threads that have a price; null: none
-- column of_usd share: sub-agents' part of it; null: no price is known
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(usd) AS silent FROM asked;
SELECT client, project, count(DISTINCT session) AS sessions,
  count(DISTINCT CASE WHEN sub_agent THEN session END) AS with_sub_agents, count(*) AS requests,
  sum(CASE WHEN sub_agent THEN 1 ELSE 0 END) AS sub_requests,
  CAST(sum(CASE WHEN sub_agent THEN 1 ELSE 0 END) AS DOUBLE) / count(*) AS of_requests,
  CAST(sum(CASE WHEN sub_agent THEN asked.sent ELSE 0 END) AS DOUBLE) / nullif(CAST(sum(asked.sent) AS DOUBLE), 0) AS of_sent,
  sum(asked.usd) AS usd,
  sum(CASE WHEN sub_agent AND asked.usd IS NOT NULL THEN asked.usd WHEN asked.usd IS NOT NULL THEN 0 END) / nullif(sum(asked.usd), 0) AS of_usd
FROM asked
GROUP BY client, project
ORDER BY sub_requests DESC, requests DESC, client NULLS LAST, project NULLS LAST
LIMIT $limit
