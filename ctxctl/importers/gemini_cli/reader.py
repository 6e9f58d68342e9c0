"""Reads the files of Gemini CLI: chats, saved histories, recorded replies and printed output.

A chat is one document or JSON lines.  Recorded replies (`*.responses`) hold what the model said without what
it was asked; printed output is that of `gemini --output-format stream-json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.gemini_cli import is_lines, layout_score
from ctxctl.importers.gemini_cli.parts import PartCutter, bill, is_billed, is_blob, pieces
from ctxctl.importers.gemini_cli.printed import PrintedStream
from ctxctl.ingest.build import Block, Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import WHOLE_FILE, Line, Report
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source


class Chat:
    """Makes steps of the messages of one chat, in order, each when it is whole."""

    def __init__(self, run: Run, *, kind: str | None = None) -> None:
        self._run = run
        origin = {"agent_type": "subagent"} if kind == "subagent" else None
        self._window = run.thread(origin=origin)
        self._cutter = PartCutter()
        self._messages: list[tuple[str | None, int]] = []
        """The messages in the window, by id, and how many rows each has."""
        self._first: dict[str, int] = {}
        """By id, the first of these messages."""
        self._rows = RowsOfItems(self._window.rows)
        self._waiting = False
        """Whether the last answer had no calls yet."""
        self._results: set[str] = set()
        """The versions of the results that were kept with the last answers' calls."""
        self._known_calls: set[str] = set()
        """The ids of calls in the window, and `id/result` of those with results."""

    def message(self, message: Json) -> None:
        """Take one message; what the CLI told the person (`info`, `error`, `warning`) is passed over."""
        self._run.make.at(message.get("timestamp"))
        kind = message.get("type")
        if kind == "user":
            self._waiting = False
            native, parts = string(message.get("id")), self._asked(message)
            if any(part.kind == "user_message" for part in parts) and not _answers_calls(message):
                self._window.turn = native or self._window.turn
            self._enter(native, parts)
        elif kind == "gemini":
            self._answer(message)
        elif is_sent(message):
            native = string(message.get("id"))
            self._enter(native, self._cutter.user(message.get("content"), native))

    def again(self, message: Json) -> None:
        """Take the new calls and results of a message that was taken already."""
        parts = self._called(message)
        if parts:
            self._enter(None, parts)

    def rewind(self, native: str) -> bool:
        """Take out a message and all that follow it; return whether it was there."""
        at = self._first.get(native)
        if at is None:
            return False
        gone = 0
        while len(self._messages) > at:
            one, rows = self._messages.pop()
            gone += rows
            if one is not None and self._first[one] == len(self._messages):
                del self._first[one]
        self._rows.cut(len(self._window) - gone)
        self._window.splice(len(self._window) - gone, gone, cause="branched")
        self._waiting = False
        return True

    def restart(self, messages: list[Any]) -> None:
        """Replace the history by another one, none of whose answers is a new request.

        The CLI does so when it compressed the history, when it masked results, and when it took an
        unanswered prompt back.
        """
        before = [native for native, _ in self._messages]
        self._messages.clear()
        self._first.clear()
        self._rows.cut(0)
        self._cutter = PartCutter()
        self._known_calls.clear()
        self._waiting = False
        made: list[Part] = []
        for message in messages:
            if not isinstance(message, dict):
                continue
            native, parts = string(message.get("id")), self._sent_parts(message)
            if parts:
                self._add(native, len(parts))
                made += parts
        for part in made:
            part.line = self._run.line.number
        after = [native for native, _ in self._messages]
        summary = next((part for part in made if part.kind == "thread_summary"), None)
        if summary is not None and summary.item not in {row[0].item for row in self._window.rows}:
            marks = {"ctxctl": {"derived": True}}
            asked = self._window.unbilled()
            line = self._run.line.number
            self._window.compact(made, summary=summary, line=line, metadata=marks, request=asked)
            return
        taken_back = len(after) < len(before) and before[: len(after)] == after
        self._window.replace(made, cause="branched" if taken_back else "unrecorded")

    def _sent_parts(self, message: Json) -> list[Part]:
        """The parts of a message that are sent."""
        if message.get("type") == "user":
            return self._asked(message)
        if message.get("type") == "gemini":
            return self._parts(message)
        content = message.get("content")
        return self._cutter.user(content, string(message.get("id"))) if is_sent(message) else []

    def _asked(self, message: Json) -> list[Part]:
        """The parts of a user's message; of one that answers calls, those that were not kept with the calls
        already."""
        native, content = string(message.get("id")), message.get("content")
        if not _answers_calls(message):
            return self._cutter.user(content, native)
        made: list[Part] = []
        beside: list[Json] = []
        for piece in pieces(content):
            response = piece.get("functionResponse")
            if not isinstance(response, dict):
                beside.append(piece)
            elif self._is_new(response.get("id"), "/result"):
                made += self._cutter.result(response.get("id"), response.get("name"), [piece])
                self._is_new(response.get("id"), "/answered")
            elif self._is_new(response.get("id"), "/answered"):
                self._set_result(self._cutter.told(piece))
            else:
                # A chat that is taken up again has the results of a message's calls twice, and sends both.
                made += self._cutter.result(response.get("id"), response.get("name"), [piece])
        return made + [part for part in self._cutter.user(beside, native) if part.mark not in self._results]

    def _set_result(self, part: Part) -> None:
        """Set a result to what was sent, where that is another text than was kept with the call."""
        at = self._rows.last(part.item)
        if at is not None and self._window.rows[at][0].ref != part.block().ref:
            part.line = self._run.line.number
            self._window.put(at, part)

    def _answer(self, message: Json) -> None:
        calls = message.get("toolCalls")
        if not self._goes_on(message) and not _is_made_up(message):
            model = string(message.get("model"))
            line = self._run.line.number
            self._window.request(string(message.get("id")), line=line, model=model, derived=True)
            self._window.usage(bill(message.get("tokens"), model), line=line)
        self._waiting = not calls
        self._enter(string(message.get("id")), self._parts(message))

    def _goes_on(self, message: Json) -> bool:
        """Whether a message holds no answer of its own, but the calls of the one before.

        The CLI begins a new message for calls where something else was recorded after the answer.
        """
        empty = not message.get("content") and not message.get("thoughts")
        return (
            empty
            and self._waiting
            and bool(message.get("toolCalls"))
            and not is_billed(message.get("tokens"))
        )

    def _parts(self, message: Json) -> list[Part]:
        """The parts of a model's message: its text, its calls, and the results that are kept with them."""
        found = message.get("toolCalls")
        called = {
            value
            for call in (found if isinstance(found, list) else [])
            if isinstance(call, dict)
            for value in (call.get("id"), call.get("name"))
            if isinstance(value, str)
        }
        said: list[Json] = []
        for piece in pieces(message.get("content")):
            call = piece.get("functionCall")
            native = (call.get("id") or call.get("name")) if isinstance(call, dict) else None
            if native is None or (native not in called if isinstance(native, str) else True):
                said.append(piece)
                if isinstance(call, dict):
                    self._is_new(call.get("id"))
        return self._cutter.model(said, string(message.get("id"))) + self._called(message)

    def _called(self, message: Json) -> list[Part]:
        """The calls of a message, then their results, without those that were told before."""
        found = message.get("toolCalls")
        calls = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
        made: list[Part] = []
        for call in calls:
            if self._is_new(call.get("id")):
                made.append(self._cutter.call(call.get("id"), call.get("name"), call.get("args")))
        for call in calls:
            result = call.get("result")
            if result is not None and self._is_new(call.get("id"), "/result"):
                failed = call.get("status") in ("error", "cancelled")
                results = self._cutter.result(call.get("id"), call.get("name"), result, failed=failed)
                if not made:
                    self._results.clear()
                self._results.update(part.mark for part in results)
                made += results
        return made

    def _is_new(self, native: object, what: str = "") -> bool:
        if not isinstance(native, str):
            return True
        known = f"{native}{what}" in self._known_calls
        self._known_calls.add(f"{native}{what}")
        return not known

    def _enter(self, native: str | None, parts: list[Part]) -> None:
        for part in parts:
            part.line = self._run.line.number
        self._window.append(*parts)
        self._add(native, len(parts))

    def _add(self, native: str | None, rows: int) -> None:
        if native is not None:
            self._first.setdefault(native, len(self._messages))
        self._messages.append((native, rows))


