-- measures
-- What are the sums of each session, for comparing groups of them?
-- counted: sessions
-- silent: no time is recorded
-- column session digest: the session
-- column requests int: sent to a model
-- column turns int: of main threads
-- column sent tokens: by all requests whose size is known
-- column sized int: these requests
-- column first tokens: sent by the first request of the main thread; null: its size is not known, or its capture does not hold it
-- column largest tokens: sent by the largest request of known size; null: none is known
-- column read tokens: read from a cache, as billed; null: no bill says
-- column read_of tokens: sent by the requests whose bill says what was read; null: none does
-- column cached int: these requests
-- column breaks int: of these, requests whose prefix a recorded change broke
-- column misses int: of these, requests that missed the cache, unexplained by a recorded change
-- column compactions int: of main threads
-- column limited int: requests with a known limit
-- column over int: of these, requests that were larger than it leaves
-- column sub_requests int: of sub-agents
-- column usd usd: of requests that have a price; null: none has
-- column priced int: these requests, without those that have no bill
-- column carried token-steps: of what windows held; null: none could be counted
-- column old token-steps: the stale part of it; null: none could be counted
-- column definitions token-steps: the tool definitions' part of it; null: none is recorded
-- column outputs int: tool results with a recorded text
-- column again int: of these, results whose text another one of the same thread had brought before
SELECT count(DISTINCT session) AS sessions, count(DISTINCT session) AS counted,
  count(DISTINCT CASE WHEN started IS NULL THEN session END) AS silent
FROM chosen;
WITH firsts AS (
  SELECT session AS first_session, source AS first_source, min(ordinal) AS first_ordinal FROM steps
  WHERE target = 'model' AND NOT sub_agent GROUP BY session, source
), of_requests AS (
  SELECT session, count(*) AS times, sum(CASE WHEN sent_method <> 'recorded' THEN sent END) AS all_sent,
    sum(CASE WHEN sent_method <> 'recorded' THEN 1 ELSE 0 END) AS sized,
    max(CASE WHEN ordinal = first_ordinal AND sent_method <> 'recorded' THEN sent END) AS first_size,
    max(CASE WHEN sent_method <> 'recorded' THEN sent END) AS size,
    sum(asked.read) AS all_read, sum(CASE WHEN asked.read IS NOT NULL THEN sent END) AS read_of, count(asked.read) AS cached,
    count("limit") AS limited, sum(CASE WHEN asked.over > 0 THEN 1 ELSE 0 END) AS over_ones,
    sum(CASE WHEN sub_agent THEN 1 ELSE 0 END) AS sub_ones, sum(asked.usd) AS price, sum(CASE WHEN asked.usd_method <> 'expected' THEN 1 ELSE 0 END) AS priced
  FROM asked LEFT JOIN firsts ON session = first_session AND source = first_source
  GROUP BY session
), of_turns AS (
  SELECT session AS turned_session, count(*) AS turns
  FROM (SELECT session, source, turn FROM asked WHERE NOT sub_agent GROUP BY session, source, turn) AS each_turn
  GROUP BY session
), lost AS (
  SELECT session AS lost_session, sum(CASE WHEN kind = 'break' THEN 1 ELSE 0 END) AS broken,
    sum(CASE WHEN kind = 'miss' THEN 1 ELSE 0 END) AS unread
  FROM missed GROUP BY session
), cut AS (
  SELECT session AS cut_session, count(*) AS cuts FROM compacted WHERE NOT sub_agent GROUP BY session
), windows AS (
  SELECT session AS held_session, sum(token_steps) AS all_steps, sum(stale_token_steps) AS old_steps,
    sum(CASE WHEN kind = 'tool_definition' THEN token_steps END) AS definition_steps
  FROM held GROUP BY session
), results AS (
  SELECT session, source, thread, item, content, min(number) AS came
  FROM held WHERE kind = 'tool_result' AND content IS NOT NULL
  GROUP BY session, source, thread, item, content
), placed AS (
  SELECT session, row_number() OVER (PARTITION BY session, source, thread, content ORDER BY came) AS place FROM results
), came_again AS (
  SELECT session AS again_session, count(*) AS outputs, sum(CASE WHEN place > 1 THEN 1 ELSE 0 END) AS again
  FROM placed GROUP BY session
)
SELECT session, times AS requests, coalesce(turns, 0) AS turns, all_sent AS sent, sized, first_size AS first,
  size AS largest, all_read AS read, read_of, cached, coalesce(broken, 0) AS breaks, coalesce(unread, 0) AS misses,
  coalesce(cuts, 0) AS compactions, limited, over_ones AS over, sub_ones AS sub_requests, price AS usd, priced,
  all_steps AS carried, old_steps AS old, definition_steps AS definitions, coalesce(outputs, 0) AS outputs,
  coalesce(again, 0) AS again
FROM of_requests
LEFT JOIN of_turns ON session = turned_session
LEFT JOIN lost ON session = lost_session
LEFT JOIN cut ON session = cut_session
LEFT JOIN windows ON session = held_session
LEFT JOIN came_again ON session = again_session
ORDER BY session
LIMIT $limit
