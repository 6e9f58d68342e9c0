-- Views over the tables, for every question and for SQL of one's own.

-- copies: requests that another capture holds too and counts: of several captures that hold one request (a session
-- that was resumed or forked copies its past), it counts where it is earliest.
CREATE VIEW copies AS
SELECT session, source, ordinal
FROM (
  SELECT session, source, ordinal,
    row_number() OVER (PARTITION BY request ORDER BY time NULLS LAST, source, session, ordinal) AS place
  FROM steps
  WHERE target = 'model' AND request IN (
    SELECT request FROM steps WHERE target = 'model' AND request IS NOT NULL GROUP BY request HAVING count(*) > 1
  )
) AS held
WHERE place > 1;

-- requests: what was sent to a model, each request once over all captures.
CREATE VIEW requests AS
SELECT * FROM steps
WHERE target = 'model' AND (session, source, ordinal) NOT IN (SELECT session, source, ordinal FROM copies);