class RowsOfItems:
    """Where the items of a window stand that grows at its end and is cut there.

    Rows are looked at when they are asked for, each once as long as they stand.
    """

    def __init__(self, rows: list[tuple[Block, str]]) -> None:
        self._rows = rows
        self._items: list[str] = []
        """The items of the rows that were looked at."""
        self._places: dict[str, list[int]] = {}

    def last(self, item: str) -> int | None:
        """The last row of an item."""
        rows = self._rows
        self.cut(len(rows))
        for at in range(len(self._items), len(rows)):
            one = rows[at][0].item
            self._items.append(one)
            self._places.setdefault(one, []).append(at)
        places = self._places.get(item)
        return places[-1] if places and rows[places[-1]][0].item == item else None

    def cut(self, length: int) -> None:
        """Forget the rows from one on."""
        while len(self._items) > max(0, length):
            self._places[self._items.pop()].pop()


def is_sent(message: Json) -> bool:
    """Whether a notice holds files that came with a tool's result, which the CLI keeps as one."""
    content = message.get("content")
    return message.get("type") == "info" and isinstance(content, list) and any(map(is_blob, pieces(content)))


def _answers_calls(message: Json) -> bool:
    """Whether a user's message is the CLI's, with what tools gave back (newer versions record it)."""
    return any(isinstance(piece.get("functionResponse"), dict) for piece in pieces(message.get("content")))


