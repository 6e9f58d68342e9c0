"""Reads aider's two files: its chat history, and its log of requests.

The history has what was typed, what the model answered, and what the program printed; with
`--restore-chat-history` aider makes messages of it again, by rules of its own.

The log has `TO LLM` with every message as it was sent, and `LLM RESPONSE` with the answer.  Each line of a
message is preceded by its role in capitals, and a line of dashes ends a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from ctxctl.importers.aider import is_log
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.lines import lines as lines_of
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run, most_work
from ctxctl.model.billed import dollars
from ctxctl.providers.usage import stated_total, usage_record
from ctxctl.trace.source import Source

_MARK: Final = re.compile(r"(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*\Z")
_RULE: Final = "-------"
_SAID: Final = re.compile(r"(SYSTEM|USER|ASSISTANT|TOOL|FUNCTION|DEVELOPER)(?: (.*))?\Z", re.DOTALL)
_KINDS: Final = {
    "SYSTEM": "system_prompt",
    "DEVELOPER": "developer_instruction",
    "USER": "user_message",
    "ASSISTANT": "assistant_message",
    "TOOL": "tool_result",
    "FUNCTION": "tool_result",
}
_ROLES: Final = {"DEVELOPER": "system", "FUNCTION": "tool"}


class RequestLog:
    """One log of requests; all of it is one session, as nothing in it says where another begins."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation = self._run.thread()
        self._parts: list[Part] = []
        self._role: str | None = None
        self._text: list[str] = []
        self._at = 0
        self._mark: str | None = None
        self._mark_at = 0
        self._last: str | None = None
        self._turns = 0

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the log's steps as its lines are read."""
        self._run.opened()
        most = most_work(source)
        for line in lines_of(source, self._run.report):
            self._run.line = line
            text = line.data.decode("utf-8", "replace")
            mark = _MARK.match(text)
            if mark is not None:
                self._section()
                self._mark, self._mark_at = mark.group(1), line.number
                self._run.make.at(mark.group(2))
                yield from self._run.drain()
                if self._run.make.work > most:
                    self._run.windows_too_large(most)
                    break
            else:
                self._line(text)
        self._section()
        yield from self._run.finish()

    def _line(self, text: str) -> None:
        if text.rstrip() == _RULE:
            self._message()
            return
        said = _SAID.match(text)
        if said is None:
            if self._role is not None:
                self._text.append(text)
            return
        if said.group(1) != self._role:
            self._message()
            self._role, self._at = said.group(1), self._run.line.number
        self._text.append(said.group(2) or "")

    def _message(self) -> None:
        if self._role is not None and self._text:
            role = _ROLES.get(self._role, self._role.lower())
            text = "\n".join(self._text)
            self._parts.append(Part(_KINDS[self._role], text, role, line=self._at))
        self._role, self._text = None, []

    def _section(self) -> None:
        """End the request or the answer that the lines so far make."""
        self._message()
        parts, self._parts = self._parts, []
        if self._mark == "TO LLM" and parts:
            asked = next((part.digest for part in reversed(parts) if part.kind == "user_message"), None)
            if asked != self._last:
                self._turns += 1
                self._last = asked
            self._window.turn = f"turn-{self._turns}"
            self._window.replace(parts)
            self._window.request(line=self._mark_at)
        elif self._mark == "LLM RESPONSE":
            self._window.append(*parts)
        self._mark = None


