"""The list of 100 answers of `why` that were read against the raw files, and its page.

`why_read.json` has for each pair the verdict (`right`, `wrong`, `unclear`), what the raw file says (`raw`)
and the claims that were judged; `why_read.md` is the same for reading.
"""

from __future__ import annotations

import json
from pathlib import Path

from tools.independent.raw import Object

LIST = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).with_suffix(".md")
VERDICTS = ("right", "wrong", "unclear")
_SAID_BESIDE = {
    "carried",
    "injected",
    "not-recorded",
    "current",
    "spent",
    "listed",
    "summary-present",
    "stale",
}
_HEAD = """# `why`, read against the raw files

A hundred pairs of a step and an item, drawn by `drawing.py` from real captures and from samples of
the five systems, and judged by someone who had not written the code, November 2026. What `why` says
is compared with the raw file: is the item in that request, since when, what took it out and in
which line, how much it cost in how many requests as a share of the bills told there, what would
have been free. Paths are those of the corpus. Sizes in tokens were judged as to whether they can
be; limits and rules of clients that no capture tells were not judged.

At the first reading 82 were right, 14 wrong and 4 unclear. What was wrong was mended and read again;
the 4 were of a fixture whose texts are all one phrase, which is drawn no more, and made room for others.
An item that a mended reading told apart anew has its new name here. So the count below says that
nothing known is left, and not how often `why` is right of a capture that nobody has read.
"""


def entries() -> list[Object]:
    """The list, in order."""
    return list(json.loads(LIST.read_text(encoding="utf-8")))


def claims(why: Object) -> Object:
    """What an answer claims that a raw file can be asked about, from a `why` line."""
    chain = [link for link in why["chain"] if link["stage"] != "room"]
    told: Object = {
        "state": why["state"],
        "present": why["present"],
        "entered": None,
        "last": None,
        "cost": None,
    }
    for link in chain:
        place = [link["turn"], link["step"]]
        line = (link["event"] or {}).get("source_line")
        if link["verdict"] == "entered":
            told["entered"] = [*place, line]
        if link["verdict"] == "spent":
            told["cost"] = [link["numbers"]["tokens"], link["numbers"]["requests"]]
        elif link["verdict"] not in _SAID_BESIDE:
            told["last"] = [link["verdict"], *place, line]
            if link["verdict"] == "compacted":
                told["others"] = link["numbers"]["sources"] - 1
    return told


def says(told: Object) -> str:
    """The claims in a few words."""
    words = [str(told["state"])]
    if told["entered"]:
        words.append("in from {}.{}".format(*told["entered"]) + _line(told["entered"][2]))
    if told["last"] and told["last"][0] != "entered":
        verdict, turn, step, line = told["last"]
        words.append(f"{verdict} {turn}.{step}" + _line(line))
    if "others" in told:
        words.append(f"with {told['others']} others")
    if told["cost"]:
        words.append("{:,} tokens in {} requests".format(*told["cost"]))
    return ", ".join(words)


def _line(line: int | None) -> str:
    return f" (line {line})" if line is not None else ""


def page(listed: list[Object]) -> str:
    """The list as a page."""
    counts = ", ".join(f"{sum(e['verdict'] == v for e in listed)} {v}" for v in VERDICTS)
    rows = [f"{_HEAD}\n{counts[0].upper()}{counts[1:]}.\n"]
    last = ""
    for entry in listed:
        if entry["capture"] != last:
            last = entry["capture"]
            rows += [
                f"\n`{last}`\n",
                "| | address | item | `why` says | the raw file says | verdict |",
                "|---|---|---|---|---|---|",
            ]
        rows.append(
            f"| {entry['number']} | `{entry['address']}` | `{entry['item']}` | {says(entry['claims'])} "
            f"| {entry['raw']} | {entry['verdict']} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(entries()), encoding="utf-8")
