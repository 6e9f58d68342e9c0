-- cost
-- What did it cost, by project, model and week?
-- counted: requests
-- silent: no price is known
-- detail: expected output sent sessions unpriced
-- column project text: null: not recorded
-- column model text: null: not recorded
-- column week text: Monday (UTC) of the week; null: no time is recorded
-- column sessions int: with a request in it
-- column requests int: sent to a model
-- column sent tokens: by them
-- column output tokens: answered, as billed; null: no bill says
-- column usd usd: list price of those that have one; null: none has
-- column unpriced int: requests without a price, or with a part that has none: `usd` is at least
-- column expected int: requests priced as expected or counted, not as billed: `usd` is approximate
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(usd) AS silent FROM asked;
SELECT project, model, substring(CAST(date_trunc('week', time) AS VARCHAR), 1, 10) AS week,
  count(DISTINCT session) AS sessions, count(*) AS requests, sum(asked.sent) AS sent, sum(asked.output) AS output,
  sum(asked.usd) AS usd, sum(CASE WHEN asked.usd IS NULL OR asked.usd_least THEN 1 ELSE 0 END) AS unpriced,
  sum(CASE WHEN asked.usd_method <> 'billed' THEN 1 ELSE 0 END) AS expected
FROM asked
GROUP BY project, model, substring(CAST(date_trunc('week', time) AS VARCHAR), 1, 10)
ORDER BY sum(asked.usd) DESC NULLS LAST, requests DESC, project NULLS LAST, model NULLS LAST, week NULLS LAST
LIMIT $limit
