"""The changes that `make mutate` makes: where they stand, and that a live function takes them."""

from __future__ import annotations

from scripts.mutate import ROOT, Mutant, mutants_of, naming, put_in, sample

SOURCE = '''"""Text."""
LIMIT = 3


def f(a, b=1):
    """Text 1."""
    assert a != 7
    é = "é"; c = a < LIMIT and not b
    if c:
        raise ValueError(é)
    return a + 1
'''


def changed(source: str) -> dict[str, str]:
    """What each change says, with the line as it is then."""
    found = {}
    for one in mutants_of("m.py", source):
        lines = one.apply(source).splitlines()
        found[f"{one.line} {one.change}"] = lines[one.line - 1].strip()
    return found


def test_every_kind_of_change_is_made_where_it_stands() -> None:
    assert changed(SOURCE) == {
        "2 3  ->  4": "LIMIT = 4",
        "5 1  ->  2": "def f(a, b=2):",
        "8 and  ->  or  in  a < LIMIT and not b": 'é = "é"; c = a < LIMIT or not b',
        "8 <  ->  <=  in  a < LIMIT": 'é = "é"; c = a <= LIMIT and not b',
        "8 not b  ->  (b)": 'é = "é"; c = a < LIMIT and (b)',
        "9 c  ->  (not (c))": "if (not (c)):",
        "10 raise ValueError(é)  ->  pass": "pass",
        "11 return a + 1  ->  return None": "return None",
        "11 +  ->  -  in  a + 1": "return a - 1",
        "11 1  ->  2": "return a + 2",
    }


def test_what_says_nothing_at_run_time_is_left_alone() -> None:
    lines = ["from typing import TYPE_CHECKING, Literal", "__all__ = [1]", "if TYPE_CHECKING:", "    X = 1"]
    source = "\n".join([*lines, 'x: Literal[1] = "y"', ""])
    assert changed(source) == {}


def test_a_draw_is_the_same_for_one_seed() -> None:
    first, again, other = (sample(["tokens", "trace"], 7, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert [len(found) for found in first.values()] == [4, 3]


def test_tests_of_a_package_name_it_as_a_package_or_a_format() -> None:
    changes = mutants_of("ctxctl/importers/pi_rpc/reader.py", "x = 1\n")
    names = naming(changes + mutants_of("ctxctl/importers/capture.py", "x = 1\n"))
    for text in ("ctxctl.importers.pi_rpc import", "pi-rpc/session.jsonl-tools", "importers.capture import"):
        assert names.search(text), text
    for text in ("ctxctl.importers.pi import", "def captures()", "importers/recapture"):
        assert not names.search(text), text


def victim(a: int) -> bool:
    """Takes part in the test below."""
    return a > 5


def test_a_live_function_takes_its_changed_code_and_gives_it_back() -> None:
    path = "tests/unit/test_mutate.py"
    source = (ROOT / path).read_text(encoding="utf-8")
    start = source.index("a > 5")
    first = victim.__code__.co_firstlineno
    line = first + 2
    assert victim(5) is False
    assert put_in(Mutant(path, line, start, start + 5, "a >= 5", "", "victim", first), source)
    assert victim(5) is True
    assert put_in(Mutant(path, line, start, start, "", "", "victim", first), source)
    assert victim(5) is False
    assert not put_in(Mutant(path, line, start, start, "", "", "nobody", first), source)
