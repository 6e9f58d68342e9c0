"""Recorded replies (`*.responses`): what the model said, without what it was asked."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.gemini_cli.contents import Cutter
from ctxctl.formats.kit.parts import Part, count, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.kit.usage import usage_record

_ASKED: Final = ("generateContent", "generateContentStream")


class Replies:
    """A line for each call: one request, of which nothing is known but the bill and the answer."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._window = run.thread()

    def take(self, record: Json) -> None:
        """One call and its reply, whole or as it was streamed."""
        if record["method"] not in _ASKED:
            return
        response = record["response"]
        chunks = [
            one for one in (response if isinstance(response, list) else [response]) if isinstance(one, dict)
        ]
        line = self._run.line.number
        model = next((name for one in chunks if (name := string(one.get("modelVersion"))) is not None), None)
        # What it was asked is not known: the answers are told of, but no request is said to carry them.
        self._window.splice(0, len(self._window))
        self._window.request(line=line, model=model, derived=True)
        self._window.usage(_bill(chunks, model), line=line)
        parts = _answer(chunks)
        for part in parts:
            part.line = line
        self._window.append(*parts)


def _answer(chunks: list[Json]) -> list[Part]:
    """The parts of an answer; texts that follow each other are one."""
    made: list[Json] = []
    for chunk in chunks:
        for piece in _pieces(chunk):
            text = piece.get("text")
            before = made[-1] if made else {}
            same = piece.get("thought") is before.get("thought")
            if isinstance(text, str) and isinstance(before.get("text"), str) and same:
                before["text"] += text
            else:
                made.append(dict(piece))
    thoughts = [
        Part("reasoning", one["text"], "assistant")
        for one in made
        if one.get("thought") is True and isinstance(one.get("text"), str)
    ]
    return [*thoughts, *Cutter().model(made, None)]


def _pieces(chunk: Json) -> list[Json]:
    candidates = chunk.get("candidates")
    first: Any = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _bill(chunks: list[Json], model: str | None) -> Json | None:
    """The last bill of a stream: each one is of the whole request so far."""
    for chunk in reversed(chunks):
        usage = chunk.get("usageMetadata")
        if isinstance(usage, dict) and count(usage.get("promptTokenCount")) is not None:
            thoughts = count(usage.get("thoughtsTokenCount"))
            said = count(usage.get("candidatesTokenCount"))
            return usage_record(
                input_tokens=usage["promptTokenCount"] + (count(usage.get("toolUsePromptTokenCount")) or 0),
                output_tokens=None if said is None and thoughts is None else (said or 0) + (thoughts or 0),
                cached=usage.get("cachedContentTokenCount"),
                reasoning=thoughts,
                provider="google",
                model=model,
                native=usage,
            )
    return None
