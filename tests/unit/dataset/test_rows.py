"""Laws that the rows of every fixture hold, and what the commands say of the same captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.analysis.handed_on import compactions
from ctxctl.dataset.rows.capture import CaptureRows
from ctxctl.dataset.schema import TABLES, table
from ctxctl.model.results import Step
from ctxctl.session.facade import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.unit.dataset.kit import captures, named, rows_of

_IDS = [f"{path.rpartition('fixtures/')[2]}" for path, _ in captures()]


@pytest.fixture(params=captures(), ids=_IDS, scope="module")
def capture(request: pytest.FixtureRequest) -> tuple[str, str, CaptureRows]:
    path, format_name = request.param
    rows = rows_of(path, format_name)
    if rows is None:
        pytest.skip("it cannot be read")
    return path, format_name, rows


@pytest.fixture(scope="module")
def opened(capture: tuple[str, str, CaptureRows]) -> Iterator[Inspector]:
    path, format_name, _ = capture
    with Inspector.open(path, format=format_name, calibration="none", learned="none") as inspector:
        yield inspector


def test_rows_are_what_the_schema_says(capture: tuple[str, str, CaptureRows]) -> None:
    kinds: dict[str, Any] = {
        "string": str, "bool": bool, "int32": int, "int64": int, "uint64": int, "double": float,
        "timestamp": int, "binary": bytes, "labels": list, "tokens by name": list,
    }  # fmt: skip
    for one in TABLES[1:]:
        seen = set()
        for row in named(capture[2], one.name):
            for column in one.columns:
                value = row[column.name]
                assert value is not None or column.null, (one.name, column.name)
                assert value is None or isinstance(value, kinds[column.type]), (one.name, column.name, value)
            key = tuple(row[name] for name in one.order)
            assert key not in seen
            seen.add(key)


def test_windows_are_the_sums_of_their_stays(capture: tuple[str, str, CaptureRows]) -> None:
    rows = capture[2]
    steps = named(rows, "steps")
    stays = named(rows, "stays")
    by_thread: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for stay in stays:
        by_thread[stay["session"], stay["thread"]].append(stay)
    requests: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for step in steps:
        requests[step["session"], step["thread"]].append(step)
    for key, of_thread in requests.items():
        own = by_thread[key]
        assert sum(s["token_steps"] or 0 for s in own) == sum(r["recorded"] for r in of_thread)
        assert sum(s["stale_token_steps"] or 0 for s in own) == sum(r["stale"] for r in of_thread)
        if len({r["model"] for r in of_thread}) > 1:
            continue  # another model counts otherwise
        ordinals = {r["ordinal"]: n for n, r in enumerate(of_thread)}
        for request in of_thread:
            alive = [s for s in own if s["first"] <= request["ordinal"] <= s["last"]]
            assert sum(s["tokens"] or 0 for s in alive) == request["recorded"]
            assert sum(s["tokens"] is None for s in alive) == request["uncounted"]
        for stay in own:
            assert stay["requests"] == ordinals[stay["last"]] - ordinals[stay["first"]] + 1
            assert (stay["left"] is None) == (stay["last"] == of_thread[-1]["ordinal"])
        assert sum(r["new"] - r["freed"] for r in of_thread) == of_thread[-1]["recorded"]


def test_what_stays_cost_is_what_requests_with_all_recorded_cost(
    capture: tuple[str, str, CaptureRows],
) -> None:
    rows = capture[2]
    shares = 0.0
    for step in named(rows, "steps"):
        if step["input_usd"] is not None and step["sent"]:
            shares += step["input_usd"] * step["recorded"] / step["sent"]  # type: ignore[operator]
    assert sum(s["usd"] or 0.0 for s in named(rows, "stays")) == pytest.approx(shares, rel=1e-5, abs=1e-9)  # type: ignore[misc]


def test_sums_are_those_of_cost(capture: tuple[str, str, CaptureRows], opened: Inspector) -> None:
    costs = Costs(RateBook())
    for _ in step_costs(opened, costs):
        pass
    steps, sessions, misses = (named(capture[2], name) for name in ("steps", "sessions", "misses"))
    assert len(steps) == costs.steps == sum(s["requests"] for s in sessions)  # type: ignore[misc]
    assert sum(s["sent"] for s in steps) == sum(s["sent"] for s in sessions)  # type: ignore[misc]
    usd = sum(s["usd"] or 0.0 for s in steps)  # type: ignore[misc]
    assert usd == pytest.approx(float(costs.partial_outputs.money.total))
    assert usd == pytest.approx(sum(s["usd"] or 0.0 for s in sessions))  # type: ignore[misc]
    assert sum(s["billed"] for s in sessions) == costs.steps - costs.unreported  # type: ignore[misc]
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in misses:
        found[row["kind"], row["cause"]].append(row)
    told = {cause: (one.number, one.tokens) for cause, one in costs.misses.found.items()}
    assert {c: (len(r), sum(x["tokens"] for x in r)) for (k, c), r in found.items() if k == "miss"} == told
    breaks = [row for row in misses if row["kind"] == "break"]
    assert sum(row["usd"] is not None for row in breaks) == costs.breaks
    assert sum(row["usd"] or 0.0 for row in breaks) == pytest.approx(float(costs.broken))  # type: ignore[misc]
    assert sum(s["breaks"] or 0 for s in sessions) == len(breaks)  # type: ignore[misc]


def test_compactions_are_those_of_the_command(
    capture: tuple[str, str, CaptureRows], opened: Inspector
) -> None:
    told = compactions(opened)
    rows = named(capture[2], "compactions")
    assert [(r["items"], r["tokens"], r["summary"]) for r in rows] == [
        (one.taken.items, one.taken.tokens, one.summary_tokens if one.summary else None) for one in told
    ]
    assert sum(s["compactions"] for s in named(capture[2], "sessions")) == len(told)  # type: ignore[misc]
    for row in rows:
        assert sum(tokens for _, tokens in row["by_kind"]) == row["tokens"]  # type: ignore[attr-defined]


def test_nothing_is_made_up_where_a_capture_says_nothing(
    capture: tuple[str, str, CaptureRows], opened: Inspector
) -> None:
    found = [one for one in opened.replay() if isinstance(one, Step)]
    steps = named(capture[2], "steps")
    for step, row in zip(found, steps, strict=True):
        usage, cache = step.usage, step.cache
        assert row["output"] == (None if usage is None else usage.reported_output)
        assert row["read"] == cache.reported_cached
        assert row["written"] == cache.reported_cache_write
        assert (row["time"] is None) == (step.time is None)
        assert row["limit"] == step.window.limit
        assert row["prefix"] == cache.possible_prefix
        if usage is None or usage.reported_input is None:
            assert row["usd"] is None
            assert row["request"] is None
    for session in named(capture[2], "sessions"):
        own = [row for row in steps if row["session"] == session["session"]]
        for name in ("read", "written", "output"):
            said = [row[name] for row in own if row[name] is not None]
            assert session[name] == (sum(said) if said else None)  # type: ignore[arg-type]
        assert (session["over"] is None) == all(row["over"] is None for row in own)


def test_each_text_of_a_window_is_in_contents_once(capture: tuple[str, str, CaptureRows]) -> None:
    held = [row["content"] for row in named(capture[2], "contents")]
    assert len(held) == len(set(held))
    assert {row["content"] for row in named(capture[2], "stays")} - {None} == set(held)
    assert all(row["text"] is None for row in named(capture[2], "contents"))


def test_every_table_has_rows_in_some_fixture() -> None:
    wanted = {one.name for one in TABLES[1:]}
    seen: set[str] = set()
    for path, format_name in captures():
        rows = rows_of(path, format_name)
        seen |= {name for name, found in (rows.rows if rows else {}).items() if found}
        if seen >= wanted:
            break
    assert seen == wanted
    assert table("steps").columns[0].name == "session"
