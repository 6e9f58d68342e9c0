"""Replaces secrets in what is about to be written by stubs that keep kind, length and identity.

A stub reads `[redacted github-token, 40 chars, #3f9a1c20d4e5]`.  The digest is keyed (`rules.user_key`): one
secret has one stub, so that differences stay visible, and nobody without the key can try secrets against it.
Texts are read in three ways: as they stand, with their escapes read (`%2F`, `&#45;`, JSON in JSON), and what
they carry as base64.  A text that holds nothing suspicious takes two searches, and any text time linear in its
length.
"""

# ruff: noqa: E501 - patterns stand in one piece

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from ctxctl import linear
from ctxctl.linear import re2
from ctxctl.record import spellings
from ctxctl.record.placeholders import STUB, begins_text, is_left, is_word
from ctxctl.record.rules import FIELDS, HEADERS, RULES, SUFFIXES, Rule, rules_of, user_key
from ctxctl.record.secret_names import flag_of, folded, header_name, hides, is_schema, named_beside

_DIGEST: Final = 6
_HALF: Final = 256
"""Bytes at the end of a text in which half a key is looked for."""
_LEAD: Final = r"(?:\b|\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\[[0-9;:]{0,16}[mK])"
"""What stands in front of a key: in JSON or a URL inside of a text, the end of an escape."""
_LED: Final = re.compile(r"\A((?:\(\?i\))?)\\b")
_BODY: Final = re.compile(r"\[[^\]]*\]\{")
_GROUP: Final = re.compile(r"\(\?:|[()?\\]|\[[^\]]*\]")
_CAPITALS: Final = re.compile(r"[A-Z][A-Za-z|]{3,}|.*[A-Z]{4}.*")
_SEAM: Final = 160
"""Bytes behind a seam in which a key that begins before it shows that it is one."""
_COMMON_HEADS: Final = frozenset(
    ("mailgun-key", "launchdarkly-key", "authress-key", "elevenlabs-key", "harness-key", "cloudflare-key")
)
_TELLING: Final = 8
"""Characters of half a key without a mark between them that tell it from a name."""
_PARTS: Final = re2.compile(rb"[-_.=~]")
_DEPTH: Final = 3
"""Levels of base64 in base64 that are looked through."""
_MEMORY: Final = 32 << 20
_SOFT_BREAK: Final = re2.compile(rb"=(?:\r?\n|(?:\\+r)?\\+n)")
"""How a line of quoted-printable goes on in the next one, as it stands and in JSON."""
_A_STUB: Final = re2.compile(rb"\[redacted ([a-z0-9-]{1,40}), (\d{1,9}) chars, #[0-9a-f]{12}\]")


class FoundSecrets:
    """Counts the secrets that were replaced in one record."""

    __slots__ = ("bytes", "count", "counted", "kinds")

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.bytes = 0
        self.count = 0
        """The number of secrets."""
        self.counted = 0
        """How many of them the recorder has counted already."""

    def add(self, kind: str, size: int) -> None:
        """Count a secret of `size` bytes."""
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.bytes += size
        self.count += 1

    def record(self) -> dict[str, Any]:
        """Return the counts as they stand in `metadata.ctxctl.redacted`."""
        return {"secrets": self.count, "bytes": self.bytes, "kinds": dict(sorted(self.kinds.items()))}


