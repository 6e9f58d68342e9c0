-- overview
-- What is in the dataset, by project, client or week?
-- counted: requests
-- silent: no price is known
-- param by text = project: project, client or week
-- detail: expected unpriced over breaks
-- column name text: project, client, or Monday (UTC) of the week in which a session began; null: not recorded
-- column sessions int: of it
-- column requests int: sent to a model
-- column p95 tokens: 95 in a hundred requests of known size sent no more than this; null: none is known
-- column over int: requests that were larger than what their limit leaves
-- column compactions int: requests before which one took items out
-- column breaks int: requests whose cached prefix a recorded change broke
-- column misses int: requests that missed the cache, unexplained by a recorded change
-- column usd usd: list price of the requests that have one; null: none has
-- column unpriced int: requests without a price, or with a part that has none: `usd` is at least
-- column expected int: requests priced as expected or counted, not as billed: `usd` is approximate
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(usd) AS silent FROM asked;
WITH named AS (
  SELECT session AS of_session, source AS of_source,
    coalesce(CASE WHEN $by = 'client' THEN client WHEN $by = 'week' THEN substring(CAST(date_trunc('week', started) AS VARCHAR), 1, 10) ELSE project END, '') AS key
  FROM chosen
), sized AS (
  SELECT key AS of_key, sent, over, usd, usd_least, usd_method, sent_method <> 'recorded' AS known,
    row_number() OVER (PARTITION BY key, sent_method <> 'recorded' ORDER BY sent) AS place,
    count(*) OVER (PARTITION BY key, sent_method <> 'recorded') AS of_all
  FROM asked JOIN named ON session = of_session AND source = of_source
), sums AS (
  SELECT of_key, count(*) AS times, min(CASE WHEN known AND place * 100 >= of_all * 95 THEN sent END) AS size95,
    sum(CASE WHEN over > 0 THEN 1 ELSE 0 END) AS over_ones, sum(usd) AS price, sum(CASE WHEN usd IS NULL OR usd_least THEN 1 ELSE 0 END) AS no_price,
    sum(CASE WHEN usd_method <> 'billed' THEN 1 ELSE 0 END) AS by_size
  FROM sized GROUP BY of_key
), cut AS (
  SELECT key AS cut_key, count(*) AS cuts
  FROM compacted JOIN named ON session = of_session AND source = of_source GROUP BY key
), lost AS (
  SELECT key AS lost_key, sum(CASE WHEN kind = 'break' THEN 1 ELSE 0 END) AS broken,
    sum(CASE WHEN kind = 'miss' THEN 1 ELSE 0 END) AS unread
  FROM missed JOIN named ON session = of_session AND source = of_source GROUP BY key
), groups AS (
  SELECT key, count(DISTINCT of_session) AS number_of FROM named GROUP BY key
)
SELECT nullif(key, '') AS name, number_of AS sessions, coalesce(times, 0) AS requests, size95 AS p95,
  coalesce(over_ones, 0) AS over, coalesce(cuts, 0) AS compactions, coalesce(broken, 0) AS breaks,
  coalesce(unread, 0) AS misses, price AS usd, coalesce(no_price, 0) AS unpriced, coalesce(by_size, 0) AS expected
FROM groups
LEFT JOIN sums ON key = of_key
LEFT JOIN cut ON key = cut_key
LEFT JOIN lost ON key = lost_key
ORDER BY sessions DESC, requests DESC, name NULLS LAST
LIMIT $limit
