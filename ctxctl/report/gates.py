"""Findings of any command as CI systems read them: JUnit, SARIF 2.1.0, GitHub annotations.

What is passed in may hold any text; it is made visible and inert here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from ctxctl.text import inert, visible

_MOST_ANNOTATIONS: Final = 10
"""GitHub shows no more of a step."""

Level = Literal["error", "warning", "note"]


class Result(NamedTuple):
    """One finding, at a line of a file."""

    rule: str
    level: Level
    message: str
    """What is wrong, and what to do about it."""
    brief: str
    """What is wrong."""
    file: str
    line: int
    mark: str
    """What tells it apart from others of its rule, from run to run; stands in a fingerprint."""
    about: str = ""
    """What in the file it is about, where that has a name."""
    properties: Mapping[str, Any] = {}


class Described(NamedTuple):
    """A rule as SARIF lists it."""

    text: str
    name: str = ""
    help: str = ""
    level: Level | None = None


class Suite(NamedTuple):
    """One file's results; JUnit has a test case for each rule that was held against it."""

    file: str
    rules: Sequence[str]
    results: Sequence[Result]


def junit(name: str, suites: Sequence[Suite], fails: frozenset[str] = frozenset({"error"})) -> bytes:
    """One test case for each rule of each suite, and a failure for each that has results of such a level."""
    from xml.etree import ElementTree

    root = ElementTree.Element("testsuites")
    for one in suites:
        by_rule: dict[str, list[Result]] = {}
        for result in one.results:
            by_rule.setdefault(result.rule, []).append(result)
        failed = sum(any(r.level in fails for r in by_rule.get(rule, ())) for rule in one.rules)
        suite = ElementTree.SubElement(
            root, "testsuite", name=name, tests=str(len(one.rules)), failures=str(failed), errors="0"
        )
        for rule in one.rules:
            case = ElementTree.SubElement(suite, "testcase", classname=visible(one.file), name=rule)
            results = by_rule.get(rule, [])
            broken = [r for r in results if r.level in fails]
            if broken:
                text = visible("\n".join(r.message for r in broken), newline=True)
                message = visible(broken[0].brief)
                ElementTree.SubElement(case, "failure", message=message, type=rule).text = text
            notes = [r.message for r in results if r.level not in fails]
            if notes:
                text = visible("\n".join(notes), newline=True)
                ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    body = inert(ElementTree.tostring(root, encoding="unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.encode()


def sarif(
    results: Sequence[Result], rules: Mapping[str, Described], fingerprint: str, version: str
) -> dict[str, Any]:
    """A SARIF log; `fingerprint` names the scheme of the marks, such as `ctxctlLint/v1`."""
    index = {rule: n for n, rule in enumerate(rules)}
    driver = {
        "name": "ctxctl",
        "semanticVersion": version,
        "rules": [_described(rule, about) for rule, about in rules.items()],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(r, index, fingerprint) for r in results]}],
    }


def _described(rule: str, about: Described) -> dict[str, Any]:
    described: dict[str, Any] = {"id": rule, "shortDescription": {"text": about.text}}
    if about.name:
        described["name"] = about.name
    if about.help:
        described["help"] = {"text": about.help}
    if about.level is not None:
        described["defaultConfiguration"] = {"level": about.level}
    return described


def _result(result: Result, index: Mapping[str, int], fingerprint: str) -> dict[str, Any]:
    from hashlib import sha256

    mark = sha256(f"{result.rule}\0{result.mark}".encode("utf-8", "replace")).hexdigest()[:32]
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(result.file)},
            "region": {"startLine": max(result.line, 1)},
        }
    }
    if result.about:
        place["logicalLocations"] = [{"name": visible(result.about)}]
    entry: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": index[result.rule],
        "level": result.level,
        "message": {"text": visible(result.message)},
        "locations": [place],
        "partialFingerprints": {fingerprint: mark},
    }
    if result.properties:
        entry["properties"] = dict(result.properties)
    return entry


def github(results: Sequence[Result], title: str) -> Iterator[bytes]:
    """Workflow commands that put the results beside the lines; the last one counts the rest."""
    for number, result in enumerate(results):
        if number == _MOST_ANNOTATIONS - 1 and len(results) > _MOST_ANNOTATIONS:
            yield f"::error title={_property(title)}::{len(results) - number} further findings\n".encode()
            return
        command = "notice" if result.level == "note" else result.level
        where = f"file={_property(result.file)},line={max(result.line, 1)}"
        text = _data(result.message)
        yield f"::{command} {where},title={_property(result.rule)}::{text}\n".encode()


def _uri(name: str) -> str:
    from urllib.parse import quote

    return quote(name.encode("utf-8", "surrogateescape"))


def _data(text: str) -> str:
    return inert(visible(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
