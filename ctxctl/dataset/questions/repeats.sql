-- repeats
-- Which tools' outputs are sent again and again within a session?
-- counted: tool results
-- silent: their text is not recorded
-- detail: entered outputs server sessions
-- column tool text: null: not recorded
-- column server text: its MCP server; null: none, or not recorded
-- column sessions int: in which an output came again
-- column outputs int: tool results with a recorded text
-- column again int: of these, results whose text another result of the same thread had brought before
-- column share share: again, of outputs
-- column entered tokens: that entered again; null: none could be counted
-- column carried token-steps: that these were carried on; null: none could be counted
-- column usd usd: even share of what requests' input cost; null: none of it has a price
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(content) AS silent
FROM held WHERE kind = 'tool_result';
WITH outputs AS (
  SELECT session, source, thread, item, content, min(number) AS came, min(tool) AS by_tool, min(server) AS by_server,
    max(tokens) AS size, sum(token_steps) AS steps_of, sum(usd) AS price
  FROM held WHERE kind = 'tool_result' AND content IS NOT NULL
  GROUP BY session, source, thread, item, content
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY session, source, thread, content ORDER BY came) AS place FROM outputs
)
SELECT by_tool AS tool, by_server AS server,
  count(DISTINCT CASE WHEN place > 1 THEN session END) AS sessions, count(*) AS outputs,
  sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) AS again,
  CAST(sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) AS DOUBLE) / count(*) AS share,
  sum(CASE WHEN place > 1 THEN size END) AS entered, sum(CASE WHEN place > 1 THEN steps_of END) AS carried,
  sum(CASE WHEN place > 1 THEN price END) AS usd
FROM placed
GROUP BY by_tool, by_server
HAVING sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) > 0
ORDER BY carried DESC NULLS LAST, again DESC, tool NULLS LAST, server NULLS LAST
LIMIT $limit
