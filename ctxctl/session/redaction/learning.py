"""Learn what a trace redacts, event by event, and which parts of such texts are secrets by their shape.

`Shingles` are runs of words. They find partial quotes of a text, whatever its spaces, line ends or
punctuation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.listdiff import Run, Work, same_end, same_start, solve
from ctxctl.model.annotations import UNREDACTED
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Item, Redaction
from ctxctl.session.redaction.secrets import LEAST, Secrets

_MAX_WORDS: Final = 4000
"""Most words of versions that are compared. For longer ones, the whole text is the secret."""
_MAX_PAIRS: Final = 1 << 14
"""Most pairs of equal words for which the longest common ranges of two versions are found."""
_WHILE_RECORDING: Final = "ctxctl"
"""Method of masking before writing. What the trace said before is not secret then."""
_MIN_JOINT: Final = 4
"""Fewest characters that two versions must share between two ranges for these to be separate."""
_PIECES: Final = re.compile(r"\s+|[^\s]+")

_SHAPES: Final = re.compile(
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"  # an address
    r"|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"  # an account (IBAN)
    r"|\+?\(?\d[\d ()./-]{6,}\d"  # a card, a telephone, any long number
    r"|[A-Za-z0-9_+/=~-][A-Za-z0-9_+/=.~-]{8,}[A-Za-z0-9_+/=~-]"  # a key, told from a word by its digits
)
_PLAIN_WORDS: Final = re.compile(r"[A-Za-z]+(?:[_./+=~-]+[A-Za-z]+)*\d{0,2}(?:\.[a-z]{1,5})?")
"""Words, paths of words and names as programs spell them."""
_DATE: Final = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d.*|\d\d[-/.]\d\d[-/.]\d{4}.*")
_NAMED: Final = re.compile(
    r"(?i)(?:pass(?:word|phrase|code|wd)?|pwd|secret|token|key|pin|credentials?)[\"'\]]{0,2}\s*(?:=>|:=|=|:|\bis\b)\s*"
    r"[\"']?([^\s\"',;]{6,})"
)
"""What follows a name such as `password`."""
_VOCABULARY: Final = re.compile(r"[a-z]+(?:[_./:-][a-z]+)*")
_ID: Final = re.compile(r"(?:\A|_)(?:id|ids|ref|refs|type|kind|role|name|model|version|digest|hash)\Z|Id\Z")
"""Keys whose values are names, not content."""
_DEPTH: Final = 64


def secrets_by_shape(text: str) -> Iterator[str]:
    """Yield addresses, long numbers and keys in a text, and values named as passwords."""
    for match in _NAMED.finditer(text):
        yield match[1].rstrip(".)]}")
    for match in _SHAPES.finditer(text):
        found = match.group().strip(" .-/")
        is_number_or_address = any(map(str.isdigit, found)) or "@" in found
        if is_number_or_address and not _PLAIN_WORDS.fullmatch(found) and not _DATE.fullmatch(found):
            yield found


def structured_texts(text: str) -> Iterator[str]:
    """Yield the texts in structured content, given as JSON, except names and words of a vocabulary."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _values(value, 0)