def _is_made_up(message: Json) -> bool:
    """Whether the CLI put words into the model's mouth: nobody was asked."""
    return (
        isinstance(message.get("content"), list)
        and string(message.get("model")) is None
        and not message.get("toolCalls")
        and not is_billed(message.get("tokens"))
    )


_NAME: Final = "gemini-cli"
_HEAD: Final = 64 * 1024
_GREETING: Final = "Got it. Thanks for the context!"
"""What the CLI has the model answer to the set-up, without a request."""


def read_document(name: str, source: Source, report: Report) -> Iterator[Json]:
    """Read a document: a chat, or a saved history."""
    run = Run(name, report)
    run.line = WHOLE_FILE
    value = document(source, run.report)
    history = value
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, list):
            yield from _chat(run, value, messages)
            return
        history = value.get("clientHistory", value.get("history"))
    _saved(run, history if isinstance(history, list) else [])
    yield from run.finish()


def _chat(run: Run, head: Json, messages: list[Any]) -> Iterator[Json]:
    chat = _begin(run, head)
    seen: set[str] = set()
    for message in messages:
        if not isinstance(message, dict):
            run.problem("not-a-record", "a message that is not a JSON object; skipped")
            continue
        native = string(message.get("id"))
        if native is None or native not in seen:
            chat.message(message)
        if native is not None:
            seen.add(native)
        yield from run.drain()
    yield from run.finish()


def _begin(run: Run, head: Json) -> Chat:
    run.session = string(head.get("sessionId"))
    run.make.at(head.get("startTime"))
    run.opened(session=run.session, kind=string(head.get("kind")))
    return Chat(run, kind=string(head.get("kind")))


