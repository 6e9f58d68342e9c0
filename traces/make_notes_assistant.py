"""Writes notes-assistant.jsonl: an assistant inside a notes app, whose editor context changes as one types.

The app follows the append rules described for sanqian: every provider's text has a version, the first one is
sent as it is, a changed one is sent again, an unchanged one is skipped, and one that is no longer attached is
announced by a line `[Context removed: ...]`.  Nothing is ever taken back out of the history.

Run as ``python -m traces.make_notes_assistant``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from traces import notes_texts as texts
from traces.kit import Data, Piece, Scribe, count, sha256, tokens

MODEL = "gpt-4o-mini"
LIMIT = 4096
RESERVED = 512
HIDDEN = 268
"""What the request holds beside the recorded items: the schemas of the app's two tools."""
PER_MESSAGE = 4
APPENDIX, HISTORY = "user_message_appendix", "message_history"
OPEN, CLOSE = "<system_reminder>\n", "\n</system_reminder>"
CACHE_FROM = 1024
CACHE_UNIT = 128
ROLES = {
    "user_message": "user", "assistant_message": "assistant", "tool_call": "assistant", "tool_result": "tool",
}  # fmt: skip

TITLES = {
    "quire:editor-state": "Editor",
    "quire:notes-overview": "Recently changed notes",
    "quire:tasks": "Open tasks",
    "quire:calendar": "Next two weeks",
    "quire:note/n7": "Volunteer list",
    "quire:resource/attendance": "attendance-2025.csv",
    "quire:agent-profile": "Agent",
}


@dataclass
class App:
    """The notes app: what is attached, which version of it the model has, and the history so far."""

    scribe: Scribe
    versions: dict[str, str] = field(default_factory=dict)
    history: list[Piece] = field(default_factory=list)
    waiting: list[tuple[str, str]] = field(default_factory=list)
    """Kind and text of what came back: the next request carries it for the first time."""
    messages: int = 0
    reminders: int = 0
    """Requests that put a reminder behind the user's message; its tags are on no item."""
    last_input: int = 0
    surface: str | None = None

    def message(self, kind: str, text: str) -> Piece:
        """Record a message of the conversation, at the request that carries it for the first time."""
        self.messages += 1
        ref = f"message-{self.messages}"
        self.scribe.item(ref, kind, text)
        return Piece(ref, text, role=ROLES[kind])

    def received(self) -> list[Piece]:
        """Record the replies and tool results that came since the last request."""
        pieces = [self.message(kind, text) for kind, text in self.waiting]
        self.waiting = []
        return pieces

    def attach(self, provider: str, text: str, *, pushed: bool = False) -> Piece | None:
        """Apply the version rule to a provider's text: a piece where it has to be sent, None where not."""
        version = sha256(text)[:16]
        known = self.versions.get(provider)
        self.versions[provider] = version
        if known == version:
            return None
        word = "Context" if known is None else "Context updated"
        ref = f"{provider}@{version}"
        kind = "policy_note" if provider == "quire:agent-profile" else "external_resource"
        native: Data = {"version_source": "computed_sha256_16", "last_version": known}
        self.scribe.item(
            ref, "manual_note" if pushed else kind, text,
            how="added" if known is None else "updated", title=TITLES[provider],
            source_refs=[{
                "schema_version": "0.1.1", "source_id": provider,
                "uri": f"quire://{provider.removeprefix('quire:')}",
                "source_kind": "session_resource" if pushed else "app_context_provider",
                "digest": f"sha256-16:{version}",
            }],
            metadata={"native": native, **({"push": True} if pushed else {})},
        )  # fmt: skip
        return Piece(ref, text, before=f"[{word}: {TITLES[provider]}]\n", role="user")

    def detach(self, provider: str) -> Piece:
        """Forget a provider's version and announce that it is gone."""
        del self.versions[provider]
        self.scribe.remove(provider, "detached")
        text = f"[Context removed: {provider}]"
        ref = self.scribe.number("removed")
        self.scribe.item(ref, "marker", text, title=provider)
        return Piece(ref, text, role="user")

    def select(self, fresh: list[Piece], unchanged: list[str]) -> None:
        """Record what the version rule kept and what it skipped."""
        self.scribe.record(
            "context.selection.completed", "selection",
            {
                "surface_id": self.surface,
                "selected_item_refs": [p.ref for p in fresh],
                "omitted_item_refs": [
                    {"item_ref": f"{name}@{self.versions[name]}", "reason": "duplicate",
                     "metadata": {"native_reason": "unchanged_version"}}
                    for name in unchanged
                ],
            },
        )  # fmt: skip

    def send(self, blocks: list[Piece], point: str, output: int) -> None:
        """One request: budget, assembly, injection, and what was billed for it."""
        before = tokens(self.history)
        self.history.extend(blocks)
        used = before + tokens(blocks)
        scribe = self.scribe
        budget = scribe.record(
            "context.budget.applied", "budget",
            {"target": "model", "max_tokens": LIMIT, "reserved_tokens": RESERVED, "actual_tokens": used,
             "overflow_strategy": "reject"},
        )  # fmt: skip
        assembly = scribe.record(
            "context.assembly.created", "assembly",
            {
                "target": "model",
                "ordered_blocks": [
                    p.block(len(self.history) - len(blocks) + n) for n, p in enumerate(blocks)
                ],
                "separator_policy": "\n\n", "visibility": ["model"], "budget_ref": budget,
                **({"wrapping_policy": {"reminder": f"{OPEN}...{CLOSE}"}} if point == APPENDIX else {}),
                "metadata": {"ctxctl": {"mode": "append", "model": MODEL}},
            },
        )  # fmt: skip
        scribe.inject(assembly, point)
        scribe.wait(1.9 + output / 90)
        billed = used + HIDDEN + PER_MESSAGE * len(self.history) + count(OPEN + CLOSE) * self.reminders
        cached = self.last_input // CACHE_UNIT * CACHE_UNIT if self.last_input >= CACHE_FROM else 0
        scribe.usage(
            model=MODEL, provider="openai", input_tokens=billed, cached_tokens=cached, output_tokens=output
        )
        self.last_input = billed


