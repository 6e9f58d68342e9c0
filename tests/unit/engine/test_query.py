"""The language of searches: what it takes, what it means, and what it says of mistakes."""

from __future__ import annotations

import base64
import json
import string
import zlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.query import (
    And,
    Field,
    Not,
    Number,
    Or,
    Query,
    QueryError,
    Range,
    StepState,
    Term,
    Value,
    Word,
    contained_text,
    facts,
    parse_query,
)
from ctxctl.engine.query.parsing import DEEPEST, LONGEST
from ctxctl.engine.query.terms import all_of, any_of
from ctxctl.model.annotations import Annotations, MissingContext
from ctxctl.model.results import BrokenBy, Cache, Change, Counts, Ledger, Step, UsageView, Window
from ctxctl.model.vocab import WARNINGS
from ctxctl.report.html.writer import COLUMNS, OVER, WARNED, Rows
from ctxctl.session.survey import row_of
from ctxctl.tui.outline import warned


def change(**given: Any) -> Change:
    plain: dict[str, Any] = {
        "status": "added", "item": "m1", "kind": "user_message", "title": None, "version": "v1",
        "previous_version": None, "tokens": 10, "in_window": 10, "new": 10, "freed": 0, "cause": None,
        "reason": None, "into": None, "flags": (), "source": None, "provenance": "native",
    }  # fmt: skip
    return Change(**{**plain, **given})


def step(**given: Any) -> Step:
    plain: dict[str, Any] = {
        "session": "s1", "thread": "main", "turn": 3, "step": 2, "turn_id": None, "step_id": None,
        "time": None, "target": "model", "model": "gpt-4o", "mode": "window", "mode_declared": True,
        "basis": "assembly", "layer": "injected",
        "window": Window(1000, 200, 800, 700, 100, 0, 0, {}),
        "ledger": Ledger(600, 150, 50, 700, None, 30, 0), "counts": Counts(), "changes": (), "stages": {},
        "cache": Cache(None, None, None, None), "usage": None,
    }  # fmt: skip
    return Step(**{**plain, **given})


def holds(
    query: str, text: str | None = "", segment: str | None = None, at: Step | None = None, **of: Any
) -> bool:
    return parse_query(query).matches_change(at or step(), change(**of), contained_text(text), segment)


# Words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("pull", "a PULL request", True),
        ("Pull", "a pull request", False),
        ("Pull", "a Pull request", True),
        ("pull request", "request to pull", True),
        ('"pull request"', "request to pull", False),
        ('"pull request"', "A Pull Request", True),
        ("pull or push", "push", True),
        ("-pull", "push", True),
        ("-pull", "pull", False),
        ("not pull", "pull", False),
        ("(a or b) c", "b c", True),
        ("a or b c", "a", True),
        ("a or b c", "b", False),
        ("-(a or b)", "c", True),
        ("-(a or b)", "b", False),
        ("straße", "STRASSE", True),
        ("ΣΊΣΥΦΟΣ", "ΣΊΣΥΦΟΣ", True),
        ("σίσυφος", "ΣΊΣΥΦΟΣ", True),
        ("世界", "你好世界", True),
        ("--flag", "run --flag", True),
        ("--flag", "run -flag", False),
        ("a.*b", "a.*b", True),
        ("a.*b", "axxb", False),
        ("https://x", "see HTTPS://X/y", True),
        ('"say \\"x\\""', 'say "x"', True),
        ('"or"', "or", True),
        ('"or"', "nothing", False),
    ],
)
def test_words(query: str, text: str, found: bool) -> None:
    assert holds(query, text) is found


def test_titles_count_and_ids_where_there_is_no_title() -> None:
    assert holds("notes", title="My Notes")
    assert holds("m1")
    assert not holds("m1", title="My Notes")


def test_what_is_not_known_is_neither_so_nor_not_so() -> None:
    assert not holds("needle", None)
    assert not holds("-needle", None)
    assert holds("needle", None, title="a needle")
    assert not holds("-needle", None, title="a needle")
    assert holds("needle or status:added", None)
    assert not holds("needle status:removed", None)
    unknown = step(window=Window(None, None, None, 700, None, None, 0, {}))
    assert parse_query("window>80%").matches_step(unknown) is None
    assert not holds("-window>80%", at=unknown)
    assert not holds("free>1 or free<=1", at=unknown)


