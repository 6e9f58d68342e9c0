"""Errors of calibration over every capture with reported usage: the tables of docs/calibration.md.

    python -m tests.corpus.calibrating CORPUS

prints them; the test beside it holds them to their bounds and, under CTXCTL_UPDATE_GOLDENS, writes them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.cache import CountCache, default_path
from ctxctl.tokens.calibrate.calibration import Fit, RefusedModel, fitted, relatives, sound
from ctxctl.tokens.calibrate.errors import (
    Errors,
    WrongPrediction,
    distinct_segments,
    predict_by_methods,
    quantile,
    summed,
)
from ctxctl.tokens.calibrate.expect import EXACT_ITEMS, ONES
from ctxctl.tokens.calibrate.features import weighed_tokens
from ctxctl.tokens.calibrate.points import Gatherer, Lane, rows_of
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.tokens.overhead import Item, chat_size
from tests.corpus.hidden_bills import Capture, Follower

ENCODING = "o200k_base"
EXACT = (*ONES, *EXACT_ITEMS)
LEAST = 20
BEGIN, END = "<!-- table: {} -->", "<!-- end of table -->"
METHODS = (
    ("next_size", "next size"),
    ("alternate", "every other step"),
    ("halves", "second half"),
    ("first", "from the first bill"),
)
PROTOTYPE = {
    "next_size": (0.0013, 0.006, 0.010, 0.027),
    "alternate": (0.008, 0.028, 0.037, 0.092),
    "halves": (0.019, 0.052, 0.060, 0.074),
    "first": (0.025, 0.098, 0.13, 0.18),
}
"""p50, p90, p95 and p99 that a prototype reached on 40 transcripts of Claude Code."""
CHAT = frozenset({"inspect-ai", "langfuse", "langsmith", "openinference", "otel", "swe-agent-calls", "vcr"})
"""Formats that hold whole requests to OpenAI's Chat Completions API."""
SKIPPED = frozenset(
    {
        "agentcontext", "aider", "clients", "copilot-sdk-events", "luminarys", "mcp-agent-runs",
        "mcp-sessions", "mcp-tools", "models", "sanqian", "sibyl", "swe-agent", "tau-bench",
    }
)  # fmt: skip
"""Folders without bills that could be fitted to: none at all, sums worked out from sums (aider's), or a
stand-in's (`clients`)."""


class Asked(NamedTuple):
    """One request to Chat Completions whose model's encoding is public."""

    model: str
    reported: int
    texts: int
    expected: int
    kind: str
    """`texts only`, `with tools`, `with tool calls` or `not whole`: something in it has no text."""
    path: str


class Gathered(NamedTuple):
    """What the corpus tells."""

    sessions: dict[str, list[list[Lane]]]
    """By model: the lanes of each capture."""
    transcripts: dict[str, list[list[Lane]]]
    """The same, of Claude Code's transcripts alone: what the prototype was measured on."""
    asked: list[Asked]
    captures: list[Capture]
    """Each with what it tells of bills, whatever the model."""


def gather(corpus: Path) -> Gathered:
    """Replay every capture once."""
    found = Gathered(defaultdict(list), defaultdict(list), [], [])
    cache_at = default_path()
    cache = CountCache(cache_at) if cache_at is not None else None
    counters = {name: Counter(name, cache) for name in ("o200k_base", "cl100k_base")}
    for top in ("data", "samples"):
        for path in sorted(p for p in (corpus / top).rglob("*") if p.is_file()):
            if SKIPPED.isdisjoint(path.parts):
                with suppress(CtxctlError):  # what is no capture
                    _take(path, str(path.relative_to(corpus)), found, counters)
    return found


def _take(path: Path, name: str, found: Gathered, counters: dict[str, Counter]) -> None:
    with Inspector.open(path, encoding=ENCODING) as inspector:
        public = False
        gatherer, follower = Gatherer(), Follower()
        for result in inspector.replay():
            if isinstance(result, Step):
                gatherer.add(result)
                follower.add(result)
        sessions = gatherer.sessions()
        found.captures.append(Capture(name, tuple(map(tuple, sessions)), follower.trails()))
        for session in sessions:
            lanes: dict[str, list[Lane]] = defaultdict(list)
            for lane in session:
                lanes[lane.model].append(lane)
            for model, own in lanes.items():
                public = public or resolve_encoding(model).known
                found.sessions[model].append(own)
                if inspector.format == "claude-code":
                    found.transcripts[model].append(own)
        if public and inspector.format in CHAT:
            found.asked.extend(_asked(inspector, counters, path))