_NAME: Final = "aider"
_HEAD: Final = 1 << 16
_STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_TOKENS: Final = re.compile(r"Tokens: (.+ received)")
_COUNT: Final = re.compile(
    r"(\d{1,3}(?:,\d{3}){0,4}(?:\.\d{1,3})?|\d{1,12})([kM]?) (sent|cache write|cache hit|cached|received)\b"
)
_COUNTED: Final = {
    "sent": "input_tokens", "cache write": "cache_write", "cache hit": "cached", "cached": "cached",
    "received": "output_tokens",
}  # fmt: skip
_COST: Final = re.compile(
    r"(?:Tokens: .{1,200} )?Cost: \$([\d,.]{1,20}) (?:message|request), \$([\d,.]{0,20}\d) session"
)
_EXACT: Final = re.compile(r"(\d{1,3}(?:,\d{3})*|\d+) sent, (\d{1,3}(?:,\d{3})*|\d+) received\Z")
_MODEL: Final = re.compile(r"(?:Main model|Models?): ([^\s,]+)")
_ADDED: Final = re.compile(r"Added (.{1,300}?) to the chat\b")
_REMOVED: Final = re.compile(r"Removed (.{1,300}?) from the chat\b")
_RESTORED: Final = "Restored previous conversation history"
_VERSION: Final = re.compile(r"Aider v(\d+(?:\.\d+){1,3})")
_APPLIED: Final = "Applied edit to "
_COMMITTED: Final = re.compile(r"Commit ([0-9a-f]{6,40}) (.*)\Z", re.DOTALL)
_TOLD: Final = 10
"""Placements that an item counts as which is told again without a byte of its own."""
_MOVED: Final = 64
"""Rows that are moved at the cost of one placement."""
_BLANKS: Final = 100
"""The most empty lines in a row that are kept."""
_EMPTIED: Final = ("/clear", "/reset")
_SENT: Final = ("/ask", "/code", "/architect", "/help", "/context", "/undo")
"""Commands whose text goes to the model, if it answers."""


