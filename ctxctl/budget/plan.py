"""A plan: what will be in a window and how the conversation goes, as a TOML file has it (docs/budget.md).

`TEMPLATE` is the plan that ``ctxctl budget --init`` writes: every key with what it means.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from ctxctl.budget.distribution import (
    Amount,
    Distribution,
    Size,
    amount_bound,
    constant,
    distribution,
    token_size,
)
from ctxctl.errors import UnreadableError, UsageError
from ctxctl.model.whatif import MOST_TOKENS
from ctxctl.text import visible

MOST_BYTES: Final = 1 << 20
"""Bytes of a plan file at the most."""
MOST_TURNS: Final = 2000
MOST_START: Final = 10_000_000
"""Turns that a session may have had before the plan begins."""
MOST_RUNS: Final = 10_000
MOST_DRAWS: Final = 3_000_000
"""Sizes that are drawn for one plan: half a minute."""
MOST_SEEN: Final = 20_000
"""Recorded requests that a plan may hold."""
MOST_DRAWN: Final = 1000
"""Calls in a turn, or items of a retrieval: more than that is taken for a slip of the pen."""
DRIFT: Final = 0.4
"""Chosen with `observe.COMMON` on half of the sessions of tests/corpus/predictions.py."""
SORTS: Final = ("files", "text", "tools", "mcp", "tokens")
"""What a part may be given by."""
Level = Literal["p50", "p95", "p99"]
SHARE_OF: Final[dict[Level, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
Rate = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]
Arrival = tuple[Tokens, Tokens, Tokens, Tokens]
"""What is new in one request: messages of the user, of the model, tool calls, tool results."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the plan; a key that it does not know is an error."""


class Model(_Table, frozen=True):
    """Who is asked, and what a prompt may hold."""

    name: Name | None = None
    provider: str | None = None
    window: Size | None = None
    """Instead of what is known of the model."""
    max_input: Size | None = None
    reserve: Size = Size(0)
    """Of the window, kept for the answer."""
    encoding: str | None = None
    caching: bool = True
    """Whether the provider's prompt cache is used, for what begins like the request before."""
    date: str | None = None
    """Prices of this day (YYYY-MM-DD); None: of today."""


class Part(_Table, frozen=True):
    """One part of the window; exactly one of `SORTS` is given."""

    name: Name
    files: str | tuple[str, ...] | None = None
    text: str | None = None
    tools: str | tuple[str, ...] | None = None
    mcp: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """Command of an MCP server, which is asked for its tools where the user says so."""
    tokens: Distribution | None = None
    items: Distribution | None = None
    """Of a retrieval: how many there are at a time, each of `tokens`."""
    server: str | None = None
    """Of tool definitions: whose they are."""
    segment: Literal["tools", "system", "history", "context"] | None = None
    priority: float | None = None
    changes: Rate | None = None
    """Chance in each turn that its content is another than in the turn before."""
    stays: bool = False
    """Of a context: what was sent stays in the history, and a new version comes beside it."""
    now: Size | None = None
    """What it holds at the start of a session that goes on; of one that stays, all that it holds."""

    @property
    def kind(self) -> str:
        """The table's field that says what it is."""
        return next(name for name in SORTS if getattr(self, name) is not None)

    @property
    def where(self) -> str:
        """Its window segment."""
        usual = {"tools": "tools", "mcp": "tools", "tokens": "context"}
        return self.segment or usual.get(self.kind, "system")

    @property
    def rate(self) -> float:
        """`changes`, or what is usual: exact contents stay, sizes that are drawn come anew each turn."""
        if self.changes is not None:
            return self.changes
        return 1.0 if self.tokens is not None and self.where == "context" else 0.0


