-- overflows
-- Which sessions overflow their window, or come near to it?
-- counted: requests
-- silent: no limit is known
-- param near number = 90: percent of the limit from which a request is near it
-- detail: limit sent session client near project model
-- column session digest: the session
-- column project text: null: not recorded
-- column client text: the program; null: not recorded
-- column model text: of the fullest request; null: not recorded
-- column near int: requests that sent at least so much of their limit
-- column over int: of these, requests that were larger than what the limit leaves
-- column filled share: of the limit, that the fullest request sent
-- column sent tokens: by it
-- column limit tokens: of it
-- column path text: the capture; null: paths are not kept
-- column at text: the fullest request, as an address behind the path takes it
SELECT count(DISTINCT session) AS sessions, count(*) AS counted, count(*) - count("limit") AS silent FROM asked;
WITH full_ones AS (
  SELECT session, source, project, client, model, thread, turn, step, sent, "limit" AS most, over AS above,
    CAST(sent AS DOUBLE) / nullif("limit", 0) AS filling,
    row_number() OVER (
      PARTITION BY session, source ORDER BY CAST(sent AS DOUBLE) / nullif("limit", 0) DESC, ordinal
    ) AS place
  FROM asked
  WHERE "limit" IS NOT NULL AND sent * 100 >= "limit" * $near
), counts AS (
  SELECT session, source, count(*) AS near_ones, sum(CASE WHEN above > 0 THEN 1 ELSE 0 END) AS over_ones
  FROM full_ones GROUP BY session, source
)
SELECT f.session AS session, f.project AS project, f.client AS client, f.model AS model, c.near_ones AS near,
  c.over_ones AS over, f.filling AS filled, f.sent AS sent, f.most AS "limit", o.path AS path,
  concat(CASE WHEN f.thread = 'main' THEN '' ELSE concat(f.thread, ':') END, CAST(f.turn AS VARCHAR), '.', CAST(f.step AS VARCHAR)) AS at
FROM full_ones AS f
JOIN counts AS c ON f.session = c.session AND f.source = c.source
LEFT JOIN sources AS o ON f.source = o.source
WHERE f.place = 1
ORDER BY filled DESC, sent DESC, session
LIMIT $limit
