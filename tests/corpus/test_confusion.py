"""Every file of the corpus is taken for what it is: what its folder holds, against what detection says.

`docs/captures.md` has the matrix; under CTXCTL_UPDATE_GOLDENS it is written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from ctxctl.importers.capture import open_capture

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "docs" / "captures.md"
MARKS = ("<!-- confusion -->", "<!-- end of confusion -->")
NONE = "no capture"

KINDS: dict[str, str] = {
    "agentcontext": "agent-context", "aider": "aider", "amplifier": "amplifier", "atif": "atif",
    "claude-code": "claude-code", "claude-stream-json": "claude-stream-json", "cline-roo": "roo",
    "codex": "codex", "copilot-cli": "copilot-cli", "copilot-sdk-events": "copilot-cli", "cursor": "cursor",
    "gemini-cli": "gemini-cli", "inspect-ai": "inspect-ai", "langfuse": "langfuse", "langsmith": "langsmith",
    "mcp-agent-runs": "live-mcp-bench", "mcp-sessions": "mcp-session", "mcp-tools": "mcp-tools",
    "mini-swe-agent": "mini-swe-agent", "opencode": "opencode", "openhands": "openhands", "pi": "pi",
    "pi-rpc": "pi-rpc", "sibyl": "sibyl", "swe-agent": "swe-agent", "tau-bench": "tau-bench",
}  # fmt: skip
"""By the manifest's kind, where its files are of one format."""

SOURCES: dict[str, str] = {
    "api-captures/OpenHands__software-agent-sdk/*": "openhands-completions",
    "api-captures/SWE-agent__SWE-agent/*": "swe-agent-calls",
    "api-captures/badlogic__lemmy/*": "claude-trace",
    "api-captures/cognesy__instructor-php/*": "http-requests",
    "api-captures/github__copilot-sdk/*": "copilot-snapshots",
    "api-captures/langchain-ai__langgraph/*": "vcr",
    "api-captures/langchain-ai__langsmith-pi-extension/*": "pi-recordings",
    "api-captures/pydantic__logfire/*": "claude-sdk-log",
    "api-captures/pydantic__pydantic-ai/*": "vcr",
    "copilot-chat/Piebald-AI__splitrail/*": "copilot-chat",
    "copilot-chat/microsoft__vscode-copilot-chat/*": "copilot-chatreplay",
    "goose/teck968__goose-session-analysis/*": "goose",
    "goose/wolverin0__orchestra-goose/*": "goose-recordings",
    "other-agents/hwisu__opensession/*": "hail",
    "other-agents/jazzyalex__agent-sessions/*": "kimi",
    "otel-genai/Arize-ai__openinference/*": "otel",
    "otel-genai/github__copilot-sdk/*": "otel",
    "otel-genai/open-telemetry__opentelemetry-python-contrib/*": "otel",
    # Real clients: their own log beside the bodies on the wire.
    "clients/*/wire/*": "api",
    "clients/aider/native/*": "aider",
    "clients/claude-code/native/*": "claude-code",
    "clients/codex-websocket/native/*": "codex",
    "clients/copilot-cli/native/*": "copilot-cli",
    "clients/mini-swe-agent/native/*": "mini-swe-agent",
    "clients/opencode/native/*": "opencode",
    "clients/pi/native/*": "pi",
}
"""By path below `data`, where a kind holds several formats."""

APART: dict[str, str] = {
    # A plain list of messages beside the SDK's logs of completions.
    "api-captures/OpenHands__*/nonfncall-llm-message.json": "chat-messages",
    # Sibyl's tests read the log of a Codex session.
    "sibyl/*/codex_dogfood/rollout-*.jsonl": "codex",
    "otel-genai/Arize-ai__openinference/*/openinference_client_span_input_output_only.json": "openinference",
    # Notes, results of tests, lists of calls: nothing that a model was given.
    "*/README.md": NONE,
    "aider/*/chat-history-search-replace-gold.txt": NONE,
    "amplifier/*/3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01/metadata.json": NONE,
    "cline-roo/*/real-conversations/metadata.json": NONE,
    "clients/*/calls.jsonl": NONE,
    "otel-genai/*/v6-spans/capture-results.json": NONE,
    # A pointer of Git LFS in place of the file.
    "inspect-ai/*/test_eval_log/long_log.eval": NONE,
}
"""Files that are of another format than their folder; they are told first."""