class Conversation(_Table, frozen=True):
    """How a session goes, in tokens."""

    turns: Annotated[int, Meta(ge=1, le=MOST_TURNS)] = 1
    user: Distribution = constant(0)
    answer: Distribution = constant(0)
    """What the model says in a turn and what stays in the history of it."""
    calls: Distribution = constant(0)
    """Tool calls in a turn."""
    parallel: Distribution = constant(1)
    """Of these, how many come in one answer."""
    call: Distribution = constant(0)
    result: Distribution = constant(0)
    unit: Literal["turn", "request"] = "turn"
    """What is counted: of a session of one prompt and many requests, a turn of the plan is a request."""
    seen: tuple[Annotated[tuple[Arrival, ...], Meta(min_length=1)], ...] = ()
    """Turns as they were recorded, request by request; drawn whole, in place of the sizes above."""
    together: Annotated[int, Meta(ge=1, le=100)] = 5
    """How many recorded turns are drawn in a row."""
    drift: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How far a session's growth may be from what was seen or is planned (standard deviation of its
    logarithm, by session); None: `DRIFT` with `seen`, else 0."""


class Start(_Table, frozen=True):
    """Where a session is that goes on."""

    trace: str | None = None
    turn: Annotated[int, Meta(ge=0, le=MOST_START)] = 0
    """The last turn that it has had."""
    history: Annotated[tuple[Arrival, ...], Meta(max_length=5000)] = ()
    """What is still in its window of each turn, the oldest first."""

    @property
    def tokens(self) -> int:
        """The whole history."""
        return sum(map(sum, self.history))


class Headroom(_Table, frozen=True):
    """What must be free at the last request of a turn."""

    turn: Annotated[int, Meta(ge=1, le=MOST_START + MOST_TURNS)]
    free: Amount


class Bounds(_Table, frozen=True):
    """The limits of ``--check``."""

    at: Level = "p95"
    """Which sessions they are held against: with p95, 95 of 100 keep them."""
    total: Amount | None = None
    """What all parts together may take."""
    parts: dict[str, Amount] = {}
    servers: dict[str, Amount] = {}
    headroom: tuple[Headroom, ...] = ()
    overflow_turn: Annotated[int, Meta(ge=1, le=MOST_START + MOST_TURNS + 1)] | None = None
    """The first turn that may overflow."""
    cost_per_session: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    """US dollars that a session may cost."""
    tolerance: Amount = Amount(None, 0.0)
    """By how much a number may be worse than in the baseline, as a share."""
    ratchet: bool = False
    """Whether a baseline that allows more than is needed fails too."""


class Plan(_Table, frozen=True):
    """The whole file."""

    model: Model
    part: tuple[Part, ...] = ()
    conversation: Conversation = Conversation()
    start: Start | None = None
    policy: str = "reject"
    limits: Bounds = Bounds()
    seed: Annotated[int, Meta(ge=0, le=1 << 53)] = 1
    runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 200
    version: Literal[1] = 1

    @property
    def first(self) -> int:
        """Number of the first turn that is drawn."""
        return self.start.turn + 1 if self.start is not None else 1

    @property
    def last(self) -> int:
        """Number of the last turn that is drawn."""
        return self.first + self.conversation.turns - 1


_READ: Final[dict[Any, Any]] = {Size: token_size, Amount: amount_bound, Distribution: distribution}


def load(path: Path) -> tuple[Plan, str]:
    """A plan and its text.

    Raises UnreadableError (`no-such-file`, `not-a-regular-file`, `not-readable`) and UsageError("bad-plan").
    """
    from stat import S_ISREG

    shown = visible(str(path))
    try:
        if not S_ISREG(path.stat().st_mode):
            raise UnreadableError("not-a-regular-file", f"{shown} is not a file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UnreadableError(
            "no-such-file",
            f"{shown}: no such file",
            hint="`ctxctl budget --init` prints a plan to start from",
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise UnreadableError("not-readable", f"{shown}: {why}") from None
    if len(data) > MOST_BYTES:
        raise UsageError("bad-plan", f"{shown} is larger than {MOST_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("bad-plan", f"{shown}: byte {error.start} is not UTF-8") from None
    return parse(text, shown), text


def parse(text: str, name: str) -> Plan:
    """A plan from its text; raises UsageError("bad-plan") that says where."""
    import tomllib

    try:
        table = tomllib.loads(text)
        plan = msgspec.convert(table, Plan, dec_hook=lambda kind, value: _READ[kind](value))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError("bad-plan", f"{name}: not TOML: {visible(str(error)[:300])}") from None
    except (msgspec.ValidationError, ValueError) as error:
        said, _, where = str(error)[:400].partition(" - at `$")
        where = where.strip("`.")
        raise _bad(name, f"{where}: {said}" if where else said) from None
    _checked(plan, name)
    return plan


def _checked(plan: Plan, name: str) -> None:
    names = Counter(part.name for part in plan.part)
    for part in plan.part:
        given = [name for name in SORTS if getattr(part, name) is not None]
        if len(given) != 1:
            has = " and ".join(given) or "none"
            raise _bad(name, f"part {part.name!r} needs one of {', '.join(SORTS)}; it has {has}")
        if names[part.name] > 1:
            raise _bad(name, f"two parts are called {part.name!r}")
        if part.items is not None and part.tokens is None:
            raise _bad(name, f"part {part.name!r}: items needs tokens, the size of each")
        if part.items is not None and part.items.at(1.0) > MOST_DRAWN:
            raise _bad(name, f"part {part.name!r}: more than {MOST_DRAWN:,} items")
        if part.now is not None and (part.tokens is None or part.items is not None or plan.start is None):
            raise _bad(name, f"part {part.name!r}: now is for parts with tokens in a plan with [start]")
        if part.stays and part.where != "context":
            raise _bad(name, f'part {part.name!r}: stays is for parts with segment = "context"')
    talk = plan.conversation
    if talk.calls.at(1.0) > MOST_DRAWN or talk.parallel.at(1.0) > MOST_DRAWN:
        raise _bad(name, f"more than {MOST_DRAWN:,} calls in a turn")
    for what, known, bound in (
        ("part", set(names), plan.limits.parts),
        ("server", {part.server for part in plan.part}, plan.limits.servers),
    ):
        for key in bound:
            if key not in known:
                raise _bad(name, f"limits.{what}s: there is no {what} {key!r}")
    _talk_checked(plan, name)
    items = sum(part.items.mean if part.items is not None else 1.0 for part in plan.part)
    talks = sum(map(len, talk.seen)) / len(talk.seen) if talk.seen else 2 * talk.calls.mean
    draws = int(plan.runs * talk.turns * (4 + items + talks))
    if draws > MOST_DRAWS:
        raise _bad(name, f"{draws:,} sizes would be drawn; fewer runs than {plan.runs:,}, or fewer turns")
    for head in plan.limits.headroom:
        if not plan.first <= head.turn <= plan.last:
            why = f"the conversation has no turn {head.turn}, only {plan.first} to {plan.last}"
            raise _bad(name, f"limits.headroom: {why}")
    if plan.limits.tolerance.share is None:
        raise _bad(name, "limits.tolerance must be a share, as '5%'")
    policy_of(plan, name)


def _talk_checked(plan: Plan, name: str) -> None:
    talk = plan.conversation
    sizes = (talk.user, talk.answer, talk.calls, talk.call, talk.result)
    if talk.seen and any(size != constant(0) for size in sizes):
        raise _bad(name, "conversation.seen stands in place of user, answer, calls, call and result")
    if talk.unit == "request" and not talk.seen:
        raise _bad(name, 'conversation.unit = "request" needs seen')
    if sum(map(len, talk.seen)) > MOST_SEEN:
        raise _bad(name, f"conversation.seen has more than {MOST_SEEN:,} requests")


def policy_of(plan: Plan, name: str) -> Any:
    """The fitting policy; raises UsageError: `unknown-policy`, `bad-policy-parameter`, `bad-plan`."""
    from ctxctl.policies.registry import is_fitter, policy_by_name

    policy = policy_by_name(plan.policy)
    if policy is None or not is_fitter(policy):
        raise _bad(name, f"policy {plan.policy!r} does not say what is left out")
    return policy


def _bad(name: str, why: str) -> UsageError:
    return UsageError(
        "bad-plan", f"{name}: {visible(why)}", hint="`ctxctl budget --init` prints a plan with every key"
    )


def line_of(text: str, name: str, key: str = "") -> int:
    """The line that has a key, or without one names something, 1-based; 1 where none does."""
    wanted = (f"{key} =", f"{key}=") if key else (f'"{name}"', f"'{name}'")
    if not key and not name:
        return 1
    return next((n for n, line in enumerate(text.splitlines(), 1) if any(w in line for w in wanted)), 1)


TEMPLATE: Final = """\
# What will be in the window, and how the conversation will go: `ctxctl budget THIS-FILE` (docs/budget.md).
# Sizes are tokens: 900 or "4k"; a range { from = 200, to = 800 }; or percentiles,
# { min = 10, p50 = 300, p95 = 900, max = 4000 }.

