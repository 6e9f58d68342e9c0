"""The tables of a dataset: what one row of each is, and each column's meaning, unit and kind.

The same for every format.  Null is "not recorded", "not known" or "does not apply", as the column says; zero
is a zero that was counted.  Texts, and digests of texts that could be guessed, are in no column but `text`:
contents are named by a digest with the dataset's key (`keyed`), so equal ones meet and nobody can try a guess.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

SCHEMA_VERSION: Final = 2
"""Of tables and columns; readers of another one say so and stop.  1 had prices of billed requests alone."""
UNKNOWN_MONTH: Final = "unknown"
"""Of sessions without a recorded time."""

Type = Literal[
    "string", "bool", "int32", "int64", "uint64", "double", "timestamp", "binary", "labels", "tokens by name"
]
"""`timestamp`: microseconds, UTC.  `labels`: map of string to string.  `tokens by name`: map of string to int64."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: Type
    says: str
    """What a value is, with its unit, and what null means where it can be null."""
    null: bool = True
    """Whether it can be null."""


class Table(NamedTuple):
    """One table: every row of it is `row`."""

    name: str
    row: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    """Columns by which the rows of a file are sorted: together they name one row."""


def _key(name: str, says: str) -> Column:
    return Column(name, "uint64", says, null=False)


_SOURCE: Final = _key("source", "the capture: keyed digest of its host and path")
_SESSION: Final = _key(
    "session", "keyed digest of format and the session's own id, or of the capture and its number there"
)
_MONTH: Final = Column(
    "month", "string", "YYYY-MM (UTC) of the session's first request, or `unknown`", null=False
)
_FORMAT: Final = Column("format", "string", "as `--read-as` takes it", null=False)
_WHERE: Final = (_SESSION, _SOURCE, _MONTH, _FORMAT)
_THREAD: Final = Column("thread", "string", "`main`, or the thread's name as `--thread` takes it", null=False)
_SUB_AGENT: Final = Column(
    "sub_agent", "bool", "whether the thread is not the session's main one", null=False
)
_ORDINAL: Final = Column(
    "ordinal", "int32", "which request of the session, from 0, in the capture's order", null=False
)
_TIME: Final = Column("time", "timestamp", "of the request; null: not recorded")
_MODEL: Final = Column("model", "string", "as the capture names it; null: not recorded")

SOURCES: Final = Table(
    "sources",
    "a capture that was added, read or not",
    (
        _SOURCE, _MONTH, _FORMAT,
        Column("path", "string", "where it was, for `ctxctl` to open it again; null with --no-paths"),
        Column("host", "string", "keyed digest of the machine's name, or the name given by --host", null=False),
        Column("bytes", "int64", "of all its files", null=False),
        Column("inputs", "binary", "states of the files that it was read from: what tells that it is unchanged", null=False),
        Column("ctxctl", "string", "version that read it", null=False),
        Column("sessions", "int32", "read from it", null=False),
        Column("problems", "int32", "met while reading", null=False),
        Column("failed", "string", "slug of the error that it could not be read for; null: it was read"),
    ),
    ("source",),
)  # fmt: skip

SESSIONS: Final = Table(
    "sessions",
    "a session of a capture",
    (
        *_WHERE,
        Column("number", "int32", "which session of the capture, from 0", null=False),
        Column("name", "string", "the session's own id; null: it has none"),
        Column("title", "string", "first words of its first prompt, redacted; null without --texts, or none"),
        Column("project", "string", "name of the directory it ran in; null: not recorded"),
        Column("branch", "string", "git branch of its first request; null: not recorded"),
        Column("client", "string", "the program that ran it; null: not recorded"),
        Column("client_version", "string", "null: not recorded"),
        Column("host", "string", "as in `sources`", null=False),
        Column("labels", "labels", "what --label said of it", null=False),
        Column("model", "string", "of the main thread's most requests; null: not recorded"),
        Column("started", "timestamp", "first recorded time; null: none"),
        Column("ended", "timestamp", "last recorded time; null: none"),
        Column("turns", "int32", "of its main thread", null=False),
        Column("requests", "int32", "rows of it in `steps`", null=False),
        Column("threads", "int32", "sub-agents and other threads apart from the main one", null=False),
        Column("limit", "int64", "context window of its first request that has one, tokens; null: unknown"),
        Column("first_sent", "int64", "tokens sent by the first request of the main thread; null: no request"),
        Column("largest_sent", "int64", "tokens of its largest request; null: no request"),
        Column("over", "int32", "requests that were larger than their limit; null: no limit is known"),
        Column("sent", "int64", "tokens sent, of all requests", null=False),
        Column("billed", "int32", "requests with a bill", null=False),
        Column("read", "int64", "tokens read from a cache, as billed; null: no bill says"),
        Column("written", "int64", "tokens written to a cache, as billed; null: no bill says"),
        Column("output", "int64", "tokens answered, as billed; null: no bill says"),
        Column("usd", "double", "sum of `steps.usd`; null: no request has a price"),
        Column("unpriced", "int32", "requests without a price, or with a part that has none: `usd` is at least", null=False),
        Column("compactions", "int32", "rows of it in `compactions`", null=False),
        Column("breaks", "int32", "requests whose prefix a recorded change broke; null: no cache figures"),
        Column("missed", "int64", "tokens that a cache held and did not serve, unexplained by the record; null: no cache figures"),
        Column("problems", "int32", "of its capture", null=False),
    ),
    ("session", "source", "number"),
)  # fmt: skip

