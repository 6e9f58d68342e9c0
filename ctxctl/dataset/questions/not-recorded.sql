-- not-recorded
-- What is not recorded, by format and client?
-- counted: requests
-- silent: neither a bill nor a time is recorded
-- detail: uncounted project version output model sessions
-- column format text: as `--read-as` takes it
-- column client text: the program; null: not recorded
-- column sessions int: with a request
-- column requests int: sent to a model
-- column time share: of the requests, without a time
-- column model share: of the requests, without a model
-- column cache share: of the requests, without a bill that says what was read from a cache
-- column output share: of the requests, without a bill that says what was answered
-- column price share: of the requests, without a price
-- column limit share: of the requests, without a known limit
-- column uncounted share: of the requests, with something in the window that has neither text nor count
-- column project share: of the sessions, without a project
-- column version share: of the sessions, without a client version
SELECT count(DISTINCT session) AS sessions, count(*) AS counted,
  sum(CASE WHEN time IS NULL AND output IS NULL THEN 1 ELSE 0 END) AS silent
FROM asked;
WITH of_requests AS (
  SELECT format AS of_format, coalesce(client, '') AS of_client, count(*) AS times, count(DISTINCT session) AS in_sessions,
    count(*) - count(time) AS no_time, count(*) - count(model) AS no_model, count(*) - count(read) AS no_cache,
    count(*) - count(output) AS no_output, count(*) - count(usd) AS no_price, count(*) - count("limit") AS no_limit,
    sum(CASE WHEN uncounted > 0 THEN 1 ELSE 0 END) AS not_counted
  FROM asked GROUP BY format, coalesce(client, '')
), of_sessions AS (
  SELECT format AS in_format, coalesce(client, '') AS in_client, CAST(count(*) AS DOUBLE) AS number_of,
    count(*) - count(project) AS no_project, count(*) - count(client_version) AS no_version
  FROM chosen GROUP BY format, coalesce(client, '')
)
SELECT of_format AS format, nullif(of_client, '') AS client, in_sessions AS sessions, times AS requests,
  no_time / CAST(times AS DOUBLE) AS time, no_model / CAST(times AS DOUBLE) AS model,
  no_cache / CAST(times AS DOUBLE) AS cache, no_output / CAST(times AS DOUBLE) AS output,
  no_price / CAST(times AS DOUBLE) AS price, no_limit / CAST(times AS DOUBLE) AS "limit",
  not_counted / CAST(times AS DOUBLE) AS uncounted, no_project / number_of AS project, no_version / number_of AS version
FROM of_requests JOIN of_sessions ON of_format = in_format AND of_client = in_client
ORDER BY requests DESC, format, client NULLS LAST
LIMIT $limit
