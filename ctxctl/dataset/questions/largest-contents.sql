-- largest-contents
-- Which contents are the largest, and how long were they carried?
-- counted: stays
-- silent: their tokens could not be counted
-- detail: session content sessions item_path carried
-- column content digest: keyed digest of the text (`contents`)
-- column kind text: of the items that hold it, the first by name
-- column tool text: whose call or result it is, the first by name; null: none, or not recorded
-- column item_path text: file that it is or shows, the first by name; null: none
-- column tokens tokens: of the text
-- column sessions int: that had it in a window
-- column carried token-steps: tokens times the requests that carried them
-- column usd usd: even share of what requests' input cost; null: none of it has a price
-- column session digest: the first session by digest that had it
-- column path text: its capture; null: paths are not kept
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count(tokens) AS silent FROM held;
WITH sizes AS (
  SELECT content AS large, max(tokens) AS size
  FROM held WHERE content IS NOT NULL AND tokens IS NOT NULL
  GROUP BY content
  ORDER BY size DESC, content
  LIMIT $limit
), largest AS (
  SELECT h.content AS content, s.size AS size, min(h.kind) AS of_kind, min(h.tool) AS of_tool, min(h.path) AS shown,
    count(DISTINCT h.session) AS in_sessions, sum(h.token_steps) AS steps_of, sum(h.usd) AS price,
    min(h.session) AS first_session
  FROM held AS h JOIN sizes AS s ON h.content = s.large
  WHERE h.tokens IS NOT NULL
  GROUP BY h.content, s.size
), captures AS (
  SELECT c.session AS session, min(o.path) AS path FROM chosen AS c JOIN sources AS o ON c.source = o.source
  WHERE c.session IN (SELECT first_session FROM largest) GROUP BY c.session
)
SELECT l.content AS content, l.of_kind AS kind, l.of_tool AS tool, l.shown AS item_path, l.size AS tokens,
  l.in_sessions AS sessions, l.steps_of AS carried, l.price AS usd, l.first_session AS session, k.path AS path
FROM largest AS l
LEFT JOIN captures AS k ON l.first_session = k.session
ORDER BY tokens DESC, content