STEPS: Final = Table(
    "steps",
    "a request: one step of a thread for one target",
    (
        *_WHERE, _THREAD, _SUB_AGENT, _ORDINAL,
        Column("turn", "int32", "1-based, as in `@TURN.STEP`", null=False),
        Column("step", "int32", "1-based in its turn", null=False),
        Column("target", "string", "who got it, mostly `model`", null=False),
        _TIME, _MODEL,
        Column("request", "uint64", "keyed digest of the request's own id: equal where several captures hold the same; null: no id"),
        Column("sent", "int64", "tokens that the provider got", null=False),
        Column("sent_method", "string", "`reported`, `expected` or `recorded` (DESIGN, the true window)", null=False),
        Column("recorded", "int64", "tokens of what the capture holds, in the model's own", null=False),
        Column("unrecorded", "int64", "sent less recorded; null: nothing was billed to tell by"),
        Column("uncounted", "int32", "placements without text and count", null=False),
        Column("limit", "int64", "context window, tokens; null: unknown"),
        Column("limit_source", "string", "`recorded`, `runtime` or `catalogue`; null: unknown"),
        Column("over", "int64", "tokens above what the limit leaves; 0: it fits; null: unknown"),
        Column("new", "int64", "tokens that entered", null=False),
        Column("freed", "int64", "tokens that left", null=False),
        Column("stale", "int64", "tokens of older copies in the window", null=False),
        Column("tools", "int64", "tokens of the window's segment of tool definitions", null=False),
        Column("system", "int64", "of the system prompt", null=False),
        Column("history", "int64", "of the conversation", null=False),
        Column("context", "int64", "of injected context", null=False),
        Column("user", "int64", "of the current prompt", null=False),
        Column("prefix", "int64", "tokens that the request begins with as the one before; null: first of a thread, or not the model"),
        Column("read", "int64", "tokens read from a cache, as billed; null: not said"),
        Column("written", "int64", "tokens written to a cache, as billed; null: not said"),
        Column("output", "int64", "tokens answered, as billed; null: not said"),
        Column("usd", "double", "list price of what was sent and answered; without a bill, of the expected size (`usd_method`); null: no size or no price known"),
        Column("input_usd", "double", "its part for what was sent, cache included; null as `usd`"),
        Column("usd_method", "string", "`billed`; `counted`: the client logged the output before the answer's end, so it is priced as counted; `expected`: no bill, priced at the expected size; null as `usd`"),
        Column("usd_least", "bool", "whether `usd` leaves something out: what was billed at a rate that nobody knows, an answer that is not recorded; null as `usd`"),
    ),
    ("session", "source", "ordinal"),
)  # fmt: skip

