"""From which size on a runtime compacts by itself: its own rule, where it was read in its own source.

`docs/limits.md` has the rules, the versions and files that were read, and how they fare against real
compactions.  A user's settings can move or switch off each of them, and no capture records that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ctxctl.tokens.catalogue.clients import CLAUDE_CODE, numbers
from ctxctl.tokens.catalogue.names import spellings


class Threshold(NamedTuple):
    """Tokens, and one sentence of which rule of which runtime says so."""

    tokens: int
    source: str


class Asked(NamedTuple):
    """What a rule may go by; None is what is not known."""

    window: int | None
    max_output: int | None
    max_input: int | None
    version: str | None
    model: str | None


def threshold(
    runtime: str,
    window: int | None,
    max_output: int | None,
    version: str | None,
    *,
    max_input: int | None = None,
    model: str | None = None,
) -> Threshold | None:
    """The size at which automatic compaction begins; None: no rule was read, or what it goes by is not known.

    Args:
        runtime: Format of the capture.
        window: In force, in tokens: recorded, of the client, or of the table.
        max_output: Most that the model may answer, as the table says.
        version: Of the client, as its capture says.
        max_input: Most input, as recorded or in the table.
        model: As the capture names it.
    """
    rule = _RULES.get(runtime)
    if rule is None:
        return None
    found = rule(Asked(window, max_output, max_input, version, model))
    return found if found is not None and found.tokens > 0 else None


_CLAUDE_BUFFER: Final = 13_000
_CLAUDE_RESERVE: Final = 20_000
_CLAUDE_OUTPUT: Final = 32_000
_CLAUDE_OLD: Final = (
    ("3-5", 8_192),
    ("claude-3-opus", 4_096),
    ("claude-3-sonnet", 8_192),
    ("claude-3-haiku", 4_096),
)
_LARGER_ELSEWHERE: Final = frozenset(("claude-opus-4-6", "claude-sonnet-4-6"))
_MILLION: Final = 1_000_000


def _claude_code(asked: Asked) -> Threshold | None:
    """The line at which Claude Code compacts, where it does not wait until the provider refuses a prompt."""
    version = numbers(asked.version)
    if version is not None and version > (2, 1, 110) and not _ahead(asked):
        return None
    return _claude_line(asked)


def _claude_line(asked: Asked) -> Threshold | None:
    version = numbers(asked.version)
    output = _claude_output(asked)
    if asked.window is None or output is None or version is None or version < (2, 0, 30):
        return None
    if version < (2, 1, 21):
        reserve = min(output, _CLAUDE_OUTPUT)
        rule = "window - min(max output, 32,000) - 13,000, as in 2.0.30 and 2.1.20"
    else:
        reserve = min(output, _CLAUDE_RESERVE)
        rule = "window - min(max output, 20,000) - 13,000, as in 2.1.21 to 2.1.330"
    shown = ".".join(map(str, version))
    tokens = asked.window - reserve - _CLAUDE_BUFFER
    return Threshold(tokens, f"Claude Code {shown}: {rule} (minified source).")


def _claude_output(asked: Asked) -> int | None:
    """The longest answer that Claude Code asks for: of its own table, where only the oldest models have less
    than 32,000; else as given."""
    names = [spelling.name for spelling in spellings(asked.model or "")]
    if any(name.startswith("claude-") for name in names):
        old = next((size for name in names for key, size in _CLAUDE_OLD if key in name), None)
        return old if old is not None else _CLAUDE_OUTPUT
    return asked.max_output


def _ahead(asked: Asked) -> bool:
    """Whether 2.1.330 compacts before it must: only in a window of a million, or in one of 200,000 of a model
    that has a million without a beta header.  Otherwise it waits until the provider refuses a prompt."""
    if asked.window is not None and asked.window >= _MILLION:
        return True
    return not _LARGER_ELSEWHERE.isdisjoint(s.name for s in spellings(asked.model or ""))


_WINDOWS: Final = (200_000, 256_000, 500_000, 1_000_000)
"""Windows in which Claude Code may run a model."""


def compacted_window(
    runtime: str, tokens: int, version: str | None, model: str | None
) -> tuple[int, Threshold] | None:
    """The window whose line fits a size at which Claude Code compacted by itself, and that line."""
    if runtime in CLAUDE_CODE:
        for window in _WINDOWS:
            line = _claude_line(Asked(window, None, None, version, model))
            if line is not None and line.tokens <= tokens < window:
                return window, line
    return None


_CODEX_USED: Final = 95
"""Per cent of a model's window that Codex calls the window."""


def _codex(asked: Asked) -> Threshold | None:
    # What is recorded is the part that is used; the rule goes by the whole.
    version = numbers(asked.version)
    if asked.window is None or version is None or version < (0, 92, 0):
        return None
    whole, rest = divmod(asked.window * 100, _CODEX_USED)
    if rest:
        return None
    return Threshold(
        whole * 9 // 10,
        f"Codex: 90% of the model's window of {whole:,}, of which it uses 95% "
        "(codex-rs/protocol/src/openai_models.rs).",
    )


_GEMINI_WINDOW: Final = 1_048_576


def _gemini(asked: Asked) -> Threshold | None:
    version = numbers(asked.version)
    if version is None or version < (0, 56, 0) or asked.window != _GEMINI_WINDOW:
        return None
    return Threshold(
        _GEMINI_WINDOW // 2,
        "Gemini CLI 0.56 to 0.61: half of the model's limit (packages/core/src/context/"
        "chatCompressionService.ts).",
    )


_OPENCODE_BUFFER: Final = 20_000
_OPENCODE_OUTPUT: Final = 32_000


def _opencode(asked: Asked) -> Threshold | None:
    version = numbers(asked.version)
    if version is None or version < (1, 18, 0) or asked.max_output is None:
        return None
    output = min(asked.max_output, _OPENCODE_OUTPUT) or _OPENCODE_OUTPUT
    if asked.max_input is not None:
        tokens, rule = asked.max_input - min(_OPENCODE_BUFFER, output), "most input - min(20,000, max output)"
    elif asked.window is not None:
        tokens, rule = asked.window - output, "window - min(max output, 32,000)"
    else:
        return None
    return Threshold(
        tokens, f"opencode 1.18.33: {rule}, of prompt and answer together (packages/opencode, session)."
    )


_PI_RESERVE: Final = 16_384


def _pi(asked: Asked) -> Threshold | None:
    if asked.window is None:
        return None
    return Threshold(
        asked.window - _PI_RESERVE,
        "pi 0.73.1: window - 16,384, of prompt and answer together (coding-agent/src/core/compaction/"
        "compaction.ts).",
    )


def _goose(asked: Asked) -> Threshold | None:
    if asked.window is None:
        return None
    return Threshold(
        asked.window * 8 // 10,
        "goose: 80% of the window, of prompt and answer together (crates/goose/src/context_mgmt/mod.rs).",
    )


def _copilot(asked: Asked) -> Threshold | None:
    version = numbers(asked.version)
    size = asked.max_input or asked.window
    if version is None or version < (1, 0, 10) or size is None:
        return None
    return Threshold(
        size * 8 // 10,
        "Copilot CLI 1.0.10: 80% of the longest prompt, in the background (minified source; later versions "
        "cannot be read).",
    )


_RULES: Final[dict[str, Callable[[Asked], Threshold | None]]] = {
    "claude-code": _claude_code,
    "claude-stream-json": _claude_code,
    "claude-sdk-log": _claude_code,
    "codex": _codex,
    "copilot-cli": _copilot,
    "gemini-cli": _gemini,
    "goose": _goose,
    "opencode": _opencode,
    "pi": _pi,
}