def test_texts_are_asked_for_only_where_nothing_else_decides() -> None:
    asked: list[Word] = []

    def contains(word: Word) -> bool:
        asked.append(word)
        return True

    query = parse_query("needle status:removed")
    assert not query.matches_change(step(), change(), contains)
    assert not asked
    assert query.matches_change(step(), change(status="removed"), contains)
    assert asked == [Word("needle")]
    assert parse_query("needle or m1").matches_change(step(), change(), contains)


# Fields and numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("item:m1", True),
        ("item:m", True),
        ("item:=m", False),
        ("item:=m1", True),
        ("item:M1", False),
        ("item:x,m1", True),
        ('item:"m1"', True),
        ("kind:user", True),
        ("kind:=user", False),
        ("-kind:user", False),
        ("kind:tool,image", False),
        ("status:added", True),
        ("status:add", True),
        ("status:updated,removed", False),
        ("status:ADDED", True),
        ("source:web", True),
        ("cause:budget", False),
        ("-cause:budget", True),
        ("reason:limit", True),
        ("provenance:native", True),
        ("provenance:d", False),
        ("segment:user", True),
        ("flag:stale", True),
        ("version:v", True),
        ("server:github", True),
        ("session:s1", True),
        ("thread:main", True),
        ("thread:other", False),
        ("model:GPT", False),
        ("model:gpt-4", True),
        ("turn:3", True),
        ("turn:3..7", True),
        ("turn:3-7", True),
        ("turn:4..", False),
        ("turn:..3", True),
        ("turn:1,3", True),
        ("turn:1,5..9", False),
        ("step:2", True),
        ("tokens>9", True),
        ("tokens>10", False),
        ("tokens >= 10", True),
        ("tokens<=10", True),
        ("tokens<10", False),
        ("tokens=10", True),
        ("tokens==10", True),
        ("tokens≥10", True),
        ("tokens:>9", True),
        ("new>0.001k", True),
        ("freed>0", False),
        ("held>5", True),
        ("window>0.5k", True),
        ("window=700", True),
        ("window>1,000", False),
        ("window>87%", True),
        ("window>88%", False),
        ("free<=100", True),
        ("stale=30", True),
        ("entered>=150 left<=50", True),
        ("billed>1M", False),
        ("-billed>1M", False),
        ("Window>1", True),
        ("KIND:user", True),
    ],
)
def test_fields(query: str, found: bool) -> None:
    of = {"reason": "budget_limit", "source": "web", "flags": ("stale",), "title": "mcp__github__get_issue"}
    assert holds(query, segment="user", **of) is found


def test_a_segment_is_guessed_by_kind_where_nobody_knows() -> None:
    assert holds("segment:tools", kind="tool_definition")
    assert not holds("segment:tools", segment="history", kind="tool_definition")


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ({"title": "mcp__github__get_issue"}, "github"),
        ({"item": "mcp:files:read"}, "files"),
        ({"source": "mcp:web:"}, "web"),
        ({"source": "mcp://docs/page"}, "docs"),
        ({"item": "mcp:a_tool_without_a_server"}, None),
        ({"source": "mcp__files__read", "title": "mcp__web__get"}, "files"),
        ({"title": "call mcp__my_server__x(1)"}, "my_server"),
        ({"title": "dumcp__x__y"}, None),
        ({"title": "mcp"}, None),
    ],
)
def test_servers(given: dict[str, str], server: str | None) -> None:
    assert facts.tool_server_of(change(**given)) == server


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("compacted", {"flags": ("compacted",)}),
        ("warning", {"flags": ("unrecorded_cut",)}),
        ("cachebreak", {"cache": Cache(5, BrokenBy("a", None, 0, "moved", None), None, None)}),
        ("over", {"flags": ("still_over_budget",)}),
        ("over", {"window": Window(1000, 0, 1000, 1200, 0, 200, 0, {})}),
        (
            "missing",
            {"annotations": Annotations(missing=(MissingContext("m", "open", *[None] * 6, (), (), ()),))},
        ),
        ("is:cut", {"flags": ("unrecorded_cut",)}),
        ("is:cleared", {"flags": ("cleared",)}),
        ("is:compacted", {"flags": ("compacted",)}),
        ("billed>5", {"usage": UsageView(6, None, None, 5, None)}),
    ],
)
def test_queries_of_steps(query: str, given: dict[str, Any]) -> None:
    parsed = parse_query(query)
    assert parsed.about_steps
    assert parsed.matches_step(step(**given)) is True
    assert parsed.matches_step(step()) is (None if query.startswith("billed") else False)