class History:
    """Reads one chat history; each start of the program is a session."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._sessions: dict[str, int] = {}
        self._past = Restored()
        self._open(None)

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the sessions' steps as their lines are read."""
        self._run.opened()
        last, most = 0, most_work(source)
        for line in lines_of(source, self._run.report):
            for _ in range(min(line.number - last - 1, _BLANKS)):
                self._blank()
            last = line.number
            self._run.line = line
            text = line.data.decode("utf-8", "replace")
            self._line(text)
            self._past.take(text)
            yield from self._run.drain()
            if self._run.make.work > most:
                self._run.windows_too_large(most)
                break
        self._close()
        yield from self._run.finish()

    def _blank(self) -> None:
        """Take an empty line, which is part of an answer if one has begun."""
        if self._answer_lines:
            self._answer_lines.append("")
        self._past.take("")

    def _open(self, started: str | None) -> None:
        name = started
        if started is not None:
            again = self._sessions[started] = self._sessions.get(started, 0) + 1
            name = started if again == 1 else f"{started}~{again}"
            self._run.make.at(started)
        self._run.session = name
        self._window: Conversation = self._run.thread()
        self._model: str | None = None
        self._turns = 0
        self._files: dict[str, None] = {}
        """The paths of the files in the chat, in order."""
        self._before_files = 0
        """How many rows stand before the files: what was said up to the last edit."""
        self._edited = False
        self._commit: tuple[str, str] | None = None
        """The commit of the last answer's edit: its hash and its message."""
        self._prompt_lines: list[str] = []
        self._typing_over = False
        """Whether the program has printed something since the prompt was typed."""
        self._typed_at = 0
        """The number of the last typed line; after a blank line another prompt begins."""
        self._answer_lines: list[str] = []
        self._at = 0
        self._asked_at = 0
        """Line numbers at which the answer, and the prompt, began."""
        self._is_unanswered = False
        """Whether what was typed has not been answered."""
        self._forget_spent()
        self._reported_at = -1
        """The last line of a report of tokens, which may continue on the next line without a mark."""
        self._session_usd: str | None = None
        """The cost of the session so far in US dollars, as printed."""

    def _forget_spent(self) -> None:
        """Reset the turn's sums of printed tokens and costs."""
        self._spent: dict[str, int] = {}
        self._is_rounded = False
        self._usd = Decimal(0)

    def _line(self, text: str) -> None:
        if (started := _STARTED.match(text)) is not None:
            self._close()
            self._window.finish()
            # A session that is over needs no more memory.
            self._run.threads.clear()
            self._open(started.group(1))
        elif text.startswith("####"):
            self._type(text[5:].rstrip() if text.startswith("#### ") else text[4:].rstrip())
        elif text.startswith("> ") or text.rstrip() == ">":
            self._printed(text[2:].rstrip())
        elif text.strip() and self._run.line.number == self._reported_at + 1:
            self._printed(text.rstrip())
        elif text.strip() or self._answer_lines:
            if not self._answer_lines:
                self._at = self._run.line.number
            self._answer_lines.append(text)

    def _type(self, text: str) -> None:
        if self._answer_lines or (self._is_unanswered and not self._prompt_lines):
            self._answer(None)
        number = self._run.line.number
        if self._is_unanswered and (self._typing_over or number > self._typed_at + 1):
            self._drop()
        self._typed_at = number
        if not self._prompt_lines:
            self._asked_at = self._run.line.number
        self._prompt_lines.append(text)
        self._is_unanswered = True
        self._typing_over = False

    def _printed(self, text: str) -> None:
        self._typing_over = True
        tokens = _TOKENS.match(text)
        cost = _COST.match(text)
        if tokens is not None or self._run.line.number == self._reported_at + 1:
            self._reported_at = self._run.line.number
        if tokens is not None:
            self._answer(tokens.group(1))
        if cost is not None:
            self._cost(*(amount.replace(",", "") for amount in cost.groups()))
        if tokens is not None or cost is not None:
            self._tell_spent()
        elif (model := _MODEL.match(text)) is not None:
            self._model = model.group(1)
        elif (added := _ADDED.match(text)) is not None:
            self._add(added.group(1))
        elif (removed := _REMOVED.match(text)) is not None:
            self._remove(removed.group(1))
        elif text.startswith("Dropping all files"):
            self._window.splice(self._before_files, len(self._files), cause="dropped")
            self._files.clear()
        elif (version := _VERSION.match(text)) is not None:
            self._run.make.by(version.group(1))
        elif text.startswith(_RESTORED):
            self._restore()
        elif text.startswith(_APPLIED):
            self._edited = True
        elif self._edited and (commit := _COMMITTED.match(text)) is not None:
            self._commit = self._commit or (commit.group(1), commit.group(2))

    def _count(self, tokens: str) -> None:
        """Add the printed tokens of a message to those of its turn."""
        for number, scale, name in _COUNT.findall(tokens):
            figure = float(number.replace(",", "")) * {"k": 1_000, "M": 1_000_000}.get(scale, 1)
            self._spent[_COUNTED[name]] = self._spent.get(_COUNTED[name], 0) + round(figure)
            self._is_rounded = self._is_rounded or bool(scale)

    def _cost(self, message: str, session: str) -> None:
        self._usd += Decimal(dollars(message) or 0)
        self._session_usd = session

    def _tell_spent(self) -> None:
        """Report the printed totals of the turn and of the session so far."""
        spent: dict[str, Any] = {**self._spent}
        sent, cached = spent.get("input_tokens", 0), spent.get("cached", 0) + spent.get("cache_write", 0)
        turn = stated_total(
            "turn", usd=str(self._usd) if self._usd else None, rounded=self._is_rounded,
            excludes_cache=cached > sent, **spent,
        ) if self._is_rounded or self._usd else None  # fmt: skip
        session = stated_total("session", usd=self._session_usd)
        self._window.stated(turn, session, line=self._run.line.number)

    def _add(self, path: str) -> None:
        """Add a file, which every request carries from now on; its text is not recorded."""
        if path not in self._files:
            last = self._before_files + len(self._files)
            self._move(last)
            self._window.splice(last, 0, [self._file(path)])
            self._files[path] = None

    def _file(self, path: str) -> Part:
        return Part("external_resource", None, "user", source=path, title=path, line=self._run.line.number)

    def _remove(self, path: str) -> None:
        if path in self._files:
            self._move(self._before_files)
            at = list(self._files).index(path)
            self._window.splice(self._before_files + at, 1, cause="dropped")
            del self._files[path]

    def _restore(self) -> None:
        """Begin the chat with the restored messages of the file up to here."""
        parts = self._past.parts(self._run.line.number)
        self._move(0)
        self._run.make.work += _TOLD * len(parts)
        self._window.splice(0, 0, parts)
        self._before_files += len(parts)

    def _move(self, first: int) -> None:
        """Count that rows come or go in front of others, of which `first` is the first one."""
        self._run.make.work += (len(self._window.rows) - first) // _MOVED

    def _settle(self) -> None:
        """After an edit, move what was said before the files, and add what the program says of the edit."""
        if not self._edited:
            return
        told = "I updated the files."
        if self._commit is not None:
            told = "I committed the changes with git hash {} & commit msg: {}".format(*self._commit)
        self._edited, self._commit = False, None
        self._window.append(
            Part("policy_note", told, "user", line=self._run.line.number, derived=True),
            Part("assistant_message", "Ok.", "assistant", line=self._run.line.number, derived=True),
        )
        files = [self._file(path) for path in self._files]
        self._window.splice(self._before_files, len(files))
        self._before_files = len(self._window.rows)
        self._window.splice(self._before_files, 0, files)

    def _drop(self) -> None:
        """Settle a prompt that was not answered: a command, or one that was given up."""
        text = "\n".join(self._prompt_lines).strip()
        command = text.split(maxsplit=1)[0] if text else ""
        if command in _EMPTIED:
            self._edited, self._commit = False, None
            last = self._before_files + len(self._files)
            self._window.splice(last, len(self._window.rows) - last, cause="cleared")
            self._window.splice(0, self._before_files, cause="cleared")
            self._before_files = 0
        elif text and not text.startswith(("/", "!")):
            self._put_typed(text)
        self._prompt_lines = []
        self._is_unanswered = False

    def _put_typed(self, text: str) -> None:
        self._settle()
        self._turns += 1
        self._forget_spent()
        self._window.turn = f"turn-{self._turns}"
        self._window.append(Part("user_message", text, "user", line=self._asked_at))

    def _answer(self, tokens: str | None) -> None:
        """Seal a request with its answer; `tokens` is the line of counts that the program printed."""
        said = "\n".join(self._answer_lines).strip()
        if said or tokens is not None:
            text = "\n".join(self._prompt_lines).strip()
            if text and (not text.startswith(("/", "!")) or text.startswith(_SENT)):
                self._put_typed(text)
            self._settle()
            line = self._at if said else self._run.line.number
            place = self._window.request(line=line, model=self._model, derived=True)
            exact = _EXACT.match(tokens) if tokens is not None else None
            if tokens is not None:
                self._count(tokens)
            native = {"tokens": tokens} if tokens is not None else None
            if exact is not None:
                sent, received = (int(number.replace(",", "")) for number in exact.groups())
                record = usage_record(input_tokens=sent, output_tokens=received, model=self._model)
                if record is not None:
                    # aider prints its own count where the provider gave none, and does not say which it is.
                    record["metadata"] = {"ctxctl": {"derived": True}}
                self._window.usage(record, line=self._run.line.number, place=place)
            if said:
                part = Part("assistant_message", said, "assistant", line=line, native=native)
                self._window.append(part)
            self._prompt_lines = []
            self._is_unanswered = False
        elif self._is_unanswered and tokens is None:
            self._drop()
        self._answer_lines = []

    def _close(self) -> None:
        self._answer(None)
        if self._is_unanswered:
            self._drop()