class SecretRedactor:
    """Finds secrets by form and by name.

    Args:
        key: The key of the digests.
        more: The user's own rules, tried first.
        names: Further names of fields whose values are never stored.
    """

    def __init__(self, key: bytes, more: Iterable[Rule] = (), names: Iterable[str] = ()) -> None:
        self._key = key[:64]
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        more = tuple(more)
        self._rules = [_Compiled(rule, options) for rule in (*more, *RULES)]
        self._options = options
        self._without_literals = {n for n, rule in enumerate(self._rules) if not rule.literals}
        self._never = HEADERS | {folded(name) for name in names}
        rules = (*more, *RULES)
        literals = sorted({literal for rule in rules for literal in rule.literals} - _COMMON)
        hints = [hint.replace(r"\b", _LEAD, 1) for hint in _HINTS]
        self._any = linear.any_of(
            literals, hints, [rule.pattern for rule in rules if not rule.literals], options
        )
        ends = "|".join("[-_. ]?".join(name) for name in SUFFIXES)
        tail = r"(?:s|[-_. ]?confirm(?:ation)?)?[-_. ]?[0-9]{0,3}[ :*]{0,2}"
        named = (
            f'{_name_pattern(self._never | FIELDS)}|(?i:(?:{ends}){tail}"(?::["[{{]|,"))'
            r'|(?i:(?:passw(?:or)?d|passphrase|passcode|pwd)[0-9]{0,3}":[0-9])'
        )
        self._named = linear.finder(re2.compile(named.encode(), options))
        self._spelled = linear.finder(
            re2.compile(f"{spellings.ESCAPED}|{spellings.BASE64}".encode(), options)
        )
        self._escaped = linear.finder(re2.compile(spellings.ESCAPED.encode(), options))

    def suspicious(self, data: bytes) -> bool:
        """Whether a text may hold a secret; most texts hold nothing that begins like one."""
        return (
            self._any(data) or self._spells(data) or (b"\0" in data and self._any(data.replace(b"\0", b"")))
        )

    def worth_a_look(self, raw: bytes) -> bool:
        """Whether JSON may hold a secret, by a text or by a field's name."""
        return self._any(raw) or self._named(raw) or self._spells(raw)

    def _spells(self, data: bytes, depth: int = 0) -> bool:
        """Whether there are escapes to read in a text, or base64 that carries what may be a secret."""
        if not self._spelled(data):
            return False
        return self._escaped(data) or any(
            self._any(one.data)
            or (depth < _DEPTH and _is_text(one.data) and self._spells(one.data, depth + 1))
            or any(self._any(text) for _, _, text, _ in spellings.packed_texts(one.data))
            for one in spellings.carried(data)
        )

    def text(self, text: str, found: FoundSecrets) -> str:
        """Return the text with stubs for its secrets; if there are any, lone surrogates become U+FFFD."""
        data = text.encode("utf-8", "replace")
        if not self.suspicious(data):
            return text
        made = self.data(data, found)
        return text if made is data else made.decode("utf-8", "replace")

    def _rules_for(self, data: bytes) -> list[_Compiled]:
        """The rules of which a text holds a literal, in their order."""
        if not self._any(data):
            return []
        literals, rule_of = self._literals
        held = {rule_of[n] for n in literals.held(data)}
        return [self._rules[n] for n in sorted(held | self._without_literals)]

    @cached_property
    def _literals(self) -> tuple[linear.Literals, list[int]]:
        """All literals, and the rule of each."""
        found = [(literal, n) for n, rule in enumerate(self._rules) for literal in rule.literals]
        return linear.Literals([literal for literal, _ in found], self._options), [n for _, n in found]

    def data(self, data: bytes, found: FoundSecrets) -> bytes:
        """Return UTF-8 with stubs for its secrets; the same object if there are none."""
        return self._data(data, found, depth=0)

    def _data(self, data: bytes, found: FoundSecrets, depth: int) -> bytes:
        if (
            b"=" in data and _SOFT_BREAK.search(data) is not None
        ):  # what such a line cuts in two is no half for a rule
            data = self._without_escaped(data, found)
        for rule in self._rules_for(data):
            stubs = [(*at, self.stub(rule.kind, data[slice(*at)], found)) for at in _spans(rule, data)]
            data = _with_stubs(data, stubs) if stubs else data
        if self._spelled(data):
            if self._escaped(data):
                data = self._without_escaped(data, found)
            data = self._without_carried(data, found, depth)
        if b"\0" in data:
            data = self._without_wide(data, found)
        return data if depth else self._without_half(data, found)

    def _without_wide(self, data: bytes, found: FoundSecrets) -> bytes:
        """Replace what is a secret once the NULs of UTF-16 that was read as something else are left out."""
        text = data.replace(b"\0", b"")
        spans = self._apart(text)
        if not spans:
            return data
        places = [at for at, sign in enumerate(data) if sign]
        stubs = [
            (places[start], places[end - 1] + 1, self.stub(kind, text[start:end], found))
            for start, end, kind in spans
        ]
        return _with_stubs(data, stubs)

    def _without_half(self, data: bytes, found: FoundSecrets) -> bytes:
        """Replace a key of a known form that a text ends within, where enough of it is there to tell."""
        end = data[-_HALF:]
        for match in self._half.finditer(end):
            if is_word(match[2]) or not _is_random(match[2]):
                continue
            stub = self.stub(self._kind_of(match[1]), match[1], found).encode()
            before = len(data) - len(end)
            return data[: before + match.start(1)] + stub + end[match.end(1) :]
        return data

    @cached_property
    def _half(self) -> Any:
        """Half a key at the end of a text, which may say by dots that it was cut."""
        heads = "|".join(rule.head for rule in self._rules if rule.head)
        return re2.compile(
            rf"{_LEAD}((?:{heads})([A-Za-z0-9_.=~-]{{8,}}?))(?:…|\.\.\.)?\s*\z".encode(), self._options
        )

    def _kind_of(self, half: bytes) -> str:
        return next(rule.kind for rule in self._rules if rule.head and rule.begins(half))

    def across(self, before: bytes, head: bytes) -> tuple[int, int, str] | None:
        """Where a secret begins in a text and ends in the next one, and its kind; None where none does.

        Args:
            before: The end of a text.
            head: The beginning of the next one.
        """
        if not self._any(before + head[:_SEAM]):
            return None
        both, seam = before + head, len(before)
        for rule in self._rules_for(both):
            for match in rule.pattern.finditer(both) if rule.is_form else ():
                start, end = match.span(1)
                if start >= seam:
                    break
                if end <= seam or STUB in match[1] or (rule.weak and is_left(rule.weak, match[1])):
                    continue
                # A key that was whole by itself, and behind it the first word of another text.
                whole = rule.pattern.search(before[start:])
                if (
                    whole is None or not begins_text(head[: end - seam].strip(b"-_."))
                ) and not self._begins_in(head, end - seam):
                    return start, end - seam, rule.kind
        return None

    def _begins_in(self, head: bytes, size: int) -> bool:
        """Whether a secret of a text itself begins in its first bytes and goes on behind them."""
        return any(
            match.start(1) < size <= match.end(1)
            for rule in self._rules_for(head)
            for match in (rule.pattern.finditer(head) if rule.is_form else ())
        )

    def _without_escaped(self, data: bytes, found: FoundSecrets) -> bytes:
        """Replace what is a secret when the escapes of a text are read, once or as often as there are some.

        A further reading may read too much: `PASSWORD=2F…` is no escape of quoted-printable.
        """
        text, readings = data, list[spellings.Reading]()
        found_at: list[tuple[int, int, str, bytes]] = []
        while len(readings) < spellings.ROUNDS and self._escaped(text):
            readings.append(spellings.Reading(text))
            text = readings[-1].text
            for start, end, kind in self._apart(text):
                secret = text[start:end]
                for reading in reversed(readings):
                    start, end = reading.span(start, end)
                found_at.append((start, end, kind, secret))
        stubs: list[tuple[int, int, str]] = []
        for start, end, kind, secret in sorted(found_at, key=lambda one: (one[0], -one[1])):
            if not stubs or start >= stubs[-1][1]:
                stubs.append((start, end, self.stub(kind, secret, found)))
        return _with_stubs(data, stubs) if stubs else data

    def _without_carried(self, data: bytes, found: FoundSecrets, depth: int) -> bytes:
        """Replace the secrets in what a text carries as base64: a text gets stubs, other data blanks."""
        stubs: list[tuple[int, int, bytes]] = []
        for start, end, inner, again in spellings.carried(data):
            if stubs and start < stubs[-1][1]:
                continue
            if not _is_text(inner):
                made = self._blanked(inner, found)
            else:
                made = self._data(inner, found, depth + 1) if depth < _DEPTH else inner
            if made is not inner:
                # What holds more than was unpacked cannot be packed again.
                stub = (
                    self.stub("packed-data", data[start:end], FoundSecrets()).encode()
                    if again is None
                    else again(made)
                )
                stubs.append((start, end, stub))
        return _with_stubs(data, stubs) if stubs else data

    def _blanked(self, data: bytes, found: FoundSecrets) -> bytes:
        """Return data that is no text, an image for one, with blanks in the place of its secrets."""
        texts: dict[int, bytes] = {}
        for first, _, text, whole in spellings.packed_texts(data):
            blanked = bytearray(text)
            for start, end, kind in self._apart(text):
                found.add(kind, end - start)
                blanked[start:end] = b"*" * (end - start)
            if blanked != text:
                texts[first] = bytes(blanked) if whole else b"*"
        if texts:
            data = spellings.with_texts(data, texts)
        elif not self._any(data):
            return data
        made = bytearray(data)
        for first, last in spellings.texts_of(data):
            for start, end, kind in self._apart(data[first:last]):
                found.add(kind, end - start)
                made[first + start : first + end] = b"*" * (end - start)
        return spellings.with_checksums(bytes(made)) if made != data or texts else data

    def _apart(self, data: bytes) -> list[tuple[int, int, str]]:
        """Secrets in a text, in order and without overlaps, each with its kind."""
        rules = self._rules_for(data)
        spans = [(*at, n, rule.kind) for n, rule in enumerate(rules) for at in _spans(rule, data)]
        taken: list[tuple[int, int, str]] = []
        for start, end, _, kind in sorted(spans, key=lambda one: (one[0], one[2])):
            if not taken or start >= taken[-1][1]:
                taken.append((start, end, kind))
        return taken

    def stub(self, kind: str, secret: bytes, found: FoundSecrets) -> str:
        """Return the stub for a secret, and count the secret."""
        found.add(kind, len(secret))
        digest = blake2b(secret, key=self._key, digest_size=_DIGEST).hexdigest()
        return f"[redacted {kind}, {len(secret.decode('utf-8', 'replace'))} chars, #{digest}]"

    def value(self, value: Any, raw: bytes, found: FoundSecrets) -> Any:
        """Return a JSON value with stubs for its secrets; the same object if there are none.

        `raw`: the value, encoded.
        """
        if not self.worth_a_look(raw):
            return value
        return self._walk(value, found, depth=0)

    def _walk(self, value: Any, found: FoundSecrets, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value, found)
        if depth > 300:
            return "[redacted nest, too deep to be looked through]"
        if isinstance(value, dict):
            return {self.text(k, found): self._field(k, v, value, found, depth) for k, v in value.items()}
        if isinstance(value, list):
            return self._list(value, found, depth)
        return value

    def _list(self, value: list[Any], found: FoundSecrets, depth: int) -> list[Any]:
        """Return a list: a pair of a name and its value, the arguments of a command, or anything."""
        if len(value) == 2 and isinstance(value[0], str):
            name = folded(value[0])
            if name in self._never or hides(name, value[1]):
                return [value[0], self._leaves(value[1], "header", found)]
        made, flag = [], ""
        for one in value:
            secret = bool(flag) and isinstance(one, str) and hides(flag, one)
            made.append(self._leaves(one, "secret", found) if secret else self._walk(one, found, depth + 1))
            flag = flag_of(one)
        return made

    def _field(self, name: str, value: Any, holder: dict[str, Any], found: FoundSecrets, depth: int) -> Any:
        """Return a field's value: replaced under some names, and under others if it is a text."""
        key = header_name(name)
        if key in self._never and not is_schema(value):
            return self._leaves(value, "header", found)
        if hides(key, value) and not (key == "token" and "logprob" in holder):  # a model's tokens are words
            return self._leaves(value, "secret", found)
        if isinstance(value, list) and any(isinstance(one, str) and hides(key, one) for one in value):
            return [
                self._leaves(one, "secret", found) if hides(key, one) else self._walk(one, found, depth + 1)
                for one in value
            ]
        beside = named_beside(name, holder)
        if beside:  # how HAR, OpenTelemetry and others write headers and variables
            named, held = header_name(beside), _inner(value)
            if named in self._never or hides(named, held):
                return self._leaves(value, "header", found)
        elif isinstance(value, dict) and not is_schema(value) and hides(key, _inner(value)):
            return self._leaves(value, "secret", found)
        return self._walk(value, found, depth + 1)

    def _leaves(self, value: Any, kind: str, found: FoundSecrets) -> Any:
        if isinstance(value, str):
            data = value.encode("utf-8", "replace")
            return value if not value or data.startswith(STUB) else self.stub(kind, data, found)
        if isinstance(value, dict):
            return {name: self._leaves(inner, kind, found) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._leaves(inner, kind, found) for inner in value]
        if isinstance(value, bool) or value is None:
            return value
        return self.stub(kind, str(value).encode(), found)