def _values(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if not _VOCABULARY.fullmatch(value):
            yield value.strip()
    elif depth < _DEPTH:
        if isinstance(value, dict):
            for key, one in value.items():
                if not (isinstance(one, str) and _ID.search(key)):
                    yield from _values(one, depth + 1)
        elif isinstance(value, list):
            for one in value:
                yield from _values(one, depth + 1)


def json_spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as JSON spells it inside a text."""
    yield secret
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    if plain != secret:
        yield plain
    escaped = json.dumps(secret)[1:-1]
    if escaped not in (secret, plain):
        yield escaped


class SaidText(NamedTuple):
    """The full text of an item."""

    content: Content
    offset: int
    """Byte of the line that had it first."""


class RedactionLearner:
    """What the part of a trace seen so far has redacted.

    Args:
        text: Returns the unmasked text of a content.
    """

    def __init__(self, text: Callable[[Content], str]) -> None:
        self._text = text
        self._said: dict[str, dict[int, SaidText]] = {}
        """Texts of items that are not redacted so far."""
        self._whole: dict[str, list[SaidText]] = {}
        """Texts of redacted items for which no redacted version shows the secret part, by item."""
        self._stands_for: dict[str, str] = {}
        """The item that a redaction replaced, by its replacement."""
        self.redacted: dict[str, int] = {}
        """Redacted items, with the byte of the line that redacted each first."""
        self.whole = Secrets()
        """Redacted ranges, with their items."""
        self.parts = Secrets()
        """Parts of them that are secrets themselves."""
        self.runs = Shingles()
        """Runs of their words."""
        self.hidden: dict[str, str] = {}
        """Digests of hidden texts, with their items."""
        self._since: dict[str, int] = {}
        """Byte of the line that had each part first."""
        self.last = -1
        """Byte of the last line that had redacted content for the first time."""

    def see(self, event: Event) -> bool:
        """Process one event. Return whether anything was learned from it."""
        record = event.record
        if isinstance(record, Redaction):
            if record.redaction_state in UNREDACTED:
                return False
            return self._redact(record.item_id, event.offset, record.replacement)
        if isinstance(record, Item):
            return self._item(event, record)
        learnt = False
        if isinstance(record, Assembly):
            for block in record.blocks:
                if block.content is None or len(block.refs) != 1:
                    continue
                ref = block.refs[0]
                if block.redaction_state is not None or self._whole:
                    learnt = self._learn(ref, block.content) or learnt
                if block.redaction_state is None and self._named(ref, self._said) not in self._said:
                    self._said[ref] = {id(block.content): SaidText(block.content, event.offset)}
        return learnt

    def _item(self, event: Event, record: Item) -> bool:
        name = base_id(record, version_of(record))
        if record.redaction is not None and record.redaction.redaction_method != _WHILE_RECORDING:
            learnt = self._redact(name, event.offset, record.redaction.replacement)
            return (record.content is not None and self._learn(name, record.content)) or learnt
        if record.content is not None:
            if name in self._stands_for:
                return self._learn(self._stands_for[name], record.content)
            said = self._said.setdefault(name, {})
            said.setdefault(id(record.content), SaidText(record.content, event.offset))
        return False

    @staticmethod
    def _named(ref: str, known: Container[str]) -> str:
        return ref if ref in known else ref.rpartition("@")[0]

    def _redact(self, ref: str, offset: int, replacement: str | None) -> bool:
        item = self._named(ref, self._said)
        self.redacted.setdefault(item or ref, offset)
        self.redacted.setdefault(ref, offset)
        said = self._said.pop(item, None)
        if not said:
            return False
        self._whole.setdefault(item, []).extend(said.values())
        for one in said.values():
            text = self._text(one.content)
            self.hidden[one.content.digest] = item
            self._keep(item, one, [text])
        if replacement is not None and replacement != item:
            self._stands_for[replacement] = item
            for one in self._said.pop(replacement, {}).values():
                self._learn(item, one.content)
        return True

    def _learn(self, ref: str, redacted: Content) -> bool:
        """Learn the secret part of an item's earlier texts from a redacted version."""
        item = self._named(ref, self._whole)
        said = self._whole.get(item)
        if said is None:
            return False
        shown = self._text(redacted)
        texts = [self._text(one.content) for one in said]
        if any(text in shown for text in texts):
            return False
        del self._whole[item]
        self.whole.discard([spelt for text in texts for spelt in json_spellings(text.strip())])
        self._forget(texts)
        for one, text in zip(said, texts, strict=True):
            taken = _taken(text, shown)
            if all(len(piece.strip()) >= LEAST for piece in taken):
                self.hidden.pop(one.content.digest, None)
            self._keep(item, one, taken)
        return True

    def _keep(self, item: str, said: SaidText, pieces: Iterable[str]) -> None:
        for piece in pieces:
            secret = piece.strip()
            if len(secret) < LEAST:
                continue
            self.last = max(self.last, said.offset)
            for spelt in json_spellings(secret):
                self.whole.add(spelt, item)
            for part in self._parts(secret, said):
                for spelt in json_spellings(part):
                    if spelt != secret and len(spelt) >= LEAST:
                        self.parts.add(spelt, item)
                        self._since.setdefault(spelt, said.offset)
            self.runs.add(secret, item, said.offset)

    @staticmethod
    def _parts(secret: str, said: SaidText) -> dict[str, None]:
        """Return the parts of a secret that are secrets themselves, in a deterministic order."""
        inner = dict.fromkeys(structured_texts(secret) if said.content.form == "json" else ())
        return dict.fromkeys(
            [
                *inner,
                *secrets_by_shape(secret),
                *(part for value in inner for part in secrets_by_shape(value)),
            ]
        )

    def _forget(self, texts: list[str]) -> None:
        """Forget secrets that were assumed because the whole text was secret."""
        for text in texts:
            self.runs.remove(text)
            self.parts.discard(
                [
                    s
                    for part in {*secrets_by_shape(text), *structured_texts(text)}
                    for s in json_spellings(part)
                ]
            )

    def says_all(self, text: str) -> bool:
        """Return whether a text is completely hidden."""
        from hashlib import sha256

        return sha256(text.encode("utf-8", "replace")).hexdigest() in self.hidden

    def spare(self, event: Event) -> None:
        """Drop secrets that others said before the redacted item, or that are names."""
        record = event.record
        for name in _ids(event):
            self._spare_parts(name, event.offset)
        contents: list[Content | None] = []
        if isinstance(record, Item):
            if base_id(record, version_of(record)) not in self.redacted:
                contents = [record.content]
        elif isinstance(record, Assembly):
            contents = [b.content for b in record.blocks if not any(r in self.redacted for r in b.refs)]
        for content in contents:
            if content is not None and content.digest not in self.hidden:
                text = self._text(content)
                self.runs.spare(text, event.offset)
                self._spare_parts(text, event.offset - 1)

    def _spare_parts(self, text: str, offset: int) -> None:
        held = {one.secret for one in self.parts.held_by(text) if offset <= self._since[one.secret]}
        if held:
            self.parts.discard(held)


def _ids(event: Event) -> list[str]:
    record = event.record
    found = [event.session_id, event.thread_id, event.turn_id, event.step_id, event.event_id]
    if isinstance(record, Item):
        found += [record.item_id, record.source]
    elif isinstance(record, Assembly):
        found += [record.assembly_id, *(block.block_id for block in record.blocks)]
    return [name for name in found if name]


def _taken(text: str, shown: str) -> list[str]:
    """Return the ranges of a text that its redacted version lacks.

    A common space or short word between two ranges does not separate them, because it may be coincidence.
    """
    old, new = _PIECES.findall(text), _PIECES.findall(shown)
    if len(old) > _MAX_WORDS or len(new) > _MAX_WORDS:
        return [text]
    taken: list[tuple[int, int]] = []
    for a, b in _gaps(old, new):
        if taken and len("".join(old[taken[-1][1] : a]).strip()) < _MIN_JOINT:
            taken[-1] = (taken[-1][0], b)
        else:
            taken.append((a, b))
    return ["".join(old[a:b]) for a, b in taken]


def _gaps(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of one list that another one, derived from it, lacks; in bounded work.

    Common ends are skipped. Between them, the longest common ranges are found first, as in `difflib`. That
    work is cubic in repeated words, so with many of them a longest common subsequence is used.
    """
    head = same_start(old, new)
    tail = same_end(old, new, min(len(old), len(new)) - head)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    counts = Counter(b)
    if sum([counts[piece] for piece in a]) <= _MAX_PAIRS:
        from difflib import SequenceMatcher

        stays = [
            (run.a, run.size) for run in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        ]
    else:
        runs: list[Run] = []
        solve(a, b, 0, 0, Work(), runs, 0)
        stays = [*sorted((run.a, run.size) for run in runs), (len(a), 0)]
    at = 0
    for start, size in stays:
        if start > at:
            yield head + at, head + start
        at = max(at, start + size)


RUN: Final = 5
"""Number of words in a shingle."""
_MIN_LETTERS: Final = 16
"""Fewest letters of a shingle's words together."""
_WORD: Final = re.compile(r"\w+")


class CommonRun(NamedTuple):
    """A range of a text that occurs in another one word for word."""

    start: int
    end: int
    name: str
    number: str
    """Its identity: the numbers of its first and last shingle."""


class Shingles:
    """Runs of words, each with its item."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[str, int, int]] = {}
        """Item, first byte and number of each run, by hash."""
        self._added = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, text: str, name: str, since: int) -> None:
        """Add the runs of a text, first said at byte `since`."""
        for shingle, _, _ in _shingles(text):
            if shingle not in self._of:
                self._added += 1
                self._of[shingle] = (name, since, self._added)

    def remove(self, text: str) -> None:
        """Remove the runs of a text."""
        for shingle, _, _ in _shingles(text):
            self._of.pop(shingle, None)

    def spare(self, text: str, at: int) -> None:
        """Remove the runs of a text that others said at byte `at`, before they were said here."""
        for shingle, _, _ in _shingles(text):
            known = self._of.get(shingle)
            if known is not None and at < known[1]:
                del self._of[shingle]

    def runs(self, text: str) -> list[CommonRun]:
        """Return the ranges of a text that consist of known runs, in order and without overlaps."""
        made: list[CommonRun] = []
        if not self._of:
            return made
        for shingle, start, end in _shingles(text):
            known = self._of.get(shingle)
            if known is None:
                continue
            if made and start <= made[-1].end:
                first = made[-1].number.partition("-")[0]
                made[-1] = made[-1]._replace(end=end, number=f"{first}-{known[2]}")
            else:
                made.append(CommonRun(start, end, known[0], str(known[2])))
        return made


def _shingles(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the hashes of all runs of words, with where they begin and end."""
    if len(text) < _MIN_LETTERS:
        return
    words = [(match.group().lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
    for n in range(len(words) - RUN + 1):
        run = words[n : n + RUN]
        joined = " ".join([word[0] for word in run])
        if len(joined) >= _MIN_LETTERS + RUN - 1:
            yield hash(joined), run[0][1], run[-1][2]
