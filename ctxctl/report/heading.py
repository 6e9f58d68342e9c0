"""The parameters of a report in plain text."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.model.whatif import Limits
from ctxctl.report.header import Header
from ctxctl.report.tables import labelled
from ctxctl.text import visible


def header_lines(header: Header, width: int, *, mode: str | None = None) -> Iterator[str]:
    """The parameters as labelled lines."""
    facts = [
        ("trace", visible(header.trace)),
        ("format", visible(header.format)),
        ("policy", visible(header.policy)),
        ("model", visible(header.model) if header.model else "as recorded"),
        ("encoding", visible(header.encoding)),
        ("assumed", "nothing" if header.encoding_known else visible(header.assumed)),
        ("target", visible(header.target)),
    ]
    if header.limits.given:
        facts.append(("supposed", supposed(header.limits, header.policy, fitting=header.fitting)))
    if mode is not None:
        facts.append(("mode", mode))
    if header.thread is not None:
        facts.append(("thread", f"only {visible(header.thread)}"))
    if header.turn is not None:
        facts.append(("turn", f"only {visible(header.turn)}"))
    for label, text in facts:
        yield from labelled(label, text, width)


def supposed(limits: Limits, policy: str, *, fitting: bool) -> str:
    """What a what-if supposes, and what it does not tell."""
    named = (("window", limits.window), ("reserve", limits.reserve), ("max input", limits.max_input))
    given = ", ".join(f"{name} {tokens:,}" for name, tokens in named if tokens is not None)
    if fitting:
        return (
            f"{given}; simulated: what fits is as policy {visible(policy)} leaves it, "
            "and all else, the answers of the model too, as recorded"
        )
    return (
        f"{given}; simulated: frames are those of policy {visible(policy)}, only the limits differ, "
        "and what would have been dropped to fit is not simulated"
    )


def one_line(header: Header) -> str:
    """The parameters of a replay in one line, without the trace's name."""
    encoding = f"encoding {visible(header.encoding)}"
    if not header.encoding_known:
        encoding += " (assumed)"
    model = [f"model {visible(header.model)}"] if header.model else []
    return ", ".join(
        [f"policy {visible(header.policy)}", *model, encoding, f"target {visible(header.target)}"]
    )
