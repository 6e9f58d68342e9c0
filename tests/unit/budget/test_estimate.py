"""Plans that can be worked out by hand, and laws that hold for all of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from budget_help import HAND, hand, worked_out
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.budget.estimate import tokens_by_billing
from ctxctl.budget.fitted import Request, Session, _Decisions, fitted_runs
from ctxctl.budget.growth import first_turn, grown_runs
from ctxctl.budget.measure import Reader, definitions
from ctxctl.budget.plan import parse, policy_of
from ctxctl.budget.sessions import session
from ctxctl.errors import UsageError
from ctxctl.model.fitting import Room
from ctxctl.model.money import Rates, Tokens
from ctxctl.policies.fitting.eviction import Fifo
from ctxctl.report.budget import objects
from ctxctl.report.jsonout import line
from ctxctl.tokens.catalogue.rates import Priced
from ctxctl.tokens.counter import Counter
from tests.oracle.plain_policies import Plain, plain_fit
from tests.unit.policies.fitting_help import candidate


def test_the_window_grows_as_worked_out_by_hand() -> None:
    found = hand()
    assert [turn.p50 for turn in found.turns] == [300, 600, 900, 1200]
    assert found.cap == 1000
    assert found.first_wanted == (4, 4, 4)
    assert found.first_over == (4, 4, 4)  # it is rejected
    assert (found.total("p50"), found.total("p95")) == (100, 100)


def test_fifo_takes_the_oldest_and_the_cache_breaks_there() -> None:
    plan = parse(HAND.replace("POLICY", "fifo"), "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    policy = policy_of(plan, "plan")
    run = fitted_runs(plan, parts, policy, Room(1000), len, 10**6)[0]
    # Turn 4 wants 1200 of 1000: the first user message goes; behind the rules nothing is as it was before.
    assert [request.sent for request in run.requests] == [300, 600, 900, 1000]
    assert [request.prefix for request in run.requests] == [0, 300, 600, 100]
    assert [request.output for request in run.requests] == [100] * 4
    assert run.left_out == (("user messages", 200),)
    assert (run.first_acted, run.first_over, run.stopped) == (4, None, None)


def test_a_request_that_is_not_sent_ends_the_session() -> None:
    plan = parse(HAND.replace("POLICY", "reject").replace("turns = 4", "turns = 9"), "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    one = Session(parts, policy_of(plan, "plan"), Room(1000), len)
    run = one.run(session(plan, parts, 0), 10**6)
    assert run is not None
    assert run.stopped == 4
    assert len(run.requests) == 3


def test_tool_calls_make_requests_of_their_own() -> None:
    text = HAND.replace("POLICY", "fifo").replace("turns = 4", "turns = 2")
    plan = parse(text + "calls = 3\nparallel = 2\ncall = 10\nresult = 50\n", "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    run = fitted_runs(plan, parts, policy_of(plan, "plan"), Room(10_000), len, 10**6)[0]
    # Two calls in one answer, then one, then the answer: three requests a turn.
    assert [r.sent for r in run.requests] == [300, 420, 480, 780, 900, 960]
    assert [r.output for r in run.requests] == [20, 10, 100, 20, 10, 100]
    assert [r.prefix for r in run.requests] == [0, 300, 420, 480, 780, 900]
    assert grown_runs(plan, parts).wanted(2) == [960] * 4


def test_contexts_stand_before_the_newest_message_and_break_the_cache_there() -> None:
    part = '\n[[part]]\nname = "status"\ntokens = 50\nchanges = 1.0\n'
    text = HAND.replace("POLICY", "fifo") + part
    plan = parse(text, "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    run = fitted_runs(plan, parts, policy_of(plan, "plan"), Room(10_000), len, 10**6)[0]
    # rules 100 | status 50 | user 200; then rules | user, answer 300 | status | user
    assert [r.sent for r in run.requests] == [350, 650, 950, 1250]
    assert [r.prefix for r in run.requests] == [0, 100, 400, 700]
    stays = parse(text + "stays = true\n", "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(stays)
    run = fitted_runs(stays, parts, policy_of(stays, "plan"), Room(10_000), len, 10**6)[0]
    assert [r.sent for r in run.requests] == [350, 700, 1050, 1400]
    assert [r.prefix for r in run.requests] == [0, 350, 700, 1050]
    assert [turn.p50 for turn in worked_out(text + "stays = true\n").turns] == [350, 700, 1050, 1400]


def test_what_helps_most_comes_first() -> None:
    found = hand(window=700)
    assert found.first_wanted.p95 == 3
    # With half of the user messages turn n wants 100 + 100 n + 100 (n - 1): 700 at turn 3.5, so turn 4.
    assert [(s.name, s.tokens, s.first_over.p95) for s in found.shrunk] == [
        ("user messages", 800, 4), ("answers", 300, 3), ("rules", 100, 3),
    ]  # fmt: skip


def test_billing_of_one_request() -> None:
    request = Request(1, 1000, 600, 50)
    known = Priced(Rates(Decimal(2), Decimal(8), Decimal("0.5"), Decimal("2.5")), "settings", "")
    assert tokens_by_billing(request, known, caching=True) == Tokens(0, 600, 400, 50)
    assert tokens_by_billing(request, known, caching=False) == Tokens(1000, 0, 0, 50)
    no_writes = known._replace(rates=known.rates._replace(cache_write=None))
    assert tokens_by_billing(request, no_writes, caching=True) == Tokens(400, 600, 0, 50)


def test_the_bill_of_a_session_by_hand(tmp_path: Path) -> None:
    from ctxctl.budget.estimate import estimate

    text = HAND.replace("POLICY", "fifo").replace("[model]", '[model]\nname = "mine"')
    prices = {"input_price": 1.0, "output_price": 10.0, "cache_read_price": 0.1}
    found = estimate(parse(text, "plan"), "plan", tmp_path, {"mine": prices})
    assert found.bill is not None
    # Sent 2800, of these 1000 from the cache; 400 of output.
    assert found.bill.tokens == Tokens(1800, 1000, 0, 400)
    assert found.bill.p50 == Decimal("0.0018") + Decimal("0.0001") + Decimal("0.004")
    assert found.bill.uncached == Decimal("0.0068")
    assert found.bill.per_turn == found.bill.p50 / 4


def test_first_turns_are_reached_by_so_many_sessions() -> None:
    assert first_turn(range(1, 101)) == (50, 5, 1)
    assert first_turn([None] * 100) == (None, None, None)
    assert first_turn([3] + [None] * 99) == (None, None, 3)


def test_text_files_and_tools_are_counted_exactly(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("hello world")
    (tmp_path / "a.md").write_text("hello")
    (tmp_path / "tools.json").write_text(
        '{"tools": [{"name": "t", "description": "d", "inputSchema": {"type": "object"}, "annotations": {}}]}'
    )
    found = worked_out(
        '[model]\nwindow = 100\n[[part]]\nname = "f"\nfiles = "*.md"\n'
        '[[part]]\nname = "t"\ntools = "tools.json"\nserver = "s"\n[[part]]\nname = "x"\ntext = "hello"\n',
        tmp_path,
    )
    assert [(part.part.name, part.p50, part.part.where) for part in found.parts][::2] == [
        ("f", 3, "system"), ("x", 1, "system"),
    ]  # fmt: skip
    assert [piece.name for piece in found.parts[0].pieces] == ["a.md", "b.md"]
    counted = Counter("o200k_base").count('{"description":"d","input_schema":{"type":"object"},"name":"t"}')[
        0
    ]
    assert found.server("s", "p95") == found.parts[1].p50 == counted


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ([{"type": "function", "function": {"name": "a", "parameters": {}}}], ["a"]),
        ([{"type": "function", "name": "a"}, {"type": "web_search"}], ["a", "web_search"]),
        ([{"name": "a", "input_schema": {}}], ["a"]),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": {}}]}}, ["a"]),
        ([{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}], ["a", "b"]),
        ({"name": "a", "inputSchema": {}}, ["a"]),
        ({"type": "object"}, []),
        ([1, None, "x", {}], []),
        ({"result": 3}, []),
        (None, []),
    ],
)
def test_definitions_in_all_forms(value: object, names: list[str]) -> None:
    assert [name for name, _ in definitions(value)] == names


def test_the_models_own_limits() -> None:
    found = worked_out('[model]\nname = "gpt-5"\nprovider = "openai"\nreserve = "100k"\n')
    assert (found.cap, found.ground.room.window, found.ground.exact) == (272_000, 400_000, True)
    found = worked_out('[model]\nname = "gpt-5"\nprovider = "openai"\nreserve = "200k"\n')
    assert found.cap == 200_000


def test_a_window_is_never_guessed() -> None:
    with pytest.raises(UsageError, match="not known") as caught:
        worked_out('[model]\nname = "nobody-knows-this-one"\n')
    assert caught.value.slug == "unknown-window"
    with pytest.raises(UsageError, match="neither"):
        worked_out("[model]\nreserve = 5\n")


_TALK = """
[conversation]
turns = 6
user = { p50 = 50, p95 = 400 }
answer = { p50 = 100, p95 = 300 }
calls = { from = 0, to = 3 }
call = 20
result = { p50 = 200, p95 = 900, max = 2000 }
"""


@settings(max_examples=15)
@given(
    window=st.integers(500, 6000),
    wider=st.integers(0, 3000),
    policy=st.sampled_from(["reject", "fifo", "priority", "truncate_middle", "summarize_oldest"]),
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=3),
    seed=st.integers(0, 5),
)
def test_laws(window: int, wider: int, policy: str, sizes: list[int], seed: int) -> None:
    def text(cap: int) -> str:
        parts = "".join(
            f'[[part]]\nname = "p{n}"\ntokens = {{ from = 0, to = {size} }}\n' for n, size in enumerate(sizes)
        )
        return f'policy = "{policy}"\nseed = {seed}\nruns = 6\n[model]\nwindow = {cap}\n{parts}{_TALK}'

    narrow, wide = worked_out(text(window)), worked_out(text(window + wider))
    # The same plan, the same bytes.
    assert [line(obj) for obj in objects(narrow)] == [line(obj) for obj in objects(worked_out(text(window)))]
    # The parts are the whole.
    assert narrow.total("p95") == sum(part.p95 for part in narrow.parts)
    # What is wanted does not hang on the window, and overflows in a wider one at no earlier turn.
    assert narrow.turns == wide.turns
    for one, other in zip(narrow.first_wanted, wide.first_wanted, strict=True):
        assert other is None or (one is not None and one <= other)
    # The policy acts where something is over, and nothing is sent over the cap without a word.
    assert narrow.first_acted == narrow.first_wanted
    plan = parse(text(window), "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    for run in fitted_runs(plan, parts, policy_of(plan, "plan"), Room(window), len, 10**6):
        over = [request.turn for request in run.requests if request.sent > window]
        assert not over or run.first_over is not None
        assert not over or run.first_over == over[0]
        assert all(request.prefix <= request.sent for request in run.requests)


@settings(max_examples=10)
@given(smaller=st.integers(0, 300), seed=st.integers(0, 50))
def test_shrinking_a_part_never_brings_the_overflow_nearer(smaller: int, seed: int) -> None:
    def first(size: int) -> list[float]:
        found = worked_out(
            f'seed = {seed}\nruns = 5\n[model]\nwindow = 3000\n[[part]]\nname = "p"\ntokens = {size}\n{_TALK}'
        )
        return [float("inf") if turn is None else turn for turn in found.first_wanted]

    assert all(one <= other for one, other in zip(first(300), first(smaller), strict=True))


def test_a_policy_that_decides_early_is_asked_early() -> None:
    # It acts beyond 90 % of the cap: 900 of 950 at turn 3, where all still fits.
    found = hand("amplifier_contract", window=950)
    assert found.first_wanted == (4, 4, 4)
    assert found.first_acted == (3, 3, 3)


def test_a_text_that_stands_in_has_its_size() -> None:
    from ctxctl.budget.fitted import _stand_in

    for encoding in ("o200k_base", "cl100k_base"):
        assert Counter(encoding).count(_stand_in(1234)) == (1234, True)


@pytest.mark.parametrize(
    "policy",
    ["reject", "fifo", "priority", "truncate_tail", "truncate_middle", "summarize_oldest",
     "summarize_low_priority", "defer_to_retrieval", "ask_for_choice", "policy_block", "amplifier"],
)  # fmt: skip
def test_every_fitting_policy_can_be_planned_with(policy: str) -> None:
    text = HAND.replace("POLICY", policy).replace("turns = 4", "turns = 8").replace("runs = 4", "runs = 2")
    text = text.replace("window = 1000", "window = 9000") + "calls = 2\ncall = 40\nresult = 700\n"
    found = worked_out(text)
    # Turn n wants 100 + n (200 + 2 (40 + 700)) + 100 (n - 1), which is 1780 n.
    assert found.first_wanted.p95 == 6
    assert found.first_acted.p95 is not None
    assert found.first_acted.p95 <= found.first_wanted.p95


@pytest.mark.parametrize(
    "policy",
    ["fifo", "fifo:target=0.6,sticky=false", "priority", "truncate_tail", "truncate_middle",
     "summarize_oldest", "summarize_low_priority", "defer_to_retrieval:protect_recent=0", "amplifier",
     "amplifier_contract"],
)  # fmt: skip
def test_a_session_goes_as_if_each_request_were_decided_by_itself(policy: str) -> None:
    more = """