def turn(app: App, script: texts.Turn) -> None:
    """One prompt of the user and the requests it sets off."""
    scribe = app.scribe
    scribe.turn = scribe.number("turn")
    scribe.step = scribe.number("request")
    scribe.wait(script.pause)
    app.surface = scribe.record(
        "context.surface.created", "surface",
        {"scope": "turn", "surface_kind": "turn_surface", "available_source_refs": list(script.attached),
         "metadata": {"agent": script.agent}},
    )  # fmt: skip
    blocks: list[Piece] = []
    if not app.history:
        scribe.item("system", "system_prompt", texts.SYSTEM, title="Quire assistant")
        blocks.append(Piece("system", texts.SYSTEM, role="system"))
    blocks += app.received()
    blocks.append(app.message("user_message", script.prompt))
    context: list[Piece] = []
    unchanged: list[str] = []
    for name in script.attached:
        text = texts.PROFILES[script.agent] if name == "quire:agent-profile" else script.provided[name]
        if text is None:
            scribe.record(
                "context.missing.detected", "missing",
                {"scope": "turn", "question": f"{name}: no note is open, the provider returned null",
                 "severity": "info", "status": "open", "needed_for": TITLES[name]},
            )  # fmt: skip
            continue
        piece = app.attach(name, text, pushed=name.startswith("quire:resource/"))
        if piece is None:
            unchanged.append(name)
        else:
            context.append(piece)
    app.select(context, unchanged)
    context += [app.detach(name) for name in list(app.versions) if name not in script.attached]
    blocks += context
    app.reminders += bool(context)
    point = APPENDIX if context else HISTORY
    for number, reply in enumerate(script.replies):
        if number:
            scribe.step = scribe.number("request")
            blocks, point = app.received(), HISTORY
        app.send(blocks, point, count(reply.text))
        app.waiting.append((reply.kind, reply.text))
        if reply.result is not None:
            app.waiting.append(("tool_result", reply.result))


def main() -> None:
    """Write the trace."""
    scribe = Scribe("quire/3.4", "notes-2026-03-04", "2026-03-04T16:02:11", "notes")
    app = App(scribe)
    for script in texts.TURNS:
        turn(app, script)
    scribe.write("notes-assistant.jsonl")


if __name__ == "__main__":
    main()
