"""Parse what a user types into a query, in linear time. An error has its column."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from ctxctl.engine.query import facts
from ctxctl.engine.query.terms import (
    OPERATORS,
    Field,
    Not,
    Number,
    Range,
    StepState,
    Term,
    Value,
    Word,
    all_of,
    any_of,
)
from ctxctl.engine.query.value import Query
from ctxctl.errors import UsageError
from ctxctl.model.vocab import STATUSES

LONGEST: Final = 2000
"""Longest query, in characters."""
DEEPEST: Final = 40
"""Deepest nesting of parentheses and negations."""

_BLANK: Final = re.compile(r"\s+")
_WORD: Final = re.compile(r'[^\s()"]+')
_NAME: Final = re.compile(r"([A-Za-z_]{2,16}):")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NEGATED: Final = re.compile(r"[^\s)-]")
"""What follows a minus that negates: `--flag` is a word."""
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_BARE: Final = re.compile(r'[^\s(),"]+')
_COMPARED: Final = re.compile(
    rf"({'|'.join(facts.NUMBERS)})\s*:?\s*(>=|<=|==|≥|≤|>|<|=)\s*", re.IGNORECASE | re.ASCII
)
_NUMBER: Final = re.compile(
    r"([0-9]{1,3}(?:[,_][0-9]{3}){1,6}|[0-9]{1,15})(?:\.([0-9]{1,9}))?([kKmMgG]?)(%?)" r'(?=[\s()"]|$)'
)
_STRANGE: Final = re.compile(r"([A-Za-z_]{2,24})\s*(>=|<=|==|≥|≤|>|<|=)\s*\$?[0-9]")
"""A comparison of any name with a number."""
_PHRASE: Final = re.compile(r'is\s+(not\s+)?([a-z]+)(?=[\s()"]|$)')
_RUN: Final = re.compile(r"(?:([0-9]{1,9})?(?:\.\.|-)([0-9]{1,9})?|([0-9]{1,9}))")
_ZEROS: Final = {"": 0, "k": 3, "m": 6, "g": 9}
_SAME: Final = {"==": "=", "≥": ">=", "≤": "<="}


class QueryError(UsageError):
    """An invalid query, with the place of the error."""

    def __init__(self, column: int, message: str, hint: str | None = None) -> None:
        slug = "bad-query"
        super().__init__(slug, f"column {column + 1}: {message}", hint=hint)
        self.column = column
        """Index of the wrong character, from 0; may be the length of the query."""
        self.what = message
        """The message without the column."""


def parse_query(text: str) -> Query:
    """Return the query that a text means. Raises QueryError, and nothing else whatever the text."""
    if len(text) > LONGEST:
        raise QueryError(LONGEST, f"a query has at most {LONGEST} characters")
    return Query(_Parser(text).whole())


def _called(name: str) -> Term | None:
    """Return the step state or change status of this name."""
    if name in facts.STEP_STATES:
        return StepState(name)
    status = (name,) if name in STATUSES else facts.values_called("status", name)
    return Field("status", tuple(map(Value, status))) if status else None


def _only_one(field: str, found: str, at: int) -> str:
    """Return the value of a closed field that a text names or abbreviates."""
    known = facts.CLOSED[field]
    if found.casefold() in known:
        return found.casefold()
    full = [one for one in known if one.startswith(found.casefold())]
    if len(full) == 1:
        return full[0]
    near = full or facts.near_values(field, found)
    instead = f": did you mean {' or '.join(repr(one) for one in near)}?" if near else ""
    raise QueryError(at, f"'{found}' is no {field}{instead}", f"there are: {', '.join(known)}")


class _Parser:
    """A recursive-descent parser of one text; `at` is its position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Term:
        self._skip()
        if self.at == len(self.text):
            raise QueryError(self.at, "the query is empty")
        term = self._either()
        if self.at < len(self.text):
            raise QueryError(self.at, "no parenthesis is open here", 'write it in quotes to find it: ")"')
        return term

    def _either(self) -> Term:
        terms = [self._both()]
        while self._operator("or"):
            terms.append(self._both())
        return any_of(terms)

    def _both(self) -> Term:
        terms: list[Term] = []
        while True:
            while self._operator("and"):
                if not terms:
                    self._misplaced("and")
            if self._ends() or self._peek("or"):
                break
            terms.append(self._one())
        if not terms:
            self._nothing()
        if self._before("and"):
            raise QueryError(self.at, "nothing follows 'and'", 'to find the word, write "and"')
        return all_of(terms)

    def _nothing(self) -> NoReturn:
        """Report that a term is missing here."""
        if self._peek("or"):
            self._misplaced("or")
        if self._before("or"):
            raise QueryError(self.at, "nothing follows 'or'", 'to find the word, write "or"')
        raise QueryError(self.at, "there is nothing here", 'write text with parentheses in quotes: "f()"')

    def _before(self, name: str) -> bool:
        """Return whether an operator ends right before here."""
        head = self.text[: self.at].rstrip()
        return head.lower().endswith(name) and _WORD.findall(head[-8:])[-1:] in ([name], [name.upper()])

    def _misplaced(self, name: str) -> NoReturn:
        raise QueryError(self.at, f"there is nothing before '{name}'", f'to find the word, write "{name}"')

    def _one(self) -> Term:
        text, at = self.text, self.at
        if text[at] == "-" and _NEGATED.match(text, at + 1):
            self.at += 1
            return self._negated(at)
        if self._operator("not"):
            if self._ends() or self._peek("or"):
                raise QueryError(self.at, "nothing follows 'not'", 'to find the word, write "not"')
            return self._negated(at)
        if text[at] == "(":
            return self._group()
        return self._leaf()

    def _negated(self, start: int) -> Term:
        self._deeper(start)
        term = Not(self._one())
        self.depth -= 1
        return term

    def _group(self) -> Term:
        start = self.at
        self._deeper(start)
        self.at += 1
        self._skip()
        term = self._either()
        if self.text[self.at : self.at + 1] != ")":
            raise QueryError(start, "the parenthesis is not closed", 'write it in quotes to find it: "("')
        self.at += 1
        self._skip()
        self.depth -= 1
        return term

    def _deeper(self, at: int) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise QueryError(at, f"more than {DEEPEST} levels")

    def _leaf(self) -> Term:
        start = self.at
        if self.text[start] == '"':
            return Word(self._quote())
        if match := _COMPARED.match(self.text, start):
            return self._number(match)
        if match := _STRANGE.match(self.text, start):
            self._uncompared(start, match)
        if match := _PHRASE.match(self.text, start):
            term = _called(match[2])
            if term is not None:
                self.at = match.end()
                self._skip()
                return Not(term) if match[1] else term
        if match := _NAME.match(self.text, start):
            name = match[1].lower()
            if name == "is":
                return self._is(match.end())
            if name in facts.RANGES or name in facts.FIELDS:
                self.at = match.end()
                return self._range(name) if name in facts.RANGES else self._field(name)
            self._unknown(start, name, match.end())
        return self._word()

    def _word(self) -> Term:
        match = _WORD.match(self.text, self.at)
        assert match is not None, "what no word begins with is handled before"
        self.at = match.end()
        self._skip()
        return StepState(match[0]) if match[0] in facts.BARE else Word(match[0])

    def _unknown(self, start: int, name: str, end: int) -> None:
        """Report a name that is nearly a field's as an error; other names are text, such as `https:`."""
        if name in facts.NUMBERS:
            hint = f"for example {name}>500 or {name}<=12k"
            raise QueryError(end, f"'{name}' is compared with a number", hint)
        from difflib import get_close_matches

        known = (*facts.FIELDS, *facts.RANGES, *facts.NUMBERS, "is")
        near = get_close_matches(name, known, 1, 0.75)
        if near:
            found = self.text[start : end - 1]
            message = f"no field is called '{found}': did you mean '{near[0]}'?"
            raise QueryError(start, message, f'as text, write "{found}:…"')

    def _uncompared(self, start: int, match: re.Match[str]) -> None:
        """Report a comparison of what is no number; with `=`, only if its name is near a number's."""
        from difflib import get_close_matches

        name = match[1].lower()
        near = get_close_matches(name, facts.NUMBERS, 1, 0.6)
        if match[2] == "=" and not get_close_matches(name, facts.NUMBERS, 1, 0.75):
            return
        found = match[1]
        instead = f": did you mean '{near[0]}'?" if near else ""
        hint = f"there are: {', '.join(facts.NUMBERS)}; as text, write it in quotes"
        raise QueryError(start, f"'{found}' is no number{instead}", hint)

    def _is(self, end: int) -> Term:
        match = _BARE.match(self.text, end)
        name = match[0].lower() if match else ""
        term = _called(name)
        if term is None:
            from difflib import get_close_matches

            known = (*facts.STEP_STATES, *STATUSES)
            near = get_close_matches(name, known, 1, 0.6)
            instead = f": did you mean '{near[0]}'?" if near else ""
            raise QueryError(end, f"nothing is called is:{name}{instead}", f"there are: {', '.join(known)}")
        self.at = match.end() if match else end
        self._skip()
        return term

    def _number(self, head: re.Match[str]) -> Term:
        name, op = head[1].lower(), _SAME.get(head[2], head[2])
        start = head.end() + (name == facts.COST and self.text[head.end() : head.end() + 1] == "$")
        match = _NUMBER.match(self.text, start)
        if match is None:
            hint = (
                f"for example {name}{op}0.05"
                if name == facts.COST
                else f"for example {name}{op}500 or {name}{op}12k"
            )
            raise QueryError(start, f"'{name}' is compared with a number", hint)
        whole, part, unit, percent = match[1], match[2] or "", match[3].lower(), bool(match[4])
        zeros = _ZEROS[unit] - len(part.rstrip("0")) + (facts.CENTS if name == facts.COST else 0)
        if zeros < 0:
            raise QueryError(head.end(), "a number of tokens has no fraction", "write 1.5k, or 1500")
        if percent and name not in facts.SHARES:
            raise QueryError(match.end() - 1, f"'{name}' has no per cent", "only the window has: window>80%")
        value = int(whole.replace(",", "").replace("_", "") + part.rstrip("0")) * 10**zeros
        self.at = match.end()
        self._skip()
        return Number(name, op, value, percent)

    def _range(self, name: str) -> Term:
        runs: list[tuple[int | None, int | None]] = []
        for at, found, _ in self._values(name):
            match = _RUN.fullmatch(found)
            if match is None or found in ("..", "-"):
                hint = f"for example {name}:3, {name}:3..7 or {name}:3.."
                raise QueryError(at, f"'{name}' is a number or a run of them", hint)
            first, last, only = match.groups()
            a, b = (only, only) if only else (first, last)
            low, high = (int(a) if a else None), (int(b) if b else None)
            if low is not None and high is not None and low > high:
                raise QueryError(at, f"nothing is between {low} and {high}", f"write {name}:{high}..{low}")
            runs.append((low, high))
        return Range(name, tuple(runs))

    def _field(self, name: str) -> Term:
        values: list[Value] = []
        for at, found, exact in self._values(name):
            named = () if exact else facts.values_called(name, found)
            if named:
                values += (Value(value, alias=found.casefold()) for value in named)
            elif name in facts.CLOSED:
                values.append(Value(_only_one(name, found, at)))
            else:
                values.append(Value(found, exact))
        return Field(name, tuple(values))

    def _values(self, name: str) -> list[tuple[int, str, bool]]:
        """Return the comma-separated values of a field: place, text, and whether it is exact."""
        values = []
        while True:
            exact = self.text[self.at : self.at + 1] == "="
            self.at += exact
            start = self.at
            if self.text[start : start + 1] == '"':
                values.append((start, self._quote(blanks=False), exact))
            else:
                match = _BARE.match(self.text, start)
                if match is None:
                    hint = f'for example {name}:x, or {name}:"x y"'
                    raise QueryError(start, f"'{name}:' needs a value", hint)
                self.at = match.end()
                values.append((start, match[0], exact))
            if self.text[self.at : self.at + 1] != ",":
                break
            self.at += 1
        self._skip()
        return values

    def _quote(self, *, blanks: bool = True) -> str:
        start = self.at
        match = _QUOTED.match(self.text, start)
        if match is None:
            raise QueryError(start, "the quotation mark is not closed", 'inside quotes, write \\" for one')
        if not match[1]:
            raise QueryError(start, "there is nothing between the quotation marks")
        self.at = match.end()
        if blanks:
            self._skip()
        return _ESCAPE.sub(r"\1", match[1])

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def _ends(self) -> bool:
        return self.at >= len(self.text) or self.text[self.at] == ")"

    def _peek(self, name: str) -> bool:
        """Return whether an operator is next."""
        match = _WORD.match(self.text, self.at)
        return match is not None and match[0] in OPERATORS and match[0].lower() == name

    def _operator(self, name: str) -> bool:
        """Consume an operator if it is next."""
        if not self._peek(name):
            return False
        self.at += len(name)
        self._skip()
        return True