def _asked(inspector: Inspector, counters: dict[str, Counter], path: Path) -> Iterator[Asked]:
    seen = set()
    for at, _ in inspector.walk():
        step, usage = at.step, at.step.usage
        encoding = resolve_encoding(step.model)
        if usage is None or usage.reported_input is None or step.model is None or not encoding.known:
            continue
        counter = counters["cl100k_base" if encoding.encoding == "cl100k_base" else "o200k_base"]

        def count(text: str, counter: Counter = counter) -> int:
            return counter.count(text)[0]

        items = []
        for p in at.placements:
            text = inspector.text(p.content) if p.content is not None else ""
            items.append(Item(p.kind, text, count(text)))
        kinds = {item.kind for item in items}
        kind = (
            "with tool calls" if "tool_call" in kinds else "with tools" if "tool_definition" in kinds else ""
        )
        older = encoding.encoding == "cl100k_base"
        one = Asked(
            step.model, usage.reported_input, sum(item.tokens for item in items),
            chat_size(items, count, older=older),
            "not whole" if step.window.uncounted else kind or "texts only", path.name,
        )  # fmt: skip
        if one not in seen:
            seen.add(one)
            yield one


class Line(NamedTuple):
    """One model, calibrated or not."""

    model: str
    found: Fit | RefusedModel

    def errors(self, name: str) -> Errors | None:
        """Of one method."""
        errors = getattr(self.found, name, None)
        return errors if isinstance(errors, Errors) else None


def lines(gathered: Gathered) -> list[Line]:
    """Every model without a public tokenizer, the one with most steps first."""
    made = [
        Line(model, fitted(model, sessions, ENCODING, relatives(model, gathered.sessions)))
        for model, sessions in gathered.sessions.items()
        if not resolve_encoding(model).known
    ]
    return sorted(made, key=lambda line: (-line.found.steps, line.model))


def whole(gathered: Gathered, made: Sequence[Line]) -> dict[str, list[float]]:
    """Errors over all of Claude Code's transcripts of models that can be calibrated, by method, sorted."""
    fits = {line.model for line in made if isinstance(line.found, Fit)}
    errors: dict[str, list[float]] = {name: [] for name, _ in METHODS}
    for model, sessions in gathered.transcripts.items():
        if model in fits:
            tried = predict_by_methods(
                sound(distinct_segments(sessions))[0], relatives(model, gathered.sessions)
            )
            for name, kept in errors.items():
                kept += (miss.error for miss in getattr(tried, name))
    return {name: sorted(kept) for name, kept in errors.items()}


def exact(gathered: Gathered) -> list[tuple[str, int, Errors]]:
    """The next size where the tokenizer is public, by the counts alone."""
    made = []
    for model, sessions in gathered.sessions.items():
        if not resolve_encoding(model).known or resolve_encoding(model).encoding == "cl100k_base":
            continue
        misses = []
        for lanes in distinct_segments(sessions):
            for row in (row for lane in lanes for points in lane for row in rows_of(points)):
                error = abs(row.change - weighed_tokens(EXACT, row.moved)) / row.reported
                misses.append(
                    WrongPrediction(
                        error, row.reported, row.change, row.moved, weighed_tokens(EXACT, row.moved)
                    )
                )
        errors = summed(misses)
        if errors is not None and errors.steps >= LEAST:
            made.append((model, len(sessions), errors))
    return sorted(made, key=lambda row: (-row[2].steps, row[0]))


def per_cent(share: float) -> str:
    """Two digits that say something."""
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:,.0f} %"


