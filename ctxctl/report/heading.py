"""The resolved parameters that every report names first (`Header`), in plain text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ctxctl.model.whatif import AS_RECORDED, UNEDITED, Edited, Limits
from ctxctl.report.tables import labelled
from ctxctl.text import visible
from ctxctl.wording import given_share, plural, share

_DOUBTS: Final = 3
"""Sentences of what was not understood that a header has."""
_MODELS: Final = 4
"""Models of a calibration that a header names."""


def header_lines(header: Header, width: int, *, mode: str | None = None) -> Iterator[str]:
    """The parameters as labelled lines."""
    facts = [
        ("trace", visible(header.trace)),
        ("format", visible(header.format)),
        ("policy", visible(header.policy)),
        ("model", visible(header.model) if header.model else "as recorded"),
        ("encoding", visible(header.encoding)),
        *_assumed(header),
        ("target", visible(header.target)),
    ]
    if header.calibration is not None:
        facts.append(("sizes", calibration_text(header.calibration)))
    if header.learned is not None:
        facts.append(("learned", learned_text(header.learned)))
    if header.doubts:
        facts.append(("not read", doubts_text(header.doubts)))
    if header.limits.given:
        facts.append(("supposed", supposed_text(header.limits, header.policy, fitting=header.fitting)))
    if header.edited.given:
        facts += edited_facts(header.edited)
    if mode is not None:
        facts.append(("mode", mode))
    if header.thread is not None:
        facts.append(("thread", f"only {visible(header.thread)}"))
    if header.turn is not None:
        facts.append(("turn", f"only {visible(header.turn)}"))
    if header.late:
        facts.insert(1, ("late", late_text(header.late)))
    for label, text in facts:
        yield from labelled(label, text, width)


def doubts_text(doubts: Sequence[str]) -> str:
    """What was not understood of a capture; how much more there is, where that is a lot."""
    more = f"; {len(doubts) - _DOUBTS:,} more, see the problems" if len(doubts) > _DOUBTS else ""
    return visible("; ".join(doubts[:_DOUBTS])) + more


def late_text(events: int) -> str:
    """That events came for steps that were over, and what that means for the steps that are shown."""
    one = events == 1
    return (
        f"{plural(events, 'event')} {'names a step that is' if one else 'name steps that are'} over: "
        f"{'it counts' if one else 'they count'} for a later frame, or {'is' if one else 'are'} left out; "
        "requests may be missing as steps of their own"
    )


def _assumed(header: Header) -> list[tuple[str, str]]:
    """What was assumed about the encoding; nothing to say where it is known or sizes are calibrated."""
    if header.calibration is not None and header.calibration["method"].startswith("calibrated:"):
        return []
    return [] if header.encoding_known else [("assumed", visible(header.assumed))]


def calibration_text(note: dict[str, Any]) -> str:
    """Whose tokens the sizes are, by which calibration, and how far off the next size is expected to be."""
    why = [f"{visible(one['model'])} is not: {visible(one['why'])}" for one in note["refused"][:_MODELS]]
    kind = note["method"].partition(":")[0]
    if kind == "exact":
        return "; ".join([f"counted exactly: {visible(note['how'])}", *why])
    if kind == "estimate":
        return "; ".join([f"estimated: {visible(note['how'])}", *why])
    fitted = note["how"].startswith("fitted ")
    fit = next((one for one in note["models"] if fitted and one["model"] == note["fit"]), None)
    error = "" if fitted else "; its error is not known, and assumed to be several times as large"
    if fit is not None:
        p50, p95 = (given_share(fit[name] / 100) for name in ("error_p50", "error_p95"))
        error = f"; the next size is off by {p50} (p50), {p95} (p95)"
    which = f" (calibration {note['digest'][:8]}, {note['from']})" if note["digest"] else ""
    return "; ".join([f"calibrated: {visible(note['how'])}{which}{error}", *why])


def learned_text(note: dict[str, Any]) -> str:
    """What a log was completed by, and how much of what was billed beside the record it explains."""
    name = f"{visible(note['client'])} {visible(note['version'])}"
    text = f"{name}, {note['items']:,} items, digest {note['digest']}"
    if note["match"] != "exact":
        log = visible(note["log_version"]) if note["log_version"] else "a version that it does not name"
        why = "named" if note["match"] == "named" else "the same minor version"
        text += f" (the log is of {log}; {why})"
    fit = note["fit"]
    if fit is None:
        return f"{text}; derived, and not compared with a bill so far"
    part = share(abs(fit["unexplained"]), fit["sent"], fine=True)
    text += f"; learned items explain {fit['explained']:,} of {fit['unrecorded_without']:,} unrecorded tokens"
    if fit["unexplained"] < 0:
        text += f", {-fit['unexplained']:,} more than were sent ({part} of what was)"
    else:
        text += f"; {fit['unexplained']:,} ({part} of what was sent) stay unexplained"
    return f"{text}; WARNING: more than 2%" if fit["warning"] else text


def edited_facts(edited: Edited) -> Iterator[tuple[str, str]]:
    """What a what-if drops and sets, and what it does not tell."""
    from ctxctl.session.edits import NOT_KNOWN, drops_text, replaced_text  # slow to import, and rarely needed

    if edited.drops:
        yield "dropped", f"{visible(drops_text(edited))}; simulated"
    for one in edited.texts:
        yield "set", f"{visible(replaced_text(one))}; simulated"
    yield "not known", NOT_KNOWN


def supposed_text(limits: Limits, policy: str, *, fitting: bool) -> str:
    """What a what-if supposes, and what it does not tell."""
    named = (("window", limits.window), ("reserve", limits.reserve), ("max input", limits.max_input))
    given = ", ".join(f"{name} {tokens:,}" for name, tokens in named if tokens is not None)
    if fitting:
        return (
            f"{given}; simulated: policy {visible(policy)} decides what fits; "
            "everything else is as recorded, the model's answers included"
        )
    return (
        f"{given}; simulated: frames are those of policy {visible(policy)}, only the limits differ, "
        "and what would have been dropped to fit is not simulated"
    )


def one_line(header: Header) -> str:
    """The parameters of a replay in one line, without the trace's name."""
    encoding = f"encoding {visible(header.encoding)}{how_known(header)}"
    model = [f"model {visible(header.model)}"] if header.model else []
    note = header.learned
    known = [f"learned {visible(note['client'])} {visible(note['version'])}"] if note is not None else []
    known += ["parts of the capture not understood"] * bool(header.doubts)
    return ", ".join(
        [f"policy {visible(header.policy)}", *model, encoding, f"target {visible(header.target)}", *known]
    )


