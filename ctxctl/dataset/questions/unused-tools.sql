-- unused-tools
-- Which tool definitions are sent and never called?
-- counted: sessions
-- silent: no tool definition is recorded
-- param called number = 0: percent of the sessions with the definition that may have called the tool
-- detail: called tokens
-- column tool text: its name
-- column server text: its MCP server; null: none, or not recorded
-- column sessions int: that had its definition in a window
-- column called int: of these, sessions that called it
-- column tokens tokens: of the definition, mean; null: uncounted
-- column carried token-steps: tokens of its definitions times the requests that carried them; null: uncounted
-- column usd usd: even share of what requests' input cost; null: none of it has a price
SELECT count(*) AS sessions, count(*) AS counted, sum(CASE WHEN defined = 0 THEN 1 ELSE 0 END) AS silent
FROM (
  SELECT c.session AS session, count(d.session) AS defined FROM (SELECT DISTINCT session FROM chosen) AS c
  LEFT JOIN (SELECT DISTINCT session FROM held WHERE kind = 'tool_definition') AS d ON c.session = d.session
  GROUP BY c.session
) AS said;
WITH defined AS (
  SELECT session, tool AS defined_tool, server AS defined_server, avg(tokens) AS size, sum(token_steps) AS steps_of,
    sum(usd) AS price
  FROM held WHERE kind = 'tool_definition' AND tool IS NOT NULL
  GROUP BY session, tool, server
), calls AS (
  SELECT session, tool AS called_tool, count(*) AS times
  FROM held WHERE kind IN ('tool_call', 'tool_result') AND tool IS NOT NULL
  GROUP BY session, tool
), both_ways AS (
  SELECT defined_tool, defined_server, size, steps_of, price, times
  FROM defined LEFT JOIN calls ON defined.session = calls.session AND defined_tool = called_tool
)
SELECT defined_tool AS tool, defined_server AS server, count(*) AS sessions, count(times) AS called,
  avg(size) AS tokens, sum(steps_of) AS carried, sum(price) AS usd
FROM both_ways
GROUP BY defined_tool, defined_server
HAVING count(times) * 100 <= count(*) * $called
ORDER BY carried DESC NULLS LAST, sessions DESC, tool, server NULLS LAST
LIMIT $limit