[[part]]
name = "docs"
tokens = { from = 100, to = 300 }
priority = 1
[[part]]
name = "status"
tokens = 90
changes = 0.5
stays = true
"""
    text = HAND.replace("POLICY", policy).replace("turns = 4", "turns = 12")
    text = text.replace("window = 1000", "window = 6000") + "calls = 3\nparallel = 2\ncall = 40\n"
    plan = parse(text + "result = { from = 10, to = 900 }\n" + more, "plan")
    parts = Reader(Path(), Counter("o200k_base"), exact=True).measure(plan)
    kept = policy_of(plan, "plan")
    room = Room(6000)
    runs, plain = (fitted_runs(plan, parts, one, room, len, 10**6) for one in (kept, Plain(kept)))
    assert runs == plain
    assert any(run.first_acted for run in runs)


def test_what_was_left_out_comes_back_after_a_request_that_was_sent_whole() -> None:
    a, b, c, d = (candidate(name, size) for name, size in (("a", 60), ("b", 50), ("c", 30), ("d", 20)))
    one = Session((), Fifo(), Room(100), len)
    for turn, window in enumerate(([a, b], [a, c], [c, a, d]), 1):
        assert one._request(turn, window, [], 0)
    # The oldest leaves: a, then nothing, then c; had a been remembered as left out, c would have stayed.
    assert [request.sent for request in one._requests] == [50, 90, 80]


def test_decisions_outlast_that_there_is_no_place_between_two() -> None:
    window = [candidate("first", 10), candidate("last", 10)]
    policy, state = Fifo(target=0.5), None
    decisions = _Decisions(policy, Room(100))
    for number in range(60):
        window = [window[0], candidate(f"m{number}", 10), *window[1:]]
        if len(window) > 10:
            plain = plain_fit(policy, window, Room(100), state)
            state = plain.state
            assert decisions.fit(window) == plain._replace(state=None)


def test_a_session_that_is_too_long_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.budget import estimate as module
    from ctxctl.report.budget import lines

    monkeypatch.setattr(module, "MOST_WORK", 2)
    found = hand("fifo")
    assert (found.runs, found.bill, found.acted) == (0, None, 4)
    assert found.first_acted == (4, 4, 4)  # one request is enough to know that
    told = "\n".join(lines(found, 100))
    assert "still over    not known: a session is too long to be simulated to its end" in told
    early = hand("amplifier_contract")
    assert (early.acted, next(iter(objects(early)))["first_compaction"]) == (0, None)