def redactor_of(redact: bool | str | os.PathLike[str]) -> SecretRedactor | None:
    """The redactor that a recorder's `redact` asks for, with this user's key; None where it is False.

    Raises:
        UsageError: `bad-redaction-rules`, where `redact` is a path.
    """
    if redact is False:
        return None
    rules, names = ([], []) if redact is True else rules_of(os.fspath(redact))
    return SecretRedactor(user_key(), rules, names)


class _Compiled:
    """A rule whose pattern is compiled when a text first needs it."""

    def __init__(self, rule: Rule, options: Any) -> None:
        self.kind = rule.kind
        self.literals = tuple(literal.lower().encode() for literal in rule.literals)
        self.weak = rule.weak
        self.is_form = rule.pattern.removeprefix(r"\b").startswith("(") and not rule.pattern.startswith("(?")
        """Whether it finds a secret by its form alone, and takes all of it."""
        self.head = _head_of(rule)
        """A pattern of what a key of this form begins with, where that tells it from a name; else nothing."""
        self._source = _LED.sub(lambda found: f"{found[1]}{_LEAD}", rule.pattern)
        self._options = options

    def begins(self, half: bytes) -> bool:
        """Whether half a key begins as those of this rule do."""
        return re2.compile(self.head.encode(), self._options).match(half) is not None

    @cached_property
    def pattern(self) -> Any:
        """The compiled pattern; raises ValueError if it is invalid or has not exactly one group."""
        try:
            made = re2.compile(self._source.encode(), self._options)
        except re2.error as error:
            raise ValueError(f"the rule {self.kind} is not a pattern of RE2: {error}") from None
        if made.groups != 1:
            raise ValueError(f"the rule {self.kind} has {made.groups} groups instead of one")
        return made