def tables(gathered: Gathered, made: Sequence[Line], found: dict[str, list[float]]) -> dict[str, str]:
    """The tables in Markdown, by name."""
    return {
        "whole": "\n".join(_whole(found)),
        "models": "\n".join(_models(made)),
        "worst": "\n".join(_worst(made)),
        "refused": "\n".join(_refused(made)),
        "exact": "\n".join(_exact(gathered)),
        "messages": "\n".join(_messages(gathered.asked)),
    }


def _whole(found: dict[str, list[float]]) -> Iterator[str]:
    yield "| predicted | steps | p50 | p90 | p95 | p99 | prototype p50 / p90 / p95 / p99 |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for name, title in METHODS:
        errors = found[name]
        shares = " | ".join(per_cent(quantile(errors, p)) for p in (0.5, 0.9, 0.95, 0.99))
        before = " / ".join(per_cent(share) for share in PROTOTYPE[name])
        yield f"| {title} | {len(errors):,} | {shares} | {before} |"


def _models(made: Sequence[Line]) -> Iterator[str]:
    yield "| model | sessions | " + " | ".join(f"{title}: p50 | p95 | worst" for _, title in METHODS) + " |"
    yield "|---|---:|" + "---:|" * (3 * len(METHODS))
    for line in made:
        if isinstance(line.found, Fit):
            cells = [
                f"{per_cent(e.p50)} | {per_cent(e.p95)} | {per_cent(e.worst)}"
                if e is not None
                else "- | - | -"
                for e in (line.errors(name) for name, _ in METHODS)
            ]
            yield f"| {line.model} | {line.found.sessions} | " + " | ".join(cells) + " |"


def _worst(made: Sequence[Line]) -> Iterator[str]:
    yield "| model | steps | worst next size | why, as far as the numbers tell |"
    yield "|---|---:|---:|---|"
    for line in made:
        errors = line.errors("next_size")
        if isinstance(line.found, Fit) and errors is not None:
            yield f"| {line.model} | {errors.steps:,} | {per_cent(errors.worst)} | {errors.reason} |"


def _refused(made: Sequence[Line]) -> Iterator[str]:
    yield "| model | steps | why it is not calibrated |"
    yield "|---|---:|---|"
    for line in made:
        if isinstance(line.found, RefusedModel) and line.found.steps >= LEAST:
            yield f"| {line.model} | {line.found.steps:,} | {line.found.why} |"


def _exact(gathered: Gathered) -> Iterator[str]:
    yield "| model | sessions | steps | p50 | p95 | p99 | worst | why |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for model, sessions, e in exact(gathered):
        shares = " | ".join(per_cent(share) for share in (e.p50, e.p95, e.p99, e.worst))
        yield f"| {model} | {sessions} | {e.steps:,} | {shares} | {e.reason} |"


def messages(asked: Iterable[Asked]) -> dict[tuple[str, str], list[Asked]]:
    """Requests by kind and model; those of which a capture holds no more than half are left out."""
    groups: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for one in asked:
        groups[one.kind, one.model].append(one)
    return dict(sorted(groups.items()))


def _messages(asked: Iterable[Asked]) -> Iterator[str]:
    yield "| requests | model | number | off by texts alone: p50 | with the rules: p50 | p95 | exact |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for (kind, model), group in messages(asked).items():
        plain = sorted(abs(one.texts - one.reported) for one in group)
        ruled = sorted(abs(one.expected - one.reported) for one in group)
        hit = sum(off == 0 for off in ruled)
        yield (
            f"| {kind} | {model} | {len(group)} | {quantile(plain, 0.5):.0f} | {quantile(ruled, 0.5):.0f}"
            f" | {quantile(ruled, 0.95):.0f} | {hit} |"
        )


def written(text: str, made: dict[str, str]) -> str:
    """A page with its tables replaced."""
    for name, table in made.items():
        begin = BEGIN.format(name)
        head, found, rest = text.partition(begin)
        assert found, f"the page has no place for the table {name}"
        _, found, tail = rest.partition(END)
        assert found, f"the table {name} does not end"
        text = f"{head}{begin}\n{table}\n{END}{tail}"
    return text


if __name__ == "__main__":
    gathered = gather(Path(sys.argv[1]))
    made = lines(gathered)
    for name, table in tables(gathered, made, whole(gathered, made)).items():
        print(f"{name}\n{table}\n")