def _saved(run: Run, history: list[Any]) -> None:
    """Take a saved history as it would be sent again: each answer in it is one request's."""
    window, cutter = run.thread(), PartCutter()
    turns = 0
    for content in history:
        if not isinstance(content, dict):
            run.problem("not-a-record", "a content that is not a JSON object; skipped")
            continue
        parts = content.get("parts")
        if content.get("role") == "model":
            made = cutter.model(parts, None)
            if not _is_greeting(made):
                window.request(line=1, derived=True)
        else:
            made = cutter.user(parts, None)
            if any(part.kind == "user_message" for part in made):
                turns += 1
                window.turn = f"turn-{turns}"
        window.append(*made)


def _is_greeting(made: list[Part]) -> bool:
    return len(made) == 1 and made[0].text is not None and made[0].text.startswith(_GREETING)


class LineReader(Run):
    """Reads JSON lines: a chat of newer versions, recorded replies, or what was printed."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._chat: Chat | None = None
        self._held: tuple[Json, Line] | None = None
        """The last message, which may come again with more in it, with its line."""
        self._done: set[str] = set()
        self._replies: RecordedReplies | None = None
        self._printed: PrintedStream | None = None

    def events(self, source: Source) -> Iterator[Json]:
        """The events of the file."""
        for record in self.records(source):
            if isinstance(record.get("method"), str) and "response" in record:
                self._replies = self._replies or RecordedReplies(self)
                self._replies.take(record)
            elif isinstance(record.get("type"), str) and "id" not in record:
                self._printed = self._printed or PrintedStream(self)
                self._printed.take(record)
            else:
                self._recorded(record)
            yield from self.drain()
        self._release()
        if self._printed is not None:
            self._printed.finish()
        yield from self.finish()

    def _recorded(self, record: Json) -> None:
        """Take a line of a chat: its head, a message (again, if it changed), a change of the head, a
        rewind."""
        if isinstance(record.get("type"), str):
            self._message(record)
        elif isinstance(record.get("$rewindTo"), str):
            self._release()
            if not self._sent_parts().rewind(record["$rewindTo"]):
                self.problem("missing-parent", "a rewind to a message that is not there; skipped")
            self._done.discard(record["$rewindTo"])
        elif isinstance(record.get("$set"), dict):
            messages = record["$set"].get("messages")
            if isinstance(messages, list):
                self._release()
                self._sent_parts().restart(messages)
                found = (one.get("id") for one in messages if isinstance(one, dict))
                self._done.update(native for native in found if isinstance(native, str))
        elif "sessionId" in record and self._chat is None:
            self._chat = _begin(self, record)
            for message in record["messages"] if isinstance(record.get("messages"), list) else []:
                if isinstance(message, dict):
                    self._message(message)

    def _message(self, record: Json) -> None:
        native = string(record.get("id"))
        if record.get("type") not in ("user", "gemini") and not is_sent(record):
            return
        if native in self._done:
            self._sent_parts().again(record)
            return
        if self._held is not None and self._held[0].get("id") != native:
            self._release()
        self._held = record, self.line

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        message, line = held
        native = string(message.get("id"))
        if native is not None:
            self._done.add(native)
        here, self.line = self.line, line
        self._sent_parts().message(message)
        self.line = here

    def _sent_parts(self) -> Chat:
        if self._chat is None:
            self._chat = Chat(self)
        return self._chat


_ASKED: Final = ("generateContent", "generateContentStream")


class RecordedReplies:
    """Reads a line for each call: of its request, only the bill and the answer are known."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._window = run.thread()

    def take(self, record: Json) -> None:
        """Take one call and its reply, whole or as it was streamed."""
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
    return [*thoughts, *PartCutter().model(made, None)]


def _pieces(chunk: Json) -> list[Json]:
    candidates = chunk.get("candidates")
    first: Any = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _bill(chunks: list[Json], model: str | None) -> Json | None:
    """The last bill of a stream; each one is of the whole request so far."""
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


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: one document, or lines."""
    head = source.read(0, _HEAD)
    if layout_score(head) and not is_lines(head):
        return read_document(_NAME, source, report)
    return LineReader(_NAME, report).events(source)