version = 1
policy = "fifo"                 # what leaves when it does not fit: `ctxctl policies` lists them
seed = 1                        # the same seed draws the same sessions
runs = 200                      # sessions that are drawn

[model]
name = "gpt-5"                  # window, limits and prices are known offline: `ctxctl models NAME`
provider = "openai"             # the same model has other limits elsewhere
reserve = 16000                 # of the window, kept for the answer
# window = 128000               # instead of what is known of the model
# max_input = 100000
# encoding = "o200k_base"
# caching = true                # the provider's prompt cache is used
# date = "2026-11-01"           # prices of this day, so that the cost does not move by itself

# Parts have one of: text, files (counted exactly), tools (JSON files of definitions), mcp, tokens (a size).
[[part]]
name = "system prompt"
text = "You are a careful assistant."
# files = ["prompts/*.md"]      # relative to this file, nothing outside its folder
# segment = "system"            # tools, system, history, or context (before the newest message)
# priority = 10                 # for policies that look at it: more is kept longer

# [[part]]
# name = "github tools"
# tools = "tools/github.json"   # as OpenAI, Anthropic or MCP have them, or an answer to tools/list
# server = "github"

# [[part]]
# name = "search tools"
# mcp = ["npx", "some-server"]  # an MCP server that is run and asked for its tools; only with --live