_VERBATIM: Final = 32 * 1024
"""The most characters that are restored verbatim: a history beyond some 8,000 tokens is summarised for every
model."""


class Restored:
    """The messages of the file so far, split as aider's `split_chat_history_markdown` splits them."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, str]] = []
        self._role = "assistant"
        self._lines: list[str] = []
        self._size = 0

    def take(self, line: str) -> None:
        """Take one line of the file, without its line end."""
        if line.startswith("# "):
            return
        if line.startswith("> "):
            self._close()
            return
        role = "user" if line.startswith("#### ") else "assistant"
        if role != self._role:
            self._close()
            self._role = role
        if self._size <= _VERBATIM:
            text = (line[5:] if role == "user" else line) + "\n"
            self._size += len(text)
            self._lines.append(text)

    def parts(self, line: int) -> list[Part]:
        """The restored messages; for a long file, one part for the summary that stands for them."""
        if self._size > _VERBATIM:
            title = "restored history, summarised"
            return [Part("thread_summary", None, "user", title=title, version="not-recorded", line=line)]
        self._close()
        made = []
        for role, text in self._messages:
            kind = "user_message" if role == "user" else "assistant_message"
            made.append(Part(kind, text, role, line=line))
        return made

    def _close(self) -> None:
        text = "".join(self._lines)
        if text.strip():
            self._messages.append((self._role, text))
        self._lines = []


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: a chat history, or the log of what went to the model."""
    reader = RequestLog if is_log(source.read(0, _HEAD)) else History
    return reader(_NAME, report).events(source)