def _spans(rule: _Compiled, data: bytes) -> Iterator[tuple[int, int]]:
    """Where a rule finds secrets that are no stubs."""
    last = 0
    for match in rule.pattern.finditer(data):
        start, end = match.span(1)
        if start < last or end <= start:
            continue
        secret = data[start:end]
        if STUB[:-1] in secret:
            yield from _between_stubs(rule, data, match.start(), end)
            last = end
            continue
        if data[max(0, start - len(STUB)) : start].endswith(STUB):
            continue
        if rule.weak and is_left(rule.weak, secret):
            continue
        yield start, end
        last = end


def _between_stubs(rule: _Compiled, data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where a rule finds secrets in a stretch that also holds what was replaced before, as in a list of them."""
    stretch, at = data[start:end], 0
    for stub in (*_A_STUB.finditer(stretch), None):
        piece = stretch[at : len(stretch) if stub is None else stub.start()]
        if STUB[:-1] not in piece:
            yield from ((start + at + first, start + at + last) for first, last in _spans(rule, piece))
        at = len(stretch) if stub is None else stub.end()


def _with_stubs(data: bytes, stubs: Iterable[tuple[int, int, str | bytes]]) -> bytes:
    """Return a text with others in the place of some of its stretches, which come in order."""
    pieces: list[bytes] = []
    last = 0
    for start, end, stub in stubs:
        pieces += data[last:start], stub.encode() if isinstance(stub, str) else stub
        last = end
    return b"".join([*pieces, data[last:]])


def _is_random(half: bytes) -> bool:
    """Whether half a key looks as if it was drawn, and not like a name."""
    longest = max(map(len, _PARTS.split(half)))
    mixed = not half.islower() and not half.isupper() and any(48 <= sign < 58 for sign in half)
    return longest >= _TELLING if not mixed else longest >= _TELLING - 2


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable() or b"\0" not in data
    except UnicodeDecodeError:
        return False


def _head_of(rule: Rule) -> str:
    """What stands before the random part of a rule's pattern."""
    if rule.weak or not rule.pattern.startswith(r"\b(") or rule.kind in _COMMON_HEADS:
        return ""
    head = _BODY.split(rule.pattern[3:], maxsplit=1)[0]
    plain = _GROUP.sub("", head)
    tells = (len(plain) > 3 and plain[-1:] in "_-.~") or _CAPITALS.fullmatch(plain) is not None
    return head if tells and head.count("(") == head.count(")") else ""


_COMMON: Final = frozenset(("gl", "do", "SK", "fig", "pat", "key", "token", "pass", "pwd", "EZ", "shp",
".", "=", "-us", "cio",
                            "secret", "credential", "cookie", "basic", "curl", "://", "sk-", "A3-", "pat.", "sat.", "api-", "s.", "v1.0-", "machine", "sdk-",
                            "bearer", "fc-", "re_", "ak-", "as-", "pa-", "m0-", "key_"))  # fmt: skip
"""Literals that are common in ordinary text; `_HINTS` has what must stand around them."""
_HINTS: Final = (
    r"gl[a-z]{2,5}-[a-z0-9_-]{6}", r"do[opr]_v1_", r"sk[0-9a-f]{32}", r"fig[dour]h?_", r"\bpat[a-z0-9]{14}\.",
    r"pat-[a-z]{2}\d", r"ez[at]k[a-z0-9]{8}", r"shp[a-z]{2,3}_", r"\b[mno][a-z0-9_-]{23,27}\.[a-z0-9_-]{6}\.",
    r"[?&;][a-z_-]{3,32}=[^&\s]{8}", r"[0-9a-f]{32}-us\d", r"\bcio[a-z0-9]{32}",
    r"cookie[\\\"']{0,4}\s*:", r"basic [a-z0-9+/]{16}", r"curl[^\n]{0,300}\s(?:-u|--user)[ =]", r":(?:\\?/){2}[^\s/]*@",
    r"\ba3-[a-z0-9]{6}-[a-z0-9]{5}", r"\b[ps]at\.[a-z0-9_-]{22}\.", r"\bapi-[a-z0-9]{26}", r"\bs\.[a-z0-9]{24}", r"\bv1\.0-[0-9a-f]{24}-",
    r"\bfc-[0-9a-f]{32}", r"\bre_[a-z0-9]{8}_[a-z0-9]{24}", r"\ba[ks]-[a-z0-9]{22}", r"\bpa-[a-z0-9_-]{43}", r"\bm0-[a-z0-9]{40}",
    r"\bkey_[0-9a-f]{64}", r"\bmachine\s+\S{1,200}\s+login\s", r"\b(?:sdk|mob)-[0-9a-f]{8}-", r"\bsk-[a-z0-9_-]{16}", r"bearer[ :=]{1,3}[a-z0-9_.~+/=-]{16}",
    r"-(?:password|passwd|secret|token|key)[ \t]+[^\s-]{6}", r"(?:password|passwd|secret|token|key)>[^<\s]{4}",
    r"(?:password|passwd|secret|token|key)[\"']?(?:\\n|\s)\s*value:", r"env [a-z0-9_]*(?:password|passwd|secret|token|key) ",
    r"(?:pass[a-z]{0,6}|pwd|secret|token|credentials?|key)[a-z0-9_.-]{0,8}\s{0,4}[\])]?\\{0,3}[\"'`]?\s{0,4}"
    r"\*{0,2}(?::=|=>|[:=,])\*{0,2}(?:\s|\\t){0,8}[a-z(]?\\{0,3}[\"'`]?[^\s\"'`\\]",
)  # fmt: skip


def stubs_in(data: bytes) -> FoundSecrets:
    """Count the stubs in a text, as secrets that are counted already."""
    found = FoundSecrets()
    if STUB in data:
        for match in _A_STUB.finditer(data):
            found.add(match.group(1).decode(), int(match.group(2)))
    found.counted = found.count
    return found


def _name_pattern(names: Iterable[str]) -> str:
    """Return a pattern for any of these names as a string in JSON, with any separators in it."""
    spelled = "|".join("[-_. ]?".join(re2.escape(c) for c in name) for name in sorted(names))
    return f'(?i:"(?:[a-z.]{{0,24}}headers?[.])?(?:{spelled})")'


def _inner(value: Any) -> Any:
    """The text in `{"stringValue": …}` and its like; any other value as it is."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value[0] if isinstance(value, list) and value else value


def text_redactor(key: bytes) -> Callable[[str], str]:
    """What takes the secrets of the built-in rules out of one text after the other; stubs are by `key`."""
    redactor = SecretRedactor(key)
    return lambda text: redactor.text(text, FoundSecrets())
