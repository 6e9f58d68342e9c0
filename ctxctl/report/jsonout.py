"""The ``--json`` contract, version 2 (``docs/json.md``): one object a line, keys in the documented order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.model.money import Money, Rates, Tokens
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Placement, StageView, Step, Summary, Turn, UsageView
from ctxctl.model.terms import Stated
from ctxctl.model.vocab import SEGMENTS
from ctxctl.model.whatif import UNEDITED, Edited, Limits, Replaced
from ctxctl.report.fidelity import measured
from ctxctl.text import json_safe

if TYPE_CHECKING:
    from ctxctl.report.heading import Header

VERSION: Final = 2
WINDOW: Final = (
    "limit", "limit_source", "reserved", "cap", "used", "used_method", "used_error", "recorded", "unrecorded",
    "free", "over", "uncounted", "by_method", "counted", "limit_note", "threshold", "threshold_source",
)  # fmt: skip
"""Keys of a step's window, in order."""
_ENCODER: Final = msgspec.json.Encoder()
_WINDOW: Final = attrgetter(*WINDOW)
_USAGE: Final = tuple(
    name for name in UsageView.__struct_fields__ if name not in ("terms", "reported_reasoning")
)
_USED: Final = attrgetter(*_USAGE)
_CHANGE: Final = tuple(name for name in Change.__struct_fields__ if name not in ("line", "unsized"))
_CHANGED: Final = attrgetter(*_CHANGE)
_ChangeLine: Final = msgspec.defstruct("_ChangeLine", _CHANGE, gc=False)
"""A change as it is printed: its trace line is not part of the contract.  Written faster than a dict."""


def line(obj: Mapping[str, Any]) -> bytes:
    """One line of output with its line end; UTF-8, and safe to print on a terminal or in a CI log."""
    try:
        data = _ENCODER.encode(obj)
    except (UnicodeError, OverflowError, TypeError, msgspec.MsgspecError):  # lone surrogates, huge integers
        import json

        data = json.dumps(obj, separators=(",", ":"), default=_plain).encode()
    return json_safe(data) + b"\n"


def _plain(value: object) -> Any:
    return msgspec.structs.asdict(value) if isinstance(value, _ChangeLine) else str(value)


def trace(header: Header) -> dict[str, Any]:
    """The first line: what was replayed, and under which parameters."""
    return {
        "type": "trace",
        "version": VERSION,
        "ctxctl": header.version,
        "trace": header.trace,
        "format": header.format,
        "policy": header.policy,
        "model": header.model,
        "encoding": header.encoding,
        "encoding_known": header.encoding_known,
        "assumed": header.assumed or None,
        "target": header.target,
        "thread": header.thread,
        "turn": header.turn,
        "supposed": supposed(header.limits, header.edited),
        "calibration": header.calibration,
        **({"learned": header.learned} if header.learned is not None else {}),
        **({"doubts": header.doubts} if header.doubts else {}),
        **({"late_events": header.late} if header.late else {}),
    }


def supposed(limits: Limits, edited: Edited = UNEDITED) -> dict[str, Any] | None:
    """What a what-if supposes; null where limits and contents are the recorded ones."""
    if not (limits.given or edited.given):
        return None
    return {
        "window": limits.window,
        "reserve": limits.reserve,
        "max_input": limits.max_input,
        "provenance": "simulated",
        "drop": [{"selector": one.selector, "items": one.items} for one in edited.drops],
        "dropped_calls": edited.calls,
        "dropped_summaries": edited.summaries,
        "set": [_replaced(one) for one in edited.texts],
    }


def _replaced(one: Replaced) -> dict[str, Any]:
    return {
        "item": one.item,
        "version": one.version,
        "versions": one.versions,
        "name": one.name,
        "bytes": one.size,
        "sha256": one.sha256,
    }


def changes(values: Iterable[Change], *, skipped: bool) -> list[msgspec.Struct]:
    """Changes in their own order, the skipped ones only if asked for."""
    return [
        _ChangeLine(*_CHANGED(c)) if c.tokens or not c.unsized else _without_size(c)
        for c in values
        if skipped or c.status != "skipped"
    ]


def _without_size(change: Change) -> msgspec.Struct:
    """A change of an item of which nobody knows the size: what it adds is 0, and `tokens` is null."""
    made = _ChangeLine(*_CHANGED(change))
    made.tokens = None  # type: ignore[attr-defined]
    return made


def stage(view: StageView) -> dict[str, Any]:
    """The verdict, then the facts."""
    return {"verdict": view.verdict, **view.facts}


def segments(values: Mapping[str, int]) -> dict[str, int]:
    """Tokens by window segment in the provider's order, unknown segments last by name."""
    names = [s for s in SEGMENTS if s in values] + sorted(set(values).difference(SEGMENTS))
    return {name: values[name] for name in names}


def usage(value: UsageView | None) -> dict[str, Any] | None:
    """The bill; `terms` only where it was not served as usual, or something is billed apart, and what the
    runtime says that it cost only where it does."""
    if value is None:
        return None
    fields = dict(zip(_USAGE, _USED(value), strict=True))
    terms = {name: held for name, held in msgspec.structs.asdict(value.terms).items() if held}
    stated: dict[str, Any] = {
        name: terms.pop(name) for name in ("stated_usd", "stated_total_usd") if name in terms
    }
    reasoned = value.reported_reasoning
    return {
        **fields,
        **({"reported_reasoning": reasoned} if reasoned is not None else {}),
        **({"terms": terms} if terms else {}),
        **stated,
    }


