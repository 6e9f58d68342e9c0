"""YAML is weighed before it is loaded, and a number of any length is read in time linear in it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.ingest import yaml_text
from ctxctl.ingest.yaml_text import BombError, Weigher

yaml = pytest.importorskip("yaml")

HUNDRED_THOUSAND = "a: &a [" + "x," * 300 + "]\nb: [" + "*a," * 160 + "]\n"
"""A text of 1.4 kB that its aliases make one of 97,000 characters."""


def weighed(weigher: Weigher, text: str) -> None:
    weigher.weigh(yaml, text, yaml_text.loader(yaml))


def loaded(text: str) -> Any:
    return yaml.load(text, Loader=yaml_text.loader(yaml))


def test_aliases_of_all_texts_of_a_capture_are_bounded_together() -> None:
    weigher = Weigher()
    weighed(weigher, HUNDRED_THOUSAND)
    with pytest.raises(BombError, match="many times larger"):
        weighed(weigher, HUNDRED_THOUSAND)
    weighed(weigher, "an: other text")


def test_a_text_that_is_refused_counts_for_nothing() -> None:
    weigher = Weigher()
    for _ in range(3):
        with pytest.raises(BombError):
            weighed(weigher, HUNDRED_THOUSAND + "c: [" + "*a," * 100 + "]")
    weighed(weigher, HUNDRED_THOUSAND)


@pytest.mark.parametrize(("levels", "refused"), [(198, False), (199, True)])
def test_levels_are_counted_through_aliases(levels: int, refused: bool) -> None:
    rows = [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, levels + 1)]
    text = "a0: &a0 []\n" + "\n".join(rows)
    if refused:
        with pytest.raises(BombError, match="nested deeper than 200 levels"):
            weighed(Weigher(), text)
    else:
        weighed(Weigher(), text)


def test_values_are_counted_through_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MAX_VALUES", 20)
    weighed(Weigher(), "a: &a [1, 2, 3, 4]\nb: [*a]\n")
    with pytest.raises(BombError, match="more than 20 values"):
        weighed(Weigher(), "a: &a [1, 2, 3, 4]\nb: [*a, *a, *a]\n")


@pytest.mark.parametrize(
    "text", ["1" + ":59" * 1000, "1" + ":59" * 1000 + ".5", "0x" + "f" * 5000, "9" * 5000]
)
def test_a_number_of_any_length_is_the_text_that_it_was_written_as(text: str) -> None:
    assert loaded(f"a: {text}") == {"a": text}


def test_keys_cannot_be_chosen_to_have_one_hash() -> None:
    keys = loaded("{" + ", ".join(f"{n * (2**61 - 1)}: 1" for n in range(1, 101)) + "}")
    assert len({hash(key) for key in keys}) > 90


def test_usual_numbers_are_numbers() -> None:
    assert loaded("[1, -3, 0x1f, 1:30, 1.5, .inf, 18446744073709551615]") == [
        1, -3, 31, 90, 1.5, float("inf"), 2**64 - 1,
    ]  # fmt: skip
