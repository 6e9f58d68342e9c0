-- stale
-- How much of what windows carry is older versions of what came again, and of what?
-- counted: stays
-- silent: their tokens could not be counted
-- detail: of_all carried
-- column kind text: of the items
-- column tool text: whose results or calls they are; null: of no tool, or not recorded
-- column carried token-steps: tokens times the requests that carried them
-- column old token-steps: the part of these after a newer version of the same item had come; where each read of a file is an item of its own, as in most agents' logs, that is what `rereads` and `repeats` tell
-- column share share: stale part of what this row carried
-- column of_all share: of all that is stale in the sessions asked about
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(stale_token_steps) AS silent FROM held;
WITH whole AS (SELECT CAST(sum(stale_token_steps) AS DOUBLE) AS everything FROM held)
SELECT kind, tool, sum(token_steps) AS carried, sum(stale_token_steps) AS old,
  CAST(sum(stale_token_steps) AS DOUBLE) / nullif(CAST(sum(token_steps) AS DOUBLE), 0) AS share,
  CAST(sum(stale_token_steps) AS DOUBLE) / nullif(max(everything), 0) AS of_all
FROM held CROSS JOIN whole
WHERE stale_token_steps IS NOT NULL
GROUP BY kind, tool
ORDER BY old DESC, carried DESC, kind, tool NULLS LAST
LIMIT $limit
