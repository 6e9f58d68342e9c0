-- compaction-took
-- What did compactions take out of windows, and what came in its place?
-- counted: compactions
-- silent: no summary is recorded
-- detail: compactions
-- column what text: `kind` (all that was taken, by kind of item), `tool` (the tool results among it, by tool) or `summary` (what came in)
-- column name text: kind or tool; null: the summary
-- column compactions int: that took any of it; of the summary, those with a recorded one
-- column tokens tokens: taken, or of the summaries
-- column share share: of all tokens that were taken
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(summary) AS silent FROM compacted;
WITH whole AS (
  SELECT CAST(sum(tokens) AS DOUBLE) AS everything FROM compacted
), kinds AS (
  SELECT unnest(map_keys(by_kind)) AS name, by_kind AS sizes FROM compacted
), tools AS (
  SELECT unnest(map_keys(by_tool)) AS name, by_tool AS sizes FROM compacted
), taken AS (
  SELECT 1 AS rank, 'kind' AS what, name, count(*) AS times, sum(sizes[name]) AS size
  FROM kinds GROUP BY name
  UNION ALL
  SELECT 2 AS rank, 'tool' AS what, name, count(*) AS times, sum(sizes[name]) AS size
  FROM tools GROUP BY name
  UNION ALL
  SELECT 3 AS rank, 'summary' AS what, nullif('', '') AS name, count(summary) AS times, sum(summary) AS size
  FROM compacted
)
SELECT what, name, times AS compactions, size AS tokens, CAST(size AS DOUBLE) / nullif(everything, 0) AS share
FROM taken CROSS JOIN whole
WHERE times > 0
ORDER BY rank, tokens DESC NULLS LAST, name NULLS LAST
LIMIT $limit
