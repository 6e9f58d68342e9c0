-- sessions
-- Which sessions are there?
-- counted: sessions
-- silent: no time is recorded
-- detail: expected unpriced session at model breaks turns filled misses compactions client_version path
-- column session digest: the session
-- column started text: day and minute (UTC) of its first recorded time; null: none
-- column project text: name of the directory it ran in; null: not recorded
-- column client text: the program; null: not recorded
-- column client_version text: null: not recorded
-- column model text: of the main thread's most requests; null: not recorded
-- column turns int: of its main thread
-- column requests int: sent to a model, copies of another capture's among them
-- column largest tokens: sent by its largest request; null: no request
-- column filled share: of the limit, that the fullest request sent; null: no limit is known
-- column compactions int: requests before which one took items out
-- column breaks int: requests whose cached prefix a recorded change broke
-- column misses int: requests that missed the cache, unexplained by a recorded change
-- column usd usd: list price of the requests that have one; null: none has
-- column unpriced int: requests without a price, or with a part that has none: `usd` is at least
-- column expected int: requests priced as expected or counted, not as billed: `usd` is approximate
-- column path text: the capture; null: paths are not kept
-- column at text: its largest request, as an address behind the path takes it; null: no request
SELECT count(*) AS sessions, count(*) AS counted, count(*) - count(started) AS silent FROM chosen;
WITH placed AS (
  SELECT s.session AS of_session, s.source AS of_source, s.sent AS sent, s."limit" AS most, s.usd AS price, s.usd_least AS least, s.usd_method AS method, s.thread AS thread,
    s.turn AS turn, s.step AS step,
    row_number() OVER (PARTITION BY s.session, s.source ORDER BY s.sent DESC, s.ordinal) AS place
  FROM steps AS s JOIN chosen AS c ON s.session = c.session AND s.source = c.source
  WHERE s.target = 'model'
), sums AS (
  SELECT of_session, of_source, count(*) AS times, max(sent) AS size, max(CAST(sent AS DOUBLE) / nullif(most, 0)) AS filling,
    sum(price) AS all_price, sum(CASE WHEN price IS NULL OR least THEN 1 ELSE 0 END) AS no_price,
    sum(CASE WHEN method <> 'billed' THEN 1 ELSE 0 END) AS by_size,
    min(CASE WHEN place = 1 THEN concat(CASE WHEN thread = 'main' THEN '' ELSE concat(thread, ':') END, CAST(turn AS VARCHAR), '.', CAST(step AS VARCHAR)) END) AS largest_at
  FROM placed GROUP BY of_session, of_source
), lost AS (
  SELECT session AS lost_session, source AS lost_source, sum(CASE WHEN kind = 'break' THEN 1 ELSE 0 END) AS broken,
    sum(CASE WHEN kind = 'miss' THEN 1 ELSE 0 END) AS unread
  FROM misses GROUP BY session, source
)
SELECT c.session AS session, substring(CAST(c.started AS VARCHAR), 1, 16) AS started, c.project AS project, c.client AS client,
  c.client_version AS client_version, c.model AS model, c.turns AS turns, coalesce(u.times, 0) AS requests,
  u.size AS largest, u.filling AS filled, c.compactions AS compactions, coalesce(l.broken, 0) AS breaks,
  coalesce(l.unread, 0) AS misses, u.all_price AS usd, coalesce(u.no_price, 0) AS unpriced, coalesce(u.by_size, 0) AS expected, o.path AS path, u.largest_at AS at
FROM chosen AS c
LEFT JOIN sums AS u ON c.session = u.of_session AND c.source = u.of_source
LEFT JOIN lost AS l ON c.session = l.lost_session AND c.source = l.lost_source
LEFT JOIN sources AS o ON c.source = o.source
ORDER BY c.started DESC NULLS LAST, c.session, c.source
LIMIT $limit
