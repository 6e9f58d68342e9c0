-- tools-fill
-- Which tools fill windows, and what does that cost?
-- counted: stays
-- silent: their tokens could not be counted
-- detail: stays entered sessions
-- column tool text: name of the tool whose definition, calls and results these are; null: of no tool, or not recorded
-- column server text: its MCP server; null: none, or not recorded
-- column sessions int: that had any of it in a window
-- column stays int: of one version of an item in one thread's window
-- column entered tokens: that entered; null: none could be counted
-- column carried token-steps: tokens times the requests that carried them; null: none could be counted
-- column share share: of all token-steps of the sessions asked about
-- column usd usd: its even share of what requests' input cost; null: none of it has a price
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(token_steps) AS silent FROM held;
WITH whole AS (SELECT CAST(sum(token_steps) AS DOUBLE) AS everything FROM held)
SELECT tool, server, count(DISTINCT session) AS sessions, count(*) AS stays, sum(tokens) AS entered,
  sum(token_steps) AS carried, CAST(sum(token_steps) AS DOUBLE) / nullif(max(everything), 0) AS share,
  sum(held.usd) AS usd
FROM held CROSS JOIN whole
GROUP BY tool, server
ORDER BY carried DESC NULLS LAST, tool NULLS LAST, server NULLS LAST
LIMIT $limit
