-- Common table expressions that a question may name; those that it does are put in front of it.

-- chosen: the sessions that the common parameters leave
chosen AS (
  SELECT * FROM sessions
  WHERE ($since IS NULL OR started >= $since)
    AND ($until IS NULL OR started < $until)
    AND ($project IS NULL OR project = $project)
    AND ($client IS NULL OR client = $client)
    AND ($client_version IS NULL OR client_version = $client_version)
    AND ($model IS NULL OR model = $model)
    AND ($branch IS NULL OR branch = $branch)
    AND ($format IS NULL OR format = $format)
    AND ($label IS NULL OR labels[coalesce($label, '')] = $label_value)
)

-- asked: their requests, with what their session says
asked AS (
  SELECT r.*, c.project AS project, c.client AS client, c.client_version AS client_version
  FROM requests AS r
  JOIN chosen AS c ON r.session = c.session AND r.source = c.source
)

-- held: stays in their windows; one that began with a copied request counts in the capture that counts the request
held AS (
  SELECT s.*, c.project AS project, c.client AS client, c.client_version AS client_version, c.started AS started
  FROM stays AS s
  JOIN chosen AS c ON s.session = c.session AND s.source = c.source
  WHERE (s.session, s.source, s.first) NOT IN (SELECT session, source, ordinal FROM copies)
)

-- missed: their breaks of the cached prefix, and their misses that no recorded change explains
missed AS (
  SELECT m.*, c.project AS project, c.client AS client, c.client_version AS client_version
  FROM misses AS m
  JOIN chosen AS c ON m.session = c.session AND m.source = c.source
  WHERE (m.session, m.source, m.ordinal) NOT IN (SELECT session, source, ordinal FROM copies)
)

-- compacted: their compactions
compacted AS (
  SELECT k.*, c.project AS project, c.client AS client, c.client_version AS client_version
  FROM compactions AS k
  JOIN chosen AS c ON k.session = c.session AND k.source = c.source
  WHERE (k.session, k.source, k.ordinal) NOT IN (SELECT session, source, ordinal FROM copies)
)
