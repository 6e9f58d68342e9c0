-- Every session with its figures, for the overview of the UI and the report; a row is read by dataset.session_rows.
-- First the session's facts (15), then its own figures (14), those that count in another capture (11), and places (4).
WITH sized AS (
  SELECT session, source, count(*) AS requests, sum(sent) AS sent,
    count(*) FILTER (WHERE sent_method <> 'reported') AS unbilled,
    max(CAST(sent AS DOUBLE) / nullif("limit", 0)) AS filled, count(*) - count("limit") AS unlimited,
    sum(read) AS read, sum(sent) FILTER (WHERE read IS NOT NULL) AS read_of,
    sum(usd) AS usd, count(*) - count(usd) AS unpriced,
    count(*) FILTER (WHERE usd_least) AS least, count(*) FILTER (WHERE usd_method <> 'billed') AS counted,
    max({'size': sent, 'early': -ordinal, 'thread': thread, 'turn': turn, 'step': step}) AS largest,
    max({'size': usd, 'early': -ordinal, 'thread': thread, 'turn': turn, 'step': step}) FILTER (WHERE usd IS NOT NULL) AS dearest
  FROM steps WHERE target = 'model' GROUP BY session, source
), copied_steps AS (
  SELECT s.session AS session, s.source AS source, count(*) AS requests, sum(s.sent) AS sent,
    count(*) FILTER (WHERE s.sent_method <> 'reported') AS unbilled,
    sum(s.read) AS read, sum(s.sent) FILTER (WHERE s.read IS NOT NULL) AS read_of,
    sum(s.usd) AS usd, count(*) - count(s.usd) AS unpriced,
    count(*) FILTER (WHERE s.usd_least) AS least, count(*) FILTER (WHERE s.usd_method <> 'billed') AS counted
  FROM steps AS s
  JOIN copies AS c ON s.session = c.session AND s.source = c.source AND s.ordinal = c.ordinal
  GROUP BY s.session, s.source
), lost AS (
  SELECT m.session AS session, m.source AS source, count(*) AS misses, count(c.ordinal) AS copied,
    max({'size': m.tokens, 'early': -m.ordinal, 'thread': s.thread, 'turn': s.turn, 'step': s.step}) AS place
  FROM misses AS m
  JOIN steps AS s ON m.session = s.session AND m.source = s.source AND m.ordinal = s.ordinal
  LEFT JOIN copies AS c ON m.session = c.session AND m.source = c.source AND m.ordinal = c.ordinal
  WHERE m.kind = 'miss' GROUP BY m.session, m.source
), cut AS (
  SELECT k.session AS session, k.source AS source, count(*) AS compactions, count(c.ordinal) AS copied,
    max({'size': k.tokens, 'early': -k.ordinal, 'thread': s.thread, 'turn': s.turn, 'step': s.step}) AS place
  FROM compactions AS k
  JOIN steps AS s ON k.session = s.session AND k.source = s.source AND k.ordinal = s.ordinal
  LEFT JOIN copies AS c ON k.session = c.session AND k.source = c.source AND k.ordinal = c.ordinal
  GROUP BY k.session, k.source
)
SELECT e.session, e.source, e.name, e.title, e.project, e.branch, e.client, e.client_version, e.model, e.format,
  e.started, e.turns, e.labels, o.path, coalesce(o.sessions, 1),
  coalesce(z.requests, 0), coalesce(z.sent, 0), coalesce(z.unbilled, 0), z.filled, coalesce(z.unlimited, 0), z.read, z.read_of,
  z.usd, coalesce(z.unpriced, 0), coalesce(z.least, 0), coalesce(z.counted, 0), CASE WHEN e.missed IS NULL THEN l.misses ELSE coalesce(l.misses, 0) END,
  CASE WHEN e.missed IS NULL AND l.misses IS NULL THEN 1 ELSE 0 END, coalesce(k.compactions, 0),
  p.requests, p.sent, p.unbilled, p.read, p.read_of, p.usd, p.unpriced, p.least, p.counted, l.copied, k.copied,
  z.largest, z.dearest, l.place, k.place
FROM sessions AS e
LEFT JOIN sources AS o ON e.source = o.source
LEFT JOIN sized AS z ON e.session = z.session AND e.source = z.source
LEFT JOIN copied_steps AS p ON e.session = p.session AND e.source = p.source
LEFT JOIN lost AS l ON e.session = l.session AND e.source = l.source
LEFT JOIN cut AS k ON e.session = k.session AND e.source = k.source
ORDER BY e.started DESC NULLS LAST, e.session, e.source, e.number
