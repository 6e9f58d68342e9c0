-- cache-rate
-- How much of what is sent is read from the prompt cache, by client version?
-- counted: requests
-- silent: no bill says what was read from a cache
-- detail: written sessions
-- column client text: the program; null: not recorded
-- column client_version text: null: not recorded
-- column sessions int: with such a bill
-- column requests int: whose bill says what was read from a cache
-- column sent tokens: by these requests
-- column read tokens: of these, read from a cache, as billed
-- column rate share: read, of sent
-- column written tokens: written to a cache, as billed; null: no bill says
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(read) AS silent FROM asked;
SELECT client, client_version, count(DISTINCT session) AS sessions, count(*) AS requests, sum(asked.sent) AS sent,
  sum(asked.read) AS read, CAST(sum(asked.read) AS DOUBLE) / nullif(CAST(sum(asked.sent) AS DOUBLE), 0) AS rate,
  sum(asked.written) AS written
FROM asked
WHERE asked.read IS NOT NULL
GROUP BY client, client_version
ORDER BY requests DESC, client NULLS LAST, client_version NULLS LAST
LIMIT $limit
