"""The words for values: each in one form, whoever asks."""

from __future__ import annotations

import json
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

import ctxctl
from ctxctl import wording

ASSETS = Path(ctxctl.__file__).parent / "report" / "html" / "assets"
NUMBERS = {
    None: "-", 0: "0", 1: "1", 999: "999", 1000: "1,000", 41_204: "41,204", -5: "\u22125",
    -1200: "\u22121,200", 10**15: "1,000,000,000,000,000",
}  # fmt: skip
SHORT = {
    0: "0", 812: "812", 999: "999", 1000: "1.0k", 41_250: "41.2k", 99_999: "99.9k", 199_960: "199k",
    999_999: "999k", 1_300_000: "1.3M", 2_000_000_000: "2.0G", -41_250: "\u221241.2k", -3: "\u22123",
}  # fmt: skip
SIGNED = {0: "0", 946: "+946", -946: "\u2212946", 12_000: "+12,000"}
SHARES = {
    (0, 7): "0%", (1, 100_000): "under 0.1%", (1, 2000): "0.1%", (15, 1000): "1.5%", (5, 100): "5.0%",
    (99, 1000): "9.9%", (9_97, 10_000): "10%", (14, 100): "14%", (29, 200): "15%", (9996, 10_000): "99.9%",
    (996, 1000): "99.6%", (100, 100): "100%", (10_001, 10_000): "100.1%", (151, 100): "151%",
    (12_345, 1): "1,234,500%", (3, 0): "-", (-14, 100): "\u221214%", (-1, 100_000): "above \u22120.1%",
}  # fmt: skip
FINE = {
    (0, 7): "0%", (1, 100_000): "under 0.1%", (804, 1000): "80.4%", (9996, 10_000): "99.9%",
    (1, 1): "100.0%", (1, 8): "12.5%", (12_345, 100): "12,345.0%",
}  # fmt: skip
CHANGES = {(0, 5): "0%", (49, 1000): "+4.9%", (-142, 1000): "\u221214.2%", (1, 10**6): "under +0.1%"}
LEAST = {"0": "≥$0.0000", "0.0000377": "≥$0.00003", "0.0001": "≥$0.0001", "1.5": "≥$1.5000", None: "-"}
MONEY = {
    None: "-", "0": "$0.0000", "0.0000001": "under $0.0001", "0.00009999": "under $0.0001",
    "0.0001": "$0.0001", "0.00015": "$0.0002", "0.2037": "$0.2037", "1204.031": "$1,204.0310",
    "9876543.21": "$9,876,543.2100", "-0.5": "\u2212$0.5000", "-0.00001": "above \u2212$0.0001",
}  # fmt: skip
BARE = {"0": "0.0000", "0.00001": "<0.0001", "-0.00001": ">\u22120.0001", "12.5": "12.5000"}
DIFFERENCES = {"0": "$0.0000", "0.0021": "+$0.0021", "-0.0021": "\u2212$0.0021", "0.00001": "under +$0.0001"}
LENGTHS = {0: "0 s", 8: "8 s", 60: "1 min", 270: "4.5 min", 3600: "1 h", 43_200: "12 h", 259_200: "3 d"}


def test_numbers() -> None:
    assert {n: wording.number(n) for n in NUMBERS} == NUMBERS
    assert {n: wording.short(n) for n in SHORT} == SHORT
    assert {n: wording.signed(n) for n in SIGNED} == SIGNED
    assert wording.signed(41_250, brief=True) == "+41.2k"


def test_shares() -> None:
    assert {pair: wording.share(*pair) for pair in SHARES} == SHARES
    assert {pair: wording.share(*pair, fine=True) for pair in FINE} == FINE
    assert {pair: wording.signed_share(*pair) for pair in CHANGES} == CHANGES
    assert wording.share(Decimal("0.3"), Decimal(2)) == "15%"
    assert [wording.progress(part) for part in (0, 0.999, 1)] == ["0%", "99%", "100%"]
    assert [wording.given_share(part) for part in (0.05, 0.125)] == ["5%", "12.5%"]


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def test_money() -> None:
    assert {text: wording.dollars(_amount(text)) for text in MONEY} == MONEY
    assert {text: wording.dollars(Decimal(text), bare=True) for text in BARE} == BARE
    bounds = {text: wording.cost_text(_amount(text), counted=True, least=True) for text in LEAST}
    assert bounds == LEAST
    assert {text: wording.dollars(Decimal(text), signed=True) for text in DIFFERENCES} == DIFFERENCES
    assert [wording.price(0.3), wording.price(Decimal("15.00")), wording.price(3.0, bare=True)] == [
        "$0.3",
        "$15",
        "3",
    ]


def test_plurals() -> None:
    told = [wording.plural(n, "step") for n in (0, 1, 2, 1200)]
    assert told == ["0 steps", "1 step", "2 steps", "1,200 steps"]
    assert wording.plural(2, "summary", "summaries") == "2 summaries"
    assert wording.noun(1, "differs", "differ") == "differs"


def test_names_and_lengths_of_time() -> None:
    assert {n: wording.duration(n) for n in LENGTHS} == LENGTHS
    assert [wording.step_name(3, 1), wording.step_name(3, 2)] == ["3", "3.2"]
    assert wording.SIGNS == {
        "added": "+",
        "updated": "~",
        "removed": "\u2212",
        "skipped": "=",
        "omitted": "∅",
    }
    assert [wording.short_kind("tool_result"), wording.brief_kind("tool_result")] == ["result", "result"]
    assert [wording.short_kind("of_my_own"), wording.brief_kind("of_my_own")] == ["of_my_own", "of_my_"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")
def test_the_page_words_them_alike() -> None:
    """The script of the HTML report has these functions once more, as it runs where no Python is."""
    base = (ASSETS / "base.js").read_text("utf-8")
    asked = json.dumps({
        "number": list(NUMBERS), "short": list(SHORT), "signed": list(SIGNED),
        "shareOf": list(SHARES), "dollars": list(MONEY),
    })  # fmt: skip
    script = (
        f"const LABELS = {json.dumps(dict(wording.tables()), default=dict)};\n"
        f"const document = {{}};\n{base}\n"
        "const how = { number, short, signed, shareOf, dollars };\n"
        f"const told = Object.entries({asked}).map(([name, all]) =>\n"
        "  [name, all.map((one) => (Array.isArray(one) ? how[name](...one) : how[name](one)))]);\n"
        "console.log(JSON.stringify(Object.fromEntries(told)));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {
        "number": list(NUMBERS.values()), "short": list(SHORT.values()), "signed": list(SIGNED.values()),
        "shareOf": list(SHARES.values()), "dollars": list(MONEY.values()),
    }  # fmt: skip


def test_flags_say_enough() -> None:
    assert wording.flag_words("unrecorded_cut") == "cut without a record"
    assert wording.flag_words("missing_context") == "missing context"