def how_known(header: Header) -> str:
    """What is to be said of the encoding: that counts are calibrated from it, or that it was assumed."""
    if header.calibration is not None and header.calibration["method"].startswith("calibrated:"):
        return " (calibrated)"
    return "" if header.encoding_known else " (assumed)"


def base_name(path: str) -> str:
    """The name under which reports speak of a trace: the same wherever the file lies."""
    return os.path.basename(path) or path


def told_apart(paths: Sequence[str]) -> list[str]:
    """The base names of traces; where different ones share one, as much of their paths as differs."""
    parts = [os.path.normpath(path).split(os.sep) for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = [os.sep.join(part[-length:]) for part in parts]
        if len(set(names)) == len(set(map(tuple, parts))):
            return names
    return list(paths)


class Header(msgspec.Struct, frozen=True):
    """What a report was made from and under; with the trace it determines all that follows."""

    trace: str
    """Base name of the trace as typed; `-` for standard input."""
    format: str
    policy: str
    model: str | None
    """The model that was asked for; None: each step's own."""
    encoding: str
    encoding_known: bool
    assumed: str
    """One sentence on what was assumed about the encoding; empty where it is known."""
    target: str
    version: str
    """Version of ctxctl."""
    thread: str | None = None
    """Only this thread was asked for."""
    turn: str | None = None
    """Only this turn was asked for, as typed."""
    fitting: bool = False
    """The policy says what is left out of a window that is too small."""
    limits: Limits = AS_RECORDED
    """Limits that are supposed in place of the recorded ones."""
    edited: Edited = UNEDITED
    """What is supposed to be gone from the session, or otherwise in it."""
    late: int = 0
    """Events of the trace that came for steps that were over."""
    calibration: dict[str, Any] | None = None
    """The calibration in force: digest, where it is from, and its models with their errors in per cent."""
    doubts: tuple[str, ...] = ()
    """What the importer of a capture did not understand, a sentence each."""
    learned: dict[str, Any] | None = None
    """What a log was completed by: client, version, digest, items, and how well they fit what was billed."""
