-- What a replay of one trace found.  docs/store.md explains the tables.

CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;

CREATE TABLE threads (id INTEGER PRIMARY KEY, session TEXT, name TEXT NOT NULL);

-- An item as a record describes it.  One item has several rows where its title or source changes.
CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL, kind TEXT NOT NULL, title TEXT, source TEXT);
CREATE INDEX items_named ON items (item);

-- A text is in the trace (`offset`, `length`), or around another text, or ctxctl's own.
CREATE TABLE texts (
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, size INTEGER NOT NULL, form TEXT NOT NULL,
  tokens INTEGER, exact INTEGER, first INTEGER, offset INTEGER, length INTEGER,
  base INTEGER REFERENCES texts, before TEXT, after TEXT, text TEXT);

-- One way in which an item's version is shown in a window, with its size.
CREATE TABLE placements (
  id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES items, version TEXT, segment TEXT NOT NULL,
  tokens INTEGER NOT NULL, method TEXT NOT NULL, text INTEGER REFERENCES texts, digest TEXT,
  key INTEGER NOT NULL, line INTEGER NOT NULL, role TEXT, rank INTEGER NOT NULL, stale INTEGER NOT NULL,
  derived INTEGER NOT NULL, simulated INTEGER NOT NULL, truncated INTEGER NOT NULL, opens TEXT NOT NULL,
  closes TEXT NOT NULL, separator TEXT, carried INTEGER NOT NULL, redaction TEXT, own INTEGER NOT NULL,
  counted INTEGER NOT NULL, form TEXT NOT NULL, instead_of INTEGER);

-- A placement is in its thread's window from step `first` to step `last` (`steps.nth`).  `last` is null while
-- it is in the window.  The order of a window is that of `pos`.
CREATE TABLE stays (
  id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES threads, first INTEGER NOT NULL, last INTEGER,
  pos INTEGER NOT NULL, placement INTEGER NOT NULL REFERENCES placements);
CREATE INDEX stays_of ON stays (thread, first, pos);

-- `body` is the whole step without its changes: MessagePack, compressed with zlib.
CREATE TABLE steps (
  id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES threads, nth INTEGER NOT NULL,
  turn INTEGER NOT NULL, step INTEGER NOT NULL, turn_id TEXT, step_id TEXT, time TEXT, model TEXT,
  sent INTEGER NOT NULL, sent_method TEXT NOT NULL, recorded INTEGER NOT NULL, "limit" INTEGER,
  window_before INTEGER NOT NULL, reweighed INTEGER NOT NULL, new INTEGER NOT NULL, freed INTEGER NOT NULL,
  added INTEGER NOT NULL, updated INTEGER NOT NULL, removed INTEGER NOT NULL, skipped INTEGER NOT NULL,
  omitted INTEGER NOT NULL, input INTEGER, cached INTEGER, cache_write INTEGER, output INTEGER,
  prefix INTEGER, missed INTEGER, miss_cause TEXT, lacks INTEGER NOT NULL,
  surface INTEGER NOT NULL, first_line INTEGER NOT NULL, first_byte INTEGER NOT NULL, body BLOB NOT NULL, told BLOB, UNIQUE (thread, nth));

CREATE TABLE changes (
  step INTEGER NOT NULL REFERENCES steps, n INTEGER NOT NULL, status TEXT NOT NULL,
  item INTEGER NOT NULL REFERENCES items, version TEXT, previous_version TEXT, tokens INTEGER NOT NULL,
  in_window INTEGER NOT NULL, new INTEGER NOT NULL, freed INTEGER NOT NULL, cause TEXT, reason TEXT,
  "into" TEXT, flags TEXT, provenance TEXT NOT NULL, line INTEGER NOT NULL, unsized INTEGER NOT NULL,
  text INTEGER REFERENCES texts, PRIMARY KEY (step, n)) WITHOUT ROWID;

CREATE INDEX changes_of ON changes (item);

-- What a step does to an item without a change: its copies have another size in the encoding of the step's
-- model (`status` is null), or stale copies of it came (`skipped`) or left (`gone`).
CREATE TABLE copies (
  step INTEGER NOT NULL REFERENCES steps, n INTEGER NOT NULL, item TEXT NOT NULL, status TEXT,
  tokens INTEGER, in_window INTEGER NOT NULL, line INTEGER, stale INTEGER, PRIMARY KEY (step, n)) WITHOUT ROWID;
CREATE INDEX copies_of ON copies (item);

-- An item of a thread, as its last record describes it.  `line` 0: no record describes it.
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES threads, item TEXT NOT NULL, kind TEXT NOT NULL,
  title TEXT, source TEXT, line INTEGER NOT NULL, newest INTEGER NOT NULL, visible INTEGER NOT NULL,
  UNIQUE (thread, item));

-- A turn, by the step that ended it.
CREATE TABLE turns (
  step INTEGER PRIMARY KEY REFERENCES steps, turn INTEGER NOT NULL, title TEXT, body BLOB NOT NULL);

-- Where the replay of a trace that has grown goes on.
CREATE TABLE resume (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