STAYS: Final = Table(
    "stays",
    "an item's stay in a window: one version of it in one thread, from the request that it entered with to the last that had it",
    (
        *_WHERE, _THREAD, _SUB_AGENT,
        Column("number", "int32", "which stay of the session, from 0, in the order in which they began", null=False),
        Column("item", "uint64", "keyed digest of the item's id within its session", null=False),
        Column("kind", "string", "as `kind:` takes it: `tool_result`, `tool_definition`, `file` …", null=False),
        Column("segment", "string", "tools, system, history, context or user", null=False),
        Column("tool", "string", "name of the tool that it defines, calls or answers; null: none, or not recorded"),
        Column("server", "string", "MCP server of that tool; null: none, or not recorded"),
        Column("path", "string", "file that it is or shows, relative to the session's directory where it lies in it; null: none, or not a plain path, or --no-paths"),
        Column("content", "uint64", "keyed digest of its rendered text (`contents`); null: no text is recorded"),
        Column("first", "int32", "`ordinal` of the request that it entered with", null=False),
        Column("last", "int32", "`ordinal` of the last request that had it", null=False),
        Column("requests", "int32", "of its thread that had it", null=False),
        Column("tokens", "int64", "of the rendered text, in the tokens of the model that it entered with; null: uncounted"),
        Column("token_steps", "int64", "summed over these requests: `tokens` times `requests`, unless the thread went over to a model that counts otherwise; null: uncounted"),
        Column("stale_token_steps", "int64", "the part of these after a newer version of it came; null: uncounted"),
        Column("entered", "string", "`added`, `updated` or `start` (in the thread's first window)", null=False),
        Column("left", "string", "cause of leaving (`compacted`, `truncated`, `updated`, …); null: it is in the last window"),
        Column("usd", "double", "even share of what its requests' input cost: of each request `input_usd` by its tokens of the tokens sent; null: none of them has a price"),
    ),
    ("session", "source", "number"),
)  # fmt: skip

MISSES: Final = Table(
    "misses",
    "a request that read less from the cache than the one before left there: a recorded change broke the prefix, or none explains it",
    (
        *_WHERE, _THREAD, _SUB_AGENT, _ORDINAL, _TIME, _MODEL,
        Column("kind", "string", "`break` (a recorded change) or `miss` (none explains it)", null=False),
        Column("cause", "string", "of a break: what happened (`added`, `updated`, `removed`, `moved`, or the parameter that changed); of a miss: `expired`, `model`, `unrecorded`, `unexplained`", null=False),
        Column("item_kind", "string", "of the item that broke it; null: a parameter, or a miss"),
        Column("tool", "string", "tool of that item; null as above, or none"),
        Column("server", "string", "MCP server of that tool; null as above, or none"),
        Column("tokens", "int64", "sent again that stood in the window before: of a break behind it, of a miss paid for again", null=False),
        Column("usd", "double", "what these cost above a read from the cache; null: no price known"),
        Column("idle", "double", "seconds since the request before; null: not recorded"),
        Column("lifetime", "int64", "seconds that the provider documents for what was written; null: none"),
    ),
    ("session", "source", "ordinal", "kind"),
)  # fmt: skip

COMPACTIONS: Final = Table(
    "compactions",
    "a request before which a compaction took items out of the window",
    (
        *_WHERE, _THREAD, _SUB_AGENT, _ORDINAL, _TIME, _MODEL,
        Column("trigger", "string", "what set it off, where that is a word (`auto`, `manual`); null: not recorded"),
        Column("before", "int64", "tokens that the request before sent; null: it is the first"),
        Column("after", "int64", "tokens that this one sent", null=False),
        Column("items", "int32", "taken", null=False),
        Column("tokens", "int64", "taken", null=False),
        Column("by_kind", "tokens by name", "tokens taken, by kind of item", null=False),
        Column("by_tool", "tokens by name", "tokens taken of tool results, by tool", null=False),
        Column("summary", "int64", "tokens of what came in their place; null: no summary is recorded"),
    ),
    ("session", "source", "ordinal"),
)  # fmt: skip

CONTENTS: Final = Table(
    "contents",
    "a text that a capture's windows held, once for each capture",
    (
        _SOURCE, _MONTH, _FORMAT,
        Column("content", "uint64", "keyed digest of it", null=False),
        Column("kind", "string", "of the first item that held it", null=False),
        Column("bytes", "int64", "of its UTF-8", null=False),
        Column("tokens", "int64", "in the model's own tokens; null: uncounted"),
        Column("text", "string", "redacted; null without --texts"),
    ),
    ("source", "content"),
)  # fmt: skip

TABLES: Final = (SOURCES, SESSIONS, STEPS, STAYS, MISSES, COMPACTIONS, CONTENTS)
"""In the order in which they are documented."""


def table(name: str) -> Table:
    """The table of a name.  Raises KeyError."""
    return {one.name: one for one in TABLES}[name]
