"""OpenClaw's trajectories (`<session>.trajectory.jsonl`): the context that each attempt began with."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.importers.pi.parts import PartCutter
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.parts import Part, string
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source


class Trajectory(Run):
    """Reads one file; every context in it is whole."""

    def events(self, source: Source) -> Iterator[Json]:
        """The events of a trajectory: a request for each `context.compiled`."""
        opened: set[str | None] = set()
        for record in self.records(source):
            self.make.at(record.get("ts"))
            self.session = string(record.get("sessionId"))
            if self.session not in opened:
                opened.add(self.session)
                self.opened(session=self.session, cwd=string(record.get("workspaceDir")))
            data = record.get("data")
            if record.get("type") == "context.compiled" and isinstance(data, dict):
                self._context(record, data)
            yield from self.drain()
        yield from self.finish()

    def _context(self, record: Json, data: Json) -> None:
        if data.get("truncated") is True:
            self.problem("unknown-record", "a context too large for OpenClaw to record; skipped")
            return
        window = self.thread()
        window.turn = string(record.get("runId")) or window.turn
        window.replace(self._parts(data))
        window.request(line=self.line.number, model=string(record.get("modelId")), derived=True)

    def _parts(self, data: Json) -> list[Part]:
        """Tools, system prompt, messages and prompt; calls have the ids that they had before."""
        made: list[Part] = []
        tools = data.get("tools")
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict):
                name = string(tool.get("name"))
                key = f"tool:{name}" if name is not None else None
                made.append(Part("tool_definition", canonical(tool), "system", key=key, title=name))
        system = string(data.get("systemPrompt"))
        made += [Part("system_prompt", system, "system", key="system")] if system is not None else []
        cutter, said = PartCutter(), data.get("messages", data.get("historyMessages"))
        for message in said if isinstance(said, list) else []:
            if isinstance(message, dict):
                made += cutter.cut(message, None, self.line.number)
        prompt = string(data.get("prompt"))
        if prompt is not None and not (made and made[-1].role == "user" and made[-1].text == prompt):
            made.append(Part("user_message", prompt, "user"))
        for part in made:
            part.line = self.line.number
        return made