@pytest.mark.parametrize(
    ("given", "marked"),
    [
        *(({"flags": (flag,)}, True) for flag in sorted(WARNINGS)),
        ({"flags": ("redacted", "compacted", "simulated")}, False),
        ({"window": Window(1000, 0, 1000, 1200, 0, 200, 0, {})}, True),
        ({"window": Window(1000, 0, 1000, 800, 0, 0, 0, {})}, False),
    ],
)
def test_the_query_the_page_and_the_ui_warn_of_the_same_steps(given: dict[str, Any], marked: bool) -> None:
    """Of a failed request and of one over its cap, too: a failure was a warning on the page alone."""
    asked = step(**given)
    row = row_of(0, asked)
    packed: list[bytes] = []
    rows = Rows(packed.append)
    rows.add(0, asked, cast("Any", SimpleNamespace(believed=None, counted=None)))
    rows.flush()
    block = base64.b64decode(packed[0].split(b">")[1].split(b"<")[0])
    marks = json.loads(zlib.decompress(block))[0][COLUMNS.index("marks")]
    assert parse_query("is:warning").matches_step(asked) is marked
    assert warned(row) is marked
    assert bool(marks & (WARNED | OVER)) is marked


def test_a_query_in_quotes_is_text() -> None:
    assert parse_query('"compacted"') == Query(Word("compacted"))
    assert str(parse_query('"compacted"')) == '"compacted"'


def test_a_query_knows_what_it_needs() -> None:
    assert parse_query("a -b (c or a)").words == (Word("a"), Word("b"), Word("c"))
    assert parse_query("a -b (c or a)").shown == (Word("a"), Word("c"))
    assert parse_query("turn:3 window>5 compacted").about_steps
    assert not parse_query("turn:3 new>5").about_steps
    assert parse_query("x status:skipped").asks_skipped
    assert not parse_query("x -status:skipped").asks_skipped
    assert parse_query("segment:user").asks_segment


def test_a_step_decides_where_it_can() -> None:
    assert parse_query("needle turn:4").matches_step(step()) is False
    assert parse_query("needle turn:3").matches_step(step()) is None
    assert parse_query("needle or turn:3").matches_step(step()) is True


# Mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "column", "what"),
    [
        ("", 0, "empty"),
        ("   ", 3, "empty"),
        ('a "b', 2, "not closed"),
        ('a ""', 2, "between the quotation marks"),
        ("a (b", 2, "not closed"),
        ("a) b", 1, "no parenthesis is open"),
        ("main()", 5, "there is nothing here"),
        ("a or", 4, "follows 'or'"),
        ("or a", 0, "before 'or'"),
        ("a and", 5, "follows 'and'"),
        ("a and or b", 6, "follows 'and'"),
        ("a or or b", 5, "before 'or'"),
        ("not", 3, "follows 'not'"),
        ("kind:", 5, "needs a value"),
        ("kind:a,", 7, "needs a value"),
        ("knid:a", 0, "did you mean 'kind'"),
        ("status:gon_", 7, "is no status: did you mean 'removed'"),
        ("mode:x", 5, "is no mode"),
        ("basis:x", 6, "is no basis"),
        ("provenance:x", 11, "is no provenance"),
        ("tokens>x", 7, "compared with a number"),
        ("tokens>", 7, "compared with a number"),
        ("tokens:5", 7, "compared with a number"),
        ("tokens>1.2345k", 7, "no fraction"),
        ("tokens>5%", 8, "per cent"),
        ("turn:x", 5, "a number or a run"),
        ("turn:..", 5, "a number or a run"),
        ("turn:7..3", 5, "between 7 and 3"),
        ("is:odd", 3, "nothing is called is:odd"),
        ("is:compactd", 3, "did you mean 'compacted'"),
        ("a windw > 5k", 2, "did you mean 'window'"),
        ("toknes=5", 0, "did you mean 'tokens'"),
        ("anything<5", 0, "'anything' is no number"),
        ("cost>x", 5, "compared with a number"),
        ("cost>0.05%", 9, "per cent"),
        ("cache:warm", 6, "is no cache"),
    ],
)
def test_mistakes_are_told_with_their_place(query: str, column: int, what: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(query)
    assert caught.value.column == column
    assert what in caught.value.what
    assert str(caught.value).startswith(f"column {column + 1}: ")
    assert caught.value.slug == "bad-query"


def test_nothing_is_too_deep_or_too_long_to_be_refused() -> None:
    for opening in ("(", "-(", "not "):
        with pytest.raises(QueryError):
            parse_query(opening * (LONGEST // len(opening)))
        with pytest.raises(QueryError):
            parse_query(opening * (DEEPEST + 1) + "a")
    assert str(parse_query("(" * DEEPEST + "a" + ")" * DEEPEST)) == "a"
    with pytest.raises(QueryError):
        parse_query("a" * (LONGEST + 1))


# Windows, prices, and other ways to say it ------------------------------------------------------------------


class Whole:
    """Whole windows as a query asks of them: item names, texts (None: not recorded), dollars billed."""

    def __init__(
        self, names: tuple[str, ...] = (), texts: tuple[str | None, ...] = (), cost: str = ""
    ) -> None:
        self.names, self.texts, self.dollars = names, texts, cost

    def holds(self, field: str, value: Value) -> bool | None:
        if field == "has":
            return any(value.fits(name) for name in self.names)
        if any(text is not None and value.fits(text) for text in self.texts):
            return True
        return None if None in self.texts else False

    def cost(self) -> int | None:
        return int(float(self.dollars) * 10**facts.CENTS) if self.dollars else None


@pytest.mark.parametrize(
    ("query", "window", "truth"),
    [
        ("has:notes", Whole(("my-notes",)), True),
        ("has:=notes", Whole(("my-notes",)), False),
        ("-has:=notes", Whole(("my-notes",)), True),
        ("has:notes,plan", Whole(("plan",)), True),
        ('text:"a needle"', Whole(texts=("hay", "A Needle there")), True),
        ("text:needle", Whole(texts=("hay", None)), None),
        ("-text:needle", Whole(texts=("hay", None)), None),
        ("-text:needle", Whole(texts=("hay",)), True),
        ("text:needle", Whole(texts=(None, "needle")), True),
        ("cost>0.05", Whole(cost="0.06"), True),
        ("cost>$0.05", Whole(cost="0.05"), False),
        ("cost<=1", Whole(cost="1"), True),
        ("cost>0", Whole(), None),
        ("-cost>0", Whole(), None),
        ("has:a text:b", Whole(("a",), ("b",)), True),
        ("has:a or text:b", Whole((), (None,)), None),
    ],
)
def test_a_window_is_asked_as_a_whole(query: str, window: Whole, truth: bool | None) -> None:
    parsed = parse_query(query)
    assert parsed.about_steps
    assert parsed.asks_around
    assert parsed.matches_step(step(), window) is truth
    assert parsed.matches_step(step()) is None


def test_what_asks_of_windows_and_of_changes_is_asked_of_changes() -> None:
    parsed = parse_query("has:a status:removed")
    assert not parsed.about_steps
    assert parsed.matches_step(step(), Whole(("a",))) is None
    assert parsed.matches_step(step(), Whole()) is False
    assert parsed.matches_change(step(), change(status="removed"), around=Whole(("a",)))
    assert not parsed.matches_change(step(), change(status="added"), around=Whole(("a",)))


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("item:x is removed", "item:x status:removed"),
        ("is:omitted", "status:omitted"),
        ("is over", "is:over"),
        ("is not over", "-is:over"),
        ("turn >= 5 turn <= 9", "turn>=5 and turn<=9"),
        ("window > 100k", "window>100000"),
        ("cost > $1.50", "cost>1.5"),
        ("cost>=0.000000001", "cost >= 0.000000001"),
    ],
)
def test_there_are_other_ways_to_say_it(query: str, same: str) -> None:
    assert parse_query(query) == parse_query(same)


def test_is_is_a_word_where_nothing_is_called_so() -> None:
    assert parse_query("this is it") == Query(all_of([Word("this"), Word("is"), Word("it")]))
    assert parse_query('"is" removed') == Query(all_of([Word("is"), Word("removed")]))


def test_numbers_of_turns_and_caches() -> None:
    assert holds("turn>2 turn<4 step=2")
    assert not holds("turn<3")
    prefix = Cache(500, BrokenBy("x", None, 1, "moved", None), None, None)
    assert holds("cache:broken", at=step(cache=prefix))
    kept = Cache(599, BrokenBy("x", None, 1, "moved", None), None, None)
    assert holds("cache:kept", at=step(cache=kept))
    assert not holds("cache:kept")
    usage = UsageView(800, 300, 40, 700, -100)
    assert holds("cached=300 answered<41", at=step(usage=usage))
    assert not holds("cached>=0")
    assert not holds("-cached>=0")


# Laws -------------------------------------------------------------------------------------------------------

_TEXT = st.text(min_size=1, max_size=12).filter(lambda text: len(text.encode("utf-8", "replace")) < 40)
_ASCII = st.text(string.ascii_letters + string.digits + ' _-.:/"\\()=,<>', min_size=1, max_size=10)
_TEXTS = st.one_of(
    _TEXT, _ASCII, st.sampled_from([*facts.BARE, "or", "AND", "not", "-", "--", "kind:", "new"])
)
_OPEN = tuple(name for name in facts.FIELDS if name not in facts.CLOSED)


def _closed(name: str) -> st.SearchStrategy[Term]:
    values = st.lists(st.sampled_from(facts.CLOSED[name]).map(Value), min_size=1, max_size=3)
    return values.map(lambda some: Field(name, tuple(some)))


_VALUES = st.lists(st.builds(Value, _TEXTS, st.booleans()), min_size=1, max_size=3).map(tuple)
_RUNS = st.tuples(st.none() | st.integers(0, 50), st.none() | st.integers(50, 10**8)).filter(
    lambda run: any(run)
)
_LEAVES: st.SearchStrategy[Term] = st.one_of(
    st.builds(Word, _TEXTS),
    st.builds(Field, st.sampled_from(_OPEN), _VALUES),
    st.sampled_from(sorted(facts.CLOSED)).flatmap(_closed),
    st.builds(
        Range, st.sampled_from(sorted(facts.RANGES)), st.lists(_RUNS, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(Number, st.sampled_from(facts.NUMBERS), st.sampled_from([">", ">=", "<", "<=", "="]),
              st.integers(0, 10**14)),
    st.builds(Number, st.just("window"), st.just(">"), st.integers(0, 1000), st.just(True)),
    st.builds(StepState, st.sampled_from(sorted(facts.STEP_STATES))),
)  # fmt: skip


def _joined(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    some = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(inner.map(Not), some.map(all_of), some.map(any_of))


TERMS = st.recursive(_LEAVES, _joined, max_leaves=6)


@given(TERMS)
def test_what_is_printed_parses_to_the_same(term: Term) -> None:
    query = Query(term)
    assert parse_query(str(query)) == query


@given(st.text(max_size=60) | st.text('ab "()-:,=<>.%0k\\\n', max_size=40))
def test_any_text_is_a_query_or_a_mistake_in_it(text: str) -> None:
    query = mistake = None
    try:
        query = parse_query(text)
    except QueryError as error:
        mistake = error
    if mistake is not None:
        assert 0 <= mistake.column <= len(text)
        assert mistake.what
    if query is not None:
        assert parse_query(str(query)) == query
        query.matches_change(step(), change(), contained_text(text))
        query.matches_step(step())
        query.matches_step(step(), Whole(("a",), ("b", None), "0.5"))


@given(TERMS, st.none() | st.text(max_size=20))
def test_a_step_that_says_no_has_no_change_that_says_yes(term: Term, text: str | None) -> None:
    query = Query(term)
    found = query.matches_change(step(), change(), contained_text(text))
    verdict = query.matches_step(step())
    assert not (verdict is False and found)
    assert not (verdict is True and not found)
    opposite = Query(Not(term)).matches_change(step(), change(), contained_text(text))
    assert not (found and opposite)
    if query.about_steps and verdict is not None:
        assert found is verdict


@given(TERMS)
def test_terms_that_are_joined_are_joined_flat(term: Term) -> None:
    assert not isinstance(term, And) or not any(isinstance(part, And) for part in term.terms)
    assert not isinstance(term, Or) or not any(isinstance(part, Or) for part in term.terms)


def test_queries_are_values() -> None:
    assert {parse_query("a b"), parse_query("a  b"), parse_query("a and b")} == {parse_query("a b")}
    assert parse_query("a b") != parse_query("b a")