NOT_CAPTURES = ("MANIFEST.md", "manifest.jsonl", "models/*")


def expected(name: str, kind: str | None) -> str | None:
    """The format of a file by where it lies; None: nobody has said."""
    for rules in (APART, SOURCES):
        for pattern, form in rules.items():
            if fnmatchcase(name, pattern):
                return form
    return KINDS.get(kind or name.partition("/")[0])


def detected(path: Path) -> str:
    """The format that a file is taken for."""
    with path.open("rb") as file:
        native = b'"event_type"' in file.read(1 << 16)
    with open_capture(path) as capture:
        return capture.format.name if capture.format is not None else "native" if native else NONE


@cache
def found(data: Path) -> tuple[tuple[str, str | None, str], ...]:
    """Name, expected and detected format of every file of the corpus's data."""
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (data / "manifest.jsonl").read_text().splitlines()
    ]
    kinds = {row["file"]: row["kind"] for row in rows}
    names = sorted(path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    assert len(rows) > 900
    assert set(kinds) <= set(names)
    return tuple(
        (name, expected(name, kinds.get(name)), detected(data / name))
        for name in names
        if not any(fnmatchcase(name, pattern) for pattern in NOT_CAPTURES)
    )


def matrix(rows: tuple[tuple[str, str | None, str], ...]) -> list[str]:
    """The lines of the table: what a file is, how many there are, and what they are taken for."""
    counts: Counter[tuple[str, str]] = Counter((str(is_), taken) for _, is_, taken in rows)
    lines = [
        "| what it is | files | detected as that | as another format | as none |",
        "|---|---:|---:|---:|---:|",
    ]
    for form in sorted({is_ for is_, _ in counts}, key=lambda form: (form == NONE, form)):
        row = {taken: count for (is_, taken), count in counts.items() if is_ == form}
        total, right = sum(row.values()), row.get(form, 0)
        none = 0 if form == NONE else row.get(NONE, 0)
        lines.append(f"| {form} | {total} | {right} | {total - right - none} | {none} |")
    right = sum(count for (is_, taken), count in counts.items() if is_ == taken)
    none = sum(count for (is_, taken), count in counts.items() if taken == NONE != is_)
    return [*lines, f"| all | {len(rows)} | {right} | {len(rows) - right - none} | {none} |"]


def test_every_file_is_taken_for_what_it_is(corpus: Path) -> None:
    rows = found(corpus / "data")
    unknown = [name for name, is_, _ in rows if is_ is None]
    assert not unknown, f"no rule says what these are: {unknown[:5]}"
    wrong = [f"{name}: {is_}, taken for {taken}" for name, is_, taken in rows if is_ != taken]
    assert not wrong, "\n".join(wrong[:20])


def test_every_rule_is_of_use(corpus: Path) -> None:
    names = [name for name, _, _ in found(corpus / "data")]
    for rules in (APART, SOURCES):
        assert not [rule for rule in rules if not any(fnmatchcase(name, rule) for name in names)]


def test_the_manual_has_the_matrix(corpus: Path) -> None:
    wanted = "\n".join(matrix(found(corpus / "data")))
    head, mark, rest = MANUAL.read_text(encoding="utf-8").partition(MARKS[0])
    held, end, tail = rest.partition(MARKS[1])
    assert mark
    assert end
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        MANUAL.write_text(f"{head}{mark}\n\n{wanted}\n\n{end}{tail}", encoding="utf-8")
        return
    assert held.strip() == wanted, "docs/captures.md: CTXCTL_UPDATE_GOLDENS=1 writes the matrix anew"