[[part]]
name = "git status"             # a provider that runs in each turn
tokens = { p50 = 120, p95 = 900, p99 = 2500 }
changes = 0.6                   # chance in a turn that it says something new

[[part]]
name = "search hits"            # a retrieval: so many items of that size each
items = { from = 0, to = 5 }
tokens = { p50 = 350, p95 = 800 }
# stays = true                  # what was sent stays in the history

[conversation]
turns = 40
user = { p50 = 60, p95 = 600 }
answer = { p50 = 300, p95 = 1200 }
calls = { p50 = 2, p95 = 10 }   # tool calls in a turn
parallel = 1                    # of these, so many in one answer
call = { p50 = 60, p95 = 400 }
result = { p50 = 700, p95 = 6000, p99 = 20000 }
# drift = 0.3                   # by how much all of it differs from session to session

# What `--check` demands. Bounds are tokens, or a share of what a prompt may hold: "10%".
[limits]
at = "p95"                      # held in 95 of 100 sessions: p50, p95 or p99
total = "10%"                   # all parts together
overflow_turn = 15              # the first turn that may overflow
headroom = [ { turn = 10, free = "20%" } ]
# cost_per_session = 5.00       # US dollars
# parts = { "system prompt" = 4000 }
# servers = { "github" = "8k" }
# tolerance = "2%"              # by how much a number may be worse than in the --baseline
# ratchet = false               # true: a baseline that allows more than is needed fails too
"""
