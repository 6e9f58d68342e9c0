-- sentence
-- Where does a sentence occur?
-- counted: texts
-- silent: the text is not kept
-- texts: yes
-- param text text: the words to look for, letter for letter
-- detail: requests session project item_path tokens
-- column session digest: a session that had the text in a window
-- column project text: null: not recorded
-- column kind text: of the item
-- column tool text: whose call or result it is; null: none, or not recorded
-- column item_path text: file that it is or shows; null: none
-- column tokens tokens: of the whole text; null: uncounted
-- column requests int: that carried it there
-- column path text: the capture; null: paths are not kept
-- column at text: the request that it entered with, as an address behind the path takes it
SELECT count(DISTINCT c.session) AS sessions, count(*) AS counted, count(*) - count(t.text) AS silent
FROM contents AS t LEFT JOIN (SELECT source, min(session) AS session FROM chosen GROUP BY source) AS c ON t.source = c.source
WHERE c.session IS NOT NULL;
WITH having_it AS (
  SELECT source, content FROM contents WHERE position($text IN text) > 0
)
SELECT h.session AS session, h.project AS project, h.kind AS kind, h.tool AS tool, h.path AS item_path,
  h.tokens AS tokens, h.requests AS requests, o.path AS path,
  concat(CASE WHEN a.thread = 'main' THEN '' ELSE concat(a.thread, ':') END, CAST(a.turn AS VARCHAR), '.', CAST(a.step AS VARCHAR)) AS at
FROM held AS h
JOIN having_it AS i ON h.source = i.source AND h.content = i.content
LEFT JOIN sources AS o ON h.source = o.source
LEFT JOIN steps AS a ON h.session = a.session AND h.source = a.source AND h.first = a.ordinal
ORDER BY path NULLS LAST, h.source, session, h.number
LIMIT $limit
