-- misses
-- Which cache misses does no recorded change explain, why did they happen, and what did they cost?
-- counted: requests
-- silent: no bill says what was read from a cache
-- detail: unpriced idle sessions
-- column cause text: `expired`, `model`, `unrecorded` or `unexplained`
-- column model text: null: not recorded
-- column sessions int: that had one
-- column misses int: requests
-- column tokens tokens: paid for again
-- column usd usd: what these cost above a read from the cache; null: no price known
-- column unpriced int: misses without a price: `usd` is at least
-- column idle number: seconds since the request before, mean; null: no time is recorded
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(read) AS silent FROM asked;
SELECT cause, model, count(DISTINCT session) AS sessions, count(*) AS misses, sum(missed.tokens) AS tokens,
  sum(missed.usd) AS usd, count(*) - count(missed.usd) AS unpriced, avg(missed.idle) AS idle
FROM missed
WHERE kind = 'miss'
GROUP BY cause, model
ORDER BY sum(missed.usd) DESC NULLS LAST, sum(missed.tokens) DESC, cause, model NULLS LAST
LIMIT $limit