def total_object(total: Stated) -> dict[str, Any]:
    """A stated total; null for figures that it lacks."""
    return {**msgspec.structs.asdict(total), "by_model": [total_object(one) for one in total.by_model]}


def step(value: Step, *, skipped: bool = False) -> dict[str, Any]:
    """One step."""
    window = dict(zip(WINDOW, _WINDOW(value.window), strict=True))
    window["by_method"] = dict(sorted(value.window.by_method.items()))
    return {
        "type": "step",
        "session": value.session,
        "thread": value.thread,
        "turn": value.turn,
        "step": value.step,
        "turn_id": value.turn_id,
        "step_id": value.step_id,
        "time": value.time,
        "target": value.target,
        "model": value.model,
        "mode": value.mode,
        "basis": value.basis,
        "layer": value.layer,
        "window": window,
        "ledger": value.ledger,
        "counts": value.counts,
        "changes": changes(value.changes, skipped=skipped),
        "stages": {name: stage(view) for name, view in value.stages.items()},
        "cache": value.cache,
        "usage": usage(value.usage),
        "flags": value.flags,
        "segments": segments(value.segments),
        "mode_declared": value.mode_declared,
        "ids": value.annotations.ids,
        "missing": value.annotations.missing,
        "compactions": value.annotations.compactions,
        "redactions": value.annotations.redactions,
        "envelopes": value.annotations.envelopes,
        "cut": value.cut,
        **({"stated": [total_object(one) for one in value.stated]} if value.stated else {}),
    }


def turn(value: Turn, *, skipped: bool = False) -> dict[str, Any]:
    """One turn, after its last step."""
    return {
        "type": "turn",
        "session": value.session,
        "thread": value.thread,
        "turn": value.turn,
        "turn_id": value.turn_id,
        "target": value.target,
        "steps": value.steps,
        "ledger": value.ledger,
        "counts": value.counts,
        "changes": changes(value.changes, skipped=skipped),
        "flags": value.flags,
        "title": value.title,
    }


def problem(value: Problem, *, source: str | None = None) -> dict[str, Any]:
    """One problem; `source` where a command reads several inputs."""
    fields: dict[str, Any] = {
        "type": "problem",
        "slug": value.slug,
        "line": value.line,
        "byte": value.byte,
        "message": value.message,
    }
    if source is not None:
        fields["source"] = source
    return fields


def summary(value: Summary) -> dict[str, Any]:
    """The last line of a replay."""
    fields = msgspec.structs.asdict(value)
    fields["by_method"] = dict(sorted(value.by_method.items()))
    fields["fidelity"] = measured(value.fidelity)
    if not value.reweighed:
        del fields["reweighed"]
    return {"type": "summary", **fields}


def placement(value: Placement, position: int) -> dict[str, Any]:
    """One copy of an item in a frame; `position` is 0-based, in the order of the frame."""
    return {
        "position": position,
        "item": value.item,
        "version": value.version,
        "kind": value.kind,
        "title": value.title,
        "source": value.source,
        "segment": value.segment,
        "role": value.role,
        "tokens": value.tokens,
        "method": value.method,
        "digest": value.digest,
        "state": "stale" if value.stale else "current",
        "truncated": value.truncated,
        "carried": value.carried,
        "provenance": "simulated" if value.simulated else "derived" if value.derived else "native",
        "redaction": value.redaction,
    }


_ALWAYS: Final = ("input", "cached", "written", "output", "written_1h")
"""Parts of a bill that JSON has even where there is nothing of them."""


def exact(amount: Decimal | None) -> str | None:
    """All digits, for JSON; None where nobody knows."""
    if amount is None:
        return None
    return f"{amount.normalize():f}" if amount or amount.is_signed() else "0"


def money_object(money: Money | None) -> dict[str, str | None] | None:
    """By part, and in all; the parts that few bills have only where there is something of them."""
    if money is None:
        return None
    named = zip(Money._fields, money, strict=True)
    parts = {name: exact(amount) for name, amount in named if amount or name in _ALWAYS}
    return {**parts, "total": exact(money.total)}


def tokens_object(tokens: Tokens | None) -> dict[str, int] | None:
    """Tokens by part, and in all; the parts that few bills have only where there is something of them."""
    if tokens is None:
        return None
    named = zip(Tokens._fields, tokens, strict=True)
    return {name: count for name, count in named if count or name in _ALWAYS}


def rates_object(rates: Rates) -> dict[str, str | None]:
    """US dollars for a million tokens; the rates that few models have only where they are known."""
    always = Rates._fields[:5]
    return {name: exact(r) for name, r in rates._asdict().items() if r is not None or name in always}


def listed(prices: Any, always: int) -> dict[str, Any]:
    """Prices of the table; the first `always` fields even where they are not known."""
    fields = prices._asdict()
    return {name: p for at, (name, p) in enumerate(fields.items()) if p is not None or at < always}
