-- repeats-across
-- Which tool outputs are sent in several sessions, word for word?
-- counted: tool results
-- silent: their text is not recorded
-- detail: results server tokens content
-- column content digest: keyed digest of the text (`contents`)
-- column tool text: of its results, the first by name; null: not recorded
-- column server text: its MCP server; null: none, or not recorded
-- column path text: file that it shows, the first by name; null: none, or not recorded
-- column sessions int: that had it in a window
-- column results int: tool results with this text
-- column tokens tokens: of the text; null: uncounted
-- column again tokens: that entered beyond the first time; null: uncounted
-- column usd usd: even share of what requests' input cost, all times; null: none of it has a price
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(content) AS silent
FROM held WHERE kind = 'tool_result';
WITH shared AS (
  SELECT content AS of_several FROM held WHERE kind = 'tool_result' AND content IS NOT NULL
  GROUP BY content HAVING min(session) <> max(session)
), outputs AS (
  SELECT session, item, content, min(tool) AS by_tool, min(server) AS by_server, min(path) AS shown,
    max(tokens) AS size, sum(usd) AS price
  FROM held JOIN shared ON content = of_several WHERE kind = 'tool_result'
  GROUP BY session, item, content
)
SELECT content, min(by_tool) AS tool, min(by_server) AS server, min(shown) AS path,
  count(DISTINCT session) AS sessions, count(*) AS results, max(size) AS tokens, sum(size) - max(size) AS again,
  sum(price) AS usd
FROM outputs
GROUP BY content
ORDER BY again DESC NULLS LAST, results DESC, content
LIMIT $limit
