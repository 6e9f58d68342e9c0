-- breaks
-- What breaks the cached prefix, by client version and cause?
-- counted: requests
-- silent: no bill says what was read from a cache
-- detail: unpriced requests tokens item_kind
-- column client text: the program; null: not recorded
-- column client_version text: null: not recorded
-- column cause text: what happened (`added`, `updated`, `removed`, `moved`, or the parameter that changed)
-- column item_kind text: of the item that it happened to; null: a parameter
-- column breaks int: requests whose prefix it broke
-- column requests int: of this client version whose bill has cache figures
-- column per_100 number: breaks in a hundred of these; null: there are none
-- column tokens tokens: behind the breaks, sent anew
-- column usd usd: what these cost above a read from the cache; null: no price known
-- column unpriced int: breaks without a price: `usd` is at least
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(read) AS silent FROM asked;
WITH base AS (
  SELECT coalesce(client, '') AS base_client, coalesce(client_version, '') AS base_version, count(*) AS billed
  FROM asked WHERE read IS NOT NULL GROUP BY coalesce(client, ''), coalesce(client_version, '')
), broken AS (
  SELECT client, client_version, cause, item_kind, count(*) AS times, sum(tokens) AS size, sum(missed.usd) AS price,
    count(*) - count(missed.usd) AS no_price
  FROM missed WHERE kind = 'break'
  GROUP BY client, client_version, cause, item_kind
)
SELECT client, client_version, cause, item_kind, times AS breaks, coalesce(billed, 0) AS requests,
  100 * CAST(times AS DOUBLE) / nullif(billed, 0) AS per_100, size AS tokens, price AS usd, no_price AS unpriced
FROM broken
LEFT JOIN base ON base_client = coalesce(client, '') AND base_version = coalesce(client_version, '')
ORDER BY usd DESC NULLS LAST, tokens DESC, client NULLS LAST, client_version NULLS LAST, cause, item_kind NULLS LAST
LIMIT $limit
